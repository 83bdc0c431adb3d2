"""Several runs in one result: it is as good as the worst of them."""

import pytest

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.defs.names import NOT_SYNCED
from bq_harper_assets.defs.runs.launch import Launched, RunProof
from bq_harper_assets.validation.verdict import ProofStatus


def test_a_sync_whose_proof_failed_or_found_differences_does_not_end_well() -> None:
    done = {"a": {}, "b": {}}
    equal = Launched("first", done, None, RunProof(ProofStatus.PROVED, "all"))
    for status, code, said in (
        (ProofStatus.PROVED, ExitCode.DONE, None),
        (ProofStatus.OPEN, ExitCode.DONE, None),
        (ProofStatus.SOURCE_CHANGED, ExitCode.CHANGED_SINCE, "BigQuery has changed since: why"),
        (ProofStatus.MOVING, ExitCode.NOT_PROVED, "could not be made: why"),
        (ProofStatus.DIFFERS, ExitCode.DIFFERS, "proof found rows that differ: why. Next: bqh"),
        (ProofStatus.CHECK_FAILED, ExitCode.NOT_PROVED, "could not be made: why. Next: bqh"),
        (None, ExitCode.NOT_PROVED, "the proof after them could not be made: why"),
    ):
        ran = RunResults(
            (equal, Launched("run", done, None, RunProof(status, "why")), equal), 4, 1.0
        )
        assert ran.exit_code is code
        assert ran.proof is not None
        told = ran.proof.told("ships")
        assert (said in (told or "")) if said else told is None
    assert ran.told_of_quarantine("ships") is None
    assert (
        RunResults((Launched("run", done, "Harper is away"),), 3, 1.0).exit_code is ExitCode.PARTLY
    )
    assert RunResults((Launched("run", {}, "Harper is away"),), 3, 1.0).exit_code is ExitCode.ERROR


PROVED = RunProof(ProofStatus.PROVED, "all equal")
DIFFERS = RunProof(ProofStatus.DIFFERS, "two differ")


def ran(*runs: Launched) -> RunResults:
    return RunResults(runs, 4, 1.23456)


def test_the_cells_of_all_runs_are_done_and_the_first_reason_why_others_are_not_counts() -> None:
    found = ran(
        Launched("one", {"a": {"n": 1}}, None),
        Launched("two", {"b": {"n": 2}}, "Harper is away", None),
        Launched("three", {}, "the guard said no", None),
    )
    assert found.done == {"a": {"n": 1}, "b": {"n": 2}}
    assert found.error == "Harper is away"
    assert found.proof is None
    assert ran().exit_code is ExitCode.DONE


def test_the_proof_of_several_runs_is_the_worst_with_the_words_of_all_that_are_as_bad() -> None:
    changed = RunProof(ProofStatus.SOURCE_CHANGED, "changed")
    runs = [
        Launched("run", {}, None, proof)
        for proof in (DIFFERS, RunProof(None, "no"), changed, None, DIFFERS, PROVED)
    ]
    worst = ran(*runs).proof
    assert worst is not None
    assert (worst.status, worst.message) == ("differs", "two differ; two differ")
    not_proved = ran(*runs[1:4]).proof
    assert not_proved is not None
    assert (not_proved.status, not_proved.message) == (None, "no")
    assert ran(runs[2], runs[5]).exit_code is ExitCode.CHANGED_SINCE


def test_the_columns_that_a_run_left_out_are_told_once() -> None:
    left_out = {"a": {}, "b": {NOT_SYNCED: "crew waits"}}
    assert ran(Launched("one", {}, None)).not_synced is None
    assert (
        ran(Launched("one", {"a": {}}, None), Launched("two", left_out, None)).not_synced
        == "crew waits"
    )


@pytest.mark.parametrize(
    ("runs", "out", "err"),
    [
        ((Launched("one", {}, None, PROVED),), "proof: all equal\n", ""),
        ((Launched("one", {}, "away", PROVED),), "", "error: away\n"),
        (
            (Launched("one", {}, None, DIFFERS),),
            "",
            "error: all cells are done, and their proof found rows that differ: two differ. Next:"
            " bqh verify ships --show\n",
        ),
        ((Launched("one", {}, None),), "", ""),
    ],
)
def test_an_outcome_is_an_error_or_a_proof_or_nothing(
    runs: tuple[Launched, ...], out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(*runs).tell_outcome("ships")
    assert capsys.readouterr() == (out, err)


def test_programs_read_every_figure() -> None:
    one, two = Launched("one", {"a": {"n": 1}}, None, PROVED), Launched("two", {}, "away")
    assert ran(one, two).as_json() == {
        "run_ids": ["one", "two"],
        "cells": 4,
        "done": 1,
        "quarantined": 0,
        "seconds": 1.235,
        "error": "away",
        "proof": "all equal",
        "partitions": {"a": {"n": 1}},
    }
    assert ran(two).as_json()["proof"] is None


def test_rows_that_cannot_be_stored_are_told_last_and_end_a_sync_with_3(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = {"a": {"rows_quarantined": 1, "rows_read": 9}, "b": {"rows_quarantined": 2}}
    for status, error, code in (
        (ProofStatus.PROVED, None, ExitCode.DIFFERS),
        (ProofStatus.SOURCE_CHANGED, None, ExitCode.DIFFERS),
        (ProofStatus.PROVED, "Harper is away", ExitCode.PARTLY),
    ):
        found = RunResults((Launched("run", done, error, RunProof(status, "why")),), 3, 1.0)
        assert found.exit_code is code
        found.tell_outcome("ships")
        *before, last = capsys.readouterr().err.splitlines()
        assert last == (
            "error: 3 rows of ships cannot be stored in Harper and wait in quarantine, with the"
            " reasons. Next: bqh quarantine list ships"
        )
        assert bool(before) == (error is not None or status is not ProofStatus.PROVED)

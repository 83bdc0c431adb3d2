"""Several runs in one result: it is as good as the worst of them."""

import pytest

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.run_results import RunResults
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


def test_rows_that_cannot_be_stored_are_told_last_and_end_a_sync_with_3(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = {"a": {"rows_quarantined": 1, "rows_read": 9}, "b": {"rows_quarantined": 2}}
    for status, error, code in (
        (ProofStatus.PROVED, None, ExitCode.DIFFERS),
        (ProofStatus.SOURCE_CHANGED, None, ExitCode.DIFFERS),
        (ProofStatus.PROVED, "Harper is away", ExitCode.PARTLY),
    ):
        ran = RunResults((Launched("run", done, error, RunProof(status, "why")),), 3, 1.0)
        assert ran.exit_code is code
        ran.tell_outcome("ships")
        *before, last = capsys.readouterr().err.splitlines()
        assert last == (
            "error: 3 rows of ships cannot be stored in Harper and wait in quarantine, with the"
            " reasons. Next: bqh quarantine list ships"
        )
        assert bool(before) == (error is not None or status is not ProofStatus.PROVED)

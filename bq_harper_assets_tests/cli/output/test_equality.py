"""The answer to "is it equal now?", by what the proofs of the cells say."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.equality import Equality, Unseen
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.verdict import ProofStatus, Severity, Verdict
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.temporary_project import HOUR

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def cell(hour: int, part: int = 0) -> Cell:
    return Cell(Window(NOON + hour * HOUR, NOON + (hour + 1) * HOUR), part)


def proof(hour: int, status: ProofStatus = ProofStatus.PROVED, **known: Any) -> CellProof:
    return CellProof(cell=cell(hour), status=status, message="", **known)


def equality(*proofs: CellProof, **known: Any) -> Equality:
    unseen = known.pop("unseen", Unseen())
    return Equality(contract=contract(), at=NOON, proofs=proofs, unseen=unseen, **known)


@pytest.mark.parametrize(
    ("proofs", "code"),
    [
        ([proof(0), proof(1, ProofStatus.OPEN)], ExitCode.DONE),
        ([proof(0), proof(1, source_changed=True)], ExitCode.CHANGED_SINCE),
        ([proof(0), proof(1, ProofStatus.OPEN, source_changed=True)], ExitCode.CHANGED_SINCE),
        ([proof(0, source_changed=True), proof(1, ProofStatus.MOVING)], ExitCode.PARTLY),
        ([proof(0), proof(1, ProofStatus.SOURCE_CHANGED)], ExitCode.CHANGED_SINCE),
        ([proof(0, ProofStatus.MOVING), proof(1, ProofStatus.DIFFERS)], ExitCode.DIFFERS),
        ([proof(0, ProofStatus.DIFFERS), proof(1, ProofStatus.CHECK_FAILED)], ExitCode.DIFFERS),
        ([proof(0, ProofStatus.MOVING), proof(1, ProofStatus.CHECK_FAILED)], ExitCode.ERROR),
    ],
)
def test_the_exit_code_is_of_the_worst_that_was_found(
    proofs: list[CellProof], code: ExitCode
) -> None:
    assert equality(*proofs).exit_code is code


@pytest.mark.parametrize("due", ["never_synced", "closed_since"])
def test_a_table_is_not_called_equal_while_closed_windows_are_not_in_harper(due: str) -> None:
    found = equality(proof(0), unseen=Unseen(**{due: (cell(1),)}))
    assert found.exit_code is ExitCode.PARTLY
    *_, last = found.lines()
    assert last.startswith("  not looked at: ")
    assert last.endswith(f"type: bqh sync {contract().id} --changed")


def test_a_cell_whose_window_has_closed_since_its_sync_is_not_called_open() -> None:
    looked = (proof(0, ProofStatus.OPEN), proof(1, ProofStatus.OPEN))
    _, still_open, rest = equality(*looked, unseen=Unseen(closed_since=(cell(0),))).lines()
    assert still_open == "  equal so far, in a window that is still open: 1 cell"
    assert rest.startswith(
        "  not looked at: the rest of 1 cell, whose window has closed since the last sync"
        " (1 window, 2026-11-16T12:00); type: "
    )


def test_every_cell_is_told_as_what_it_is_with_what_to_type() -> None:
    name = contract().id
    told = equality(
        proof(0),
        proof(1, deep=True),
        proof(2, source_changed=True),
        proof(3, ProofStatus.DIFFERS),
        proof(4, ProofStatus.MOVING),
        proof(5, ProofStatus.OPEN),
        unseen=Unseen(never_synced=(cell(6), cell(6, 1)), outside=8),
    )
    assert list(told.lines()) == [
        f"{name} is not equal to BigQuery as of 2026-11-16 12:00:00 UTC in 2 of 6 cells; 2 are "
        "equal (1 proved by stored hash, 1 by all values)",
        "  equal so far, in a window that is still open: 1 cell",
        "  not judged, because a run is writing them or has to: 1 cell; if no run is at work, type:"
        f" bqh sync {name} --changed",
        f"  rows differ in 1 cell (1 window, 2026-11-16T15:00); type: bqh repair {name}",
        f"  changed in BigQuery since: 1 window, 2026-11-16T14:00; type: bqh sync {name} --changed",
        "  not looked at: 2 cells that were never synced (1 window, 2026-11-16T18:00); 8 synced "
        f"cells outside the range; type: bqh sync {name} --changed",
    ]


def test_many_windows_are_counted_and_only_the_first_are_named() -> None:
    [first, line] = equality(*(proof(hour, source_changed=True) for hour in range(8))).lines()
    assert first.endswith(" UTC in 8 of 8 cells; none is known to be equal")
    assert "since: 8 windows, 2026-11-16T12:00, 2026-11-16T13:00, " in line
    assert "2026-11-16T16:00 and 3 more; type: bqh sync" in line


def test_rows_in_quarantine_are_counted_with_the_command_that_lists_them() -> None:
    found = equality(proof(0, quarantined=2), proof(1, quarantined=1))
    [_, line] = found.lines()
    name = contract().id
    assert line == f"  cannot be stored, in quarantine: 3 rows; see: bqh quarantine list {name}"
    assert found.exit_code is ExitCode.DONE


def test_cells_that_a_store_kept_from_being_looked_at_are_told() -> None:
    found = equality(proof(0), unseen=Unseen(given_up=1_200))
    [_, line] = found.lines()
    assert line == "  not looked at: 1,200 cells, because a store did not answer"


@pytest.mark.parametrize(
    ("deep", "how"),
    [
        ([False, False], "2 proved by stored hash, --deep compares all values"),
        ([True, True], "2 proved by all values"),
        ([True, False], "1 proved by stored hash, 1 by all values"),
    ],
)
def test_an_equal_table_says_how_its_cells_were_compared(deep: list[bool], how: str) -> None:
    [line] = equality(*(proof(hour, deep=each) for hour, each in enumerate(deep))).lines()
    assert line.endswith(f"in 2 cells ({how})")


def test_the_answer_for_programs_has_all_that_the_lines_say() -> None:
    lost = Verdict(
        check="proof",
        status=ProofStatus.DIFFERS,
        passed=False,
        severity=Severity.ERROR,
        message="1 row is lost",
    )
    hours = (7, 3, 5, 1, 6, 2, 4)
    unseen = Unseen(never_synced=(cell(8),), closed_since=(cell(9, 1),), outside=2, given_up=3)
    changed = [proof(hour, source_changed=True) for hour in hours]
    found = equality(proof(0), *changed, unseen=unseen, presence=lost)
    assert found.as_json() == {
        "verdict": "differs",
        "looked_at": NOON.isoformat(),
        "out_of_step": None,
        "equal_cells": 1,
        "changed_since": [cell(hour).window.key for hour in sorted(hours)],
        "not_looked_at": {
            "never_synced": ["2026-11-16T20:00|s00"],
            "closed_since": ["2026-11-16T21:00|s01"],
            "outside_the_range": 2,
            "given_up": 3,
        },
        "presence": lost.as_json(),
    }
    without = equality(proof(0)).as_json()
    assert (without["verdict"], without["presence"]) == ("equal", None)


def test_nothing_is_advised_that_is_refused_while_the_ledger_is_out_of_step() -> None:
    unseen = Unseen(never_synced=(cell(20),))
    changed = proof(1, source_changed=True)
    wrong = [proof(2, ProofStatus.DIFFERS), proof(3, ProofStatus.MOVING)]
    found = equality(proof(0), changed, *wrong, unseen=unseen)
    assert "type: bqh" in "\n".join(found.lines())
    older = replace(found, out_of_step="the ledger is older")
    assert "type: bqh" not in "\n".join(older.lines())
    for proofs in ([proof(0)], [changed]):
        assert replace(older, proofs=proofs, unseen=Unseen()).exit_code is ExitCode.PARTLY

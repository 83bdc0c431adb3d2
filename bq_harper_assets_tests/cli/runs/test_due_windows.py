"""What `bqh sync --changed` says of the cells that are due, and of those that it cannot judge."""

from datetime import UTC, datetime

import pytest

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.runs.due_windows import OPEN, WORDS, DueCells
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.revisit.due_cells import Reason
from bq_harper_assets_tests.temporary_project import HOUR

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
CELL = Cell(Window(NOON, NOON + HOUR), 0)


def test_there_are_words_for_every_reason() -> None:
    assert set(WORDS) == {reason.value for reason in Reason} | {OPEN}
    for reason in WORDS:
        told = str(DueCells(table="orders", looked_at=8, at=NOON, by_reason={reason: [CELL]}))
        assert told.startswith("1 of 8 cells of orders are due:\n  1 ")
        assert told.endswith(": 1 window, 2026-11-16T12:00")


def test_cells_that_a_run_is_moving_are_not_called_equal() -> None:
    at_work = {"9f56d1aa-1": [Cell(CELL.window, number) for number in range(3)]}
    found = DueCells(table="orders", looked_at=8, at=NOON, by_reason={}, at_work=at_work)
    assert str(found) == (
        "nothing of orders is due: 5 of its 8 cells are as BigQuery has them at 2026-11-16"
        " 12:00:00 UTC; 3 that a run is writing now are not judged"
    )
    assert found.told_at_the_end() == (
        "cells of orders are not judged: 3 that run 9f56d1aa is writing now (1 window,"
        " 2026-11-16T12:00). Once that has ended, type: bqh sync orders --changed"
    )


@pytest.mark.parametrize(
    ("looked_at", "of_runs", "code"),
    [
        (8, ExitCode.DONE, ExitCode.PARTLY),
        (8, ExitCode.NOT_PROVED, ExitCode.PARTLY),
        (8, ExitCode.DIFFERS, ExitCode.DIFFERS),
        (8, ExitCode.ERROR, ExitCode.ERROR),
        (3, ExitCode.DONE, ExitCode.ERROR),
    ],
)
def test_a_sync_that_left_out_what_a_run_writes_does_not_say_that_all_is_done(
    looked_at: int, of_runs: ExitCode, code: ExitCode
) -> None:
    at_work = {"9f56d1aa-1": [Cell(CELL.window, number) for number in range(3)]}
    found = DueCells(table="orders", looked_at=looked_at, at=NOON, by_reason={}, at_work=at_work)
    assert found.exit_code(of_runs) is code
    idle = DueCells(table="orders", looked_at=looked_at, at=NOON, by_reason={})
    assert idle.exit_code(of_runs) is of_runs
    assert idle.told_at_the_end() is None

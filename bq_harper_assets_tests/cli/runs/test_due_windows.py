"""What `bqh sync --changed` says of the cells that are due, and of those that it cannot judge."""

from datetime import UTC, datetime

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
    told = str(DueCells(table="orders", looked_at=8, at=NOON, by_reason={}, at_work=3))
    assert told == (
        "nothing of orders is due: 5 of its 8 cells are as BigQuery has them at 2026-11-16"
        " 12:00:00 UTC; 3 cells that a run is writing now are not judged"
    )

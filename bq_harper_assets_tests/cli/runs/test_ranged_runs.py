"""Cells that lie anywhere, in as few ranged runs as they fit."""

from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.cli.runs.ranged_runs import rectangles
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.temporary_project import HOUR

HOURS = list(windows_between(utc(2026, 1, 5), utc(2026, 1, 5, 8), HOUR))


def cells(places: Collection[tuple[int, int]]) -> list[Cell]:
    return [Cell(HOURS[window], number) for window, number in places]


@settings(deadline=None)
@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 5))))
def test_every_cell_is_in_one_rectangle_and_no_other_cell_in_any(
    places: set[tuple[int, int]],
) -> None:
    parts = rectangles(cells(places))
    assert sorted(cell for part in parts for cell in part) == sorted(cells(places))
    for part in parts:
        windows = sorted({cell.window for cell in part})
        slices = sorted({cell.slice for cell in part})
        assert slices == list(range(slices[0], slices[-1] + 1))
        assert windows == HOURS[HOURS.index(windows[0]) :][: len(windows)]
        assert len(part) == len(windows) * len(slices)


def test_cells_that_lie_together_are_one_run() -> None:
    square = [(window, number) for window in (1, 2, 3) for number in (0, 1)]
    assert rectangles(cells(square)) == [cells(square)]
    scattered = [*square, (6, 1), (2, 4)]
    assert rectangles(cells(scattered)) == [cells(square), cells([(2, 4)]), cells([(6, 1)])]

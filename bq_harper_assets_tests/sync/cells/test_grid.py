"""Rows find their cell, and only in the times that a run covers."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from bq_harper_assets.instants import micros_at
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import NOT_OURS, Grid, Part
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder
from bq_harper_assets.sync.cells.window import Window, micros_of

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CELLS = [Cell(Window(NOON + n * HOUR, NOON + (n + 1) * HOUR), 0) for n in range(3)]


def _places(grid: Grid, *moments: datetime | None) -> list[int]:
    times = pa.array(moments, pa.timestamp("us", "UTC"))
    return grid.places_of(micros_of(times), np.zeros(len(moments), np.int64)).tolist()


def test_a_window_holds_its_start_and_not_its_end() -> None:
    grid = Grid.of({cell: Part.whole(cell, 7) for cell in CELLS[:2]}, 1)
    tick = timedelta(microseconds=1)
    moments = (NOON - tick, NOON, NOON + HOUR - tick, NOON + HOUR, NOON + 2 * HOUR, None)
    assert _places(grid, *moments) == [NOT_OURS, 0, 0, 1, NOT_OURS, NOT_OURS]


def test_a_part_covers_its_own_times_only() -> None:
    part = Part(7, micros_at(NOON + 10 * MINUTE), micros_at(NOON + 20 * MINUTE))
    grid = Grid.of({CELLS[0]: part, CELLS[2]: Part.whole(CELLS[2], 8)}, 1)
    moments = [NOON + n * MINUTE for n in (9, 10, 19, 20, 61, 121)]
    assert _places(grid, *moments) == [NOT_OURS, 0, 0, NOT_OURS, NOT_OURS, 2]


def _in_slices(count: int) -> Grid:
    """Has the first slice of the first window and the last slice of the third."""
    cells = [CELLS[0], Cell(CELLS[2].window, count - 1)]
    return Grid.of({cell: Part.whole(cell, n) for n, cell in enumerate(cells, 7)}, count)


def test_cells_lie_window_by_window_and_slice_by_slice() -> None:
    grid = _in_slices(3)
    places = [grid.place_of(Cell(cell.window, part)) for cell in CELLS for part in range(3)]
    assert places == list(range(9))
    assert grid.batches.tolist() == [7, *[0] * 7, 8]
    assert list(grid.occupied()) == [0, 8]


def test_key_ranges_lie_on_a_grid_by_their_numbers() -> None:
    cut = KeyCut(("100", "200", "300"), KeyOrder.NUMBERS)
    cells = [Cell(cut.range_at(1), 0), Cell(cut.range_at(3), 1)]
    grid = Grid.of({cell: Part.whole(cell, n) for n, cell in enumerate(cells, 7)}, 2)
    assert [grid.place_of(cell) for cell in cells] == [0, 5]
    places = grid.places_of(pa.array([0, 1, 1, 2, 3, 3]), np.array([0, 0, 1, 0, 0, 1]))
    assert places.tolist() == [NOT_OURS, 0, NOT_OURS, NOT_OURS, NOT_OURS, 5]


def test_a_row_finds_the_cell_of_its_window_and_its_slice() -> None:
    grid = _in_slices(3)
    moments = [NOON, NOON, NOON + 2 * HOUR, NOON + 2 * HOUR]
    times = micros_of(pa.array(moments, pa.timestamp("us", "UTC")))
    places = grid.places_of(times, np.array([0, 1, 1, 2]))
    assert places.tolist() == [0, NOT_OURS, NOT_OURS, 8]
    assert NOT_OURS < 0  # so that it is the place of no cell


def test_rows_are_counted_by_place_also_where_there_are_none() -> None:
    assert _in_slices(2).count(np.array([0, 5, 5])).tolist() == [1, 0, 0, 0, 0, 2]

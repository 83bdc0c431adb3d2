"""The other cells that have rows which are about to be written, by the rows' ids in Harper."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.stores.harper.target import HarperTarget
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.errors import NotCompared
from bq_harper_assets.sync.moved.previous_cells import PreviousCellSearch, cells_elsewhere
from bq_harper_assets.sync.source.cell_rows import Reading
from bq_harper_assets.sync.write.write_task import Chosen
from bq_harper_assets_tests.sync.memory_source import DAY, HOUR, MemoryPin, Small, ship

START = micros_at(DAY)


def row(n: int, time: str | None) -> dict[str, Any]:
    return {"id": n, "n": n, "ts": time and f"2026-01-05T{time}.000000Z"}


def slice_number(n: int) -> int:
    return int(slice_of(id_hashes(pa.array([n]), keyless=False), 2)[0])


def search(small: Small, chosen: Chosen | None = None, *hours: int) -> dict[Any, int]:
    contract = small.route.contract
    pin = MemoryPin(small.source, small.source.planned(contract), small.source.now)
    target = HarperTarget(contract, small.harper.client())
    cells = small.cells(*(hours or (2, 3)))
    grid = Grid.of({cell: Part.whole(cell, 1 + at) for at, cell in enumerate(cells)}, 2)
    splits = pin.splits(START, START + 24 * 3_600_000_000, 2)
    reading = Reading(
        splits=tuple((split,) for split in splits),
        layout=target.layout(pin.plan),
        cut=TimeCut(HOUR),
        grid=grid,
    )
    whole = Chosen(np.ones(len(grid.batches), np.bool_), np.empty(0, np.uint64))
    look = PreviousCellSearch(
        reading=reading, target=target.of_tasks(small.spark), chosen=chosen or whole
    )
    return cells_elsewhere(small.spark, look)


ONES = [n for n in range(40) if slice_number(n) == 1]  # numbers of slice 1


def test_the_latest_row_of_each_other_cell_is_told(small: Small) -> None:
    one, two, three, *_ = ONES
    small.source.put(ship(one, 125), ship(two, 126), ship(three, 185))
    small.harper.make("Ships", row(one, "00:05:00"), row(two, "00:59:59"), row(three, "01:00:00"))
    assert search(small) == {
        (START, 1): START + 3_599_000_000,
        (micros_at(DAY + HOUR), 1): micros_at(DAY + HOUR),
    }


def test_a_row_in_its_own_cell_or_without_a_time_or_a_version_is_in_no_other(
    small: Small,
) -> None:
    one, two, three, four, *_ = ONES
    small.source.put(ship(one, 125), ship(two, 125), ship(three, 185), ship(four, 185))
    small.harper.make("Ships", row(one, "02:00:00"), row(two, None), row(four, "03:05:00"))
    assert search(small) == {}


def test_a_row_of_the_same_turn_in_another_window_counts(small: Small) -> None:
    one, *_ = ONES
    small.source.put(ship(one, 125))
    small.harper.make("Ships", row(one, "03:00:00"))
    assert search(small) == {(micros_at(DAY + 3 * HOUR), 1): micros_at(DAY + 3 * HOUR)}


def test_only_rows_that_are_written_are_looked_up(small: Small) -> None:
    one, *_ = ONES
    small.source.put(ship(one, 125))
    small.harper.make("Ships", row(one, "00:05:00"))
    nothing = Chosen(np.zeros(4, np.bool_), np.empty(0, np.uint64))
    assert search(small, nothing) == {}
    assert search(small, None, 5) == {}
    assert small.harper.asked == []


def test_rows_without_an_id_are_not_looked_up(small: Small) -> None:
    small.source.put({**ship(0, 125), "n": None})
    small.harper.make("Ships")
    assert search(small) == {}


def test_without_rows_to_read_nothing_is_asked(small: Small) -> None:
    assert search(small) == {}
    assert small.harper.asked == []


def test_a_task_that_cannot_ask_says_why(small: Small) -> None:
    small.source.put(ship(ONES[0], 125))
    small.harper.make("Ships")
    small.harper.refuses = lambda asked: (500, {"error": "RangeError"})
    with pytest.raises(NotCompared, match="RangeError"):
        search(small)

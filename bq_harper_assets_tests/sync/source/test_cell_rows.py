"""Every row of the turn's cells is read once, with its id and its place."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.source.cell_rows import (
    ROWS_AT_ONCE,
    Reading,
    batches_of,
    cell_rows,
    read_here,
    spread,
)
from bq_harper_assets.sync.write.write_job import numbered_here
from bq_harper_assets_tests.sync.memory_source import (
    COLUMNS,
    DAY,
    HOUR,
    MemorySource,
    MemorySplit,
    ship,
    small_contract,
)

CUT = TimeCut(HOUR)


def reading(
    *rows: Any, tasks: int = 1, hours: tuple[int, ...] = (0, 1), **declared: Any
) -> Reading:
    contract = small_contract(slices=1, **declared)
    source = MemorySource(contract)
    windows = [each for n in hours for each in windows_between(DAY + n * HOUR, DAY + (n + 1) * HOUR, HOUR)]  # fmt: skip # noqa: E501
    parts = {Cell(window, 0): Part.whole(Cell(window, 0), 7 + at) for at, window in enumerate(windows)}  # fmt: skip # noqa: E501
    splits = [MemorySplit(f"split {at}", COLUMNS, list(rows[at::tasks])) for at in range(tasks)]
    return Reading(
        splits=tuple((split,) for split in splits),
        layout=RowPlan.of(source.planned(contract)),
        cut=CUT,
        grid=Grid.of(parts, 1),
    )


def read(reading: Reading) -> list[tuple[int, int]]:
    return [
        (number, place)
        for rows in read_here(reading)
        for number, place in zip(
            rows.batch.column("n").to_pylist(), rows.places.tolist(), strict=True
        )
    ]


def test_rows_of_all_splits_are_read_with_the_place_of_their_window() -> None:
    rows = [ship(n, 20 * n) for n in range(6)]
    assert sorted(read(reading(*rows, tasks=3))) == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 1)]


def test_rows_outside_the_turn_are_left_out() -> None:
    rows = [ship(1, -0.001), ship(2, 0), ship(3, 59.999), ship(4, 60), {**ship(5, 0), "ts": None}]
    assert read(reading(*rows, hours=(0,))) == [(2, 0), (3, 0)]
    assert read(reading(ship(1, 70), ship(2, 130), hours=(0, 2))) == [(2, 2)]


def test_chosen_rows_keep_their_own_ids_and_places() -> None:
    some = reading(*(ship(n, 30 * n) for n in range(4)))
    rows = next(cell_rows(some, some.splits[0]))
    chosen = rows.where(np.array([False, True, False, True]))
    assert chosen.batch.column("n").to_pylist() == [1, 3]
    assert chosen.identity.ids.to_pylist() == [1, 3]
    assert chosen.places.tolist() == [0, 1]
    assert rows.where(np.ones(4, np.bool_)) is rows


def test_equal_rows_are_numbered_over_all_splits() -> None:
    same = ship(1, 5)
    some = reading(same, same, same, ship(2, 6), tasks=2, key=None)
    plain = [each for rows in read_here(some) for each in rows.identity.ids.to_pylist()]
    assert len(set(plain)) == 2
    numbered = [
        each for rows in read_here(numbered_here(some)) for each in rows.identity.ids.to_pylist()
    ]
    assert len(set(numbered)) == 4
    assert set(plain) <= set(numbered)


def test_splits_are_spread_over_at_most_as_many_tasks_and_none_is_lost() -> None:
    splits: list[Any] = list("abcde")
    assert spread(splits, 2) == (("a", "c", "e"), ("b", "d"))
    assert spread(splits, 9) == tuple((each,) for each in splits)
    assert spread([], 3) == ()


MOST = ROWS_AT_ONCE


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([1], [1]),
        ([3, 4], [7]),
        ([MOST, 4], [MOST, 4]),
        ([MOST + 1], [MOST, 1]),
        ([MOST - 1, 2, 3], [MOST + 1, 3]),
        ([MOST, MOST - 1, 1], [MOST, MOST]),
        ([2 * MOST + 5, 6], [MOST, MOST, 11]),
        ([0], [0]),
    ],
)
def test_small_batches_are_joined_and_large_ones_cut_without_losing_a_row(
    sizes: list[int], found: list[int]
) -> None:
    some = reading()
    whole = MemorySplit("x", COLUMNS, [ship(1, 1), ship(2, 2)])
    [two] = whole.batches()
    batches = [two.take(np.arange(size) % 2) for size in sizes]

    class Sized:
        name = "sized"

        def batches(self) -> Any:
            return iter(batches)

    split: Any = Sized()
    read = batches_of(replace(some, splits=((split,),)), split)
    assert [batch.num_rows for batch in read] == [size for size in found if size]

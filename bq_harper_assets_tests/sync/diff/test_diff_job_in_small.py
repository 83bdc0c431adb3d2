"""Source and target are compared by id and hash, and each difference is told in its cell."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.errors import BqhError
from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.diff.diff_job import CellDiff, DiffJob, compare
from bq_harper_assets.sync.errors import NotCompared
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets.sync.protocols import FLAGGED, Split, TargetRange, TargetRows
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading
from bq_harper_assets_tests.history.local_frames import LocalSpark
from bq_harper_assets_tests.sync.memory_source import ship
from bq_harper_assets_tests.sync.source.test_cell_rows import reading


@dataclass
class HeldRows:
    """A target in memory: the hash of each row by its id, and the ids of each place."""

    hashes: Mapping[int, int] = field(default_factory=dict)
    by_place: Mapping[int, Sequence[int]] = field(default_factory=dict)
    waits: None = None
    extras: frozenset[str] = frozenset()
    fails: bool = False
    opened: list[tuple[int, bool, bool]] = field(default_factory=list)

    @contextmanager
    def reader(
        self, layout: Any, slices: int, *, deep: bool, as_written: bool
    ) -> Iterator["HeldRows"]:
        self.opened.append((slices, deep, as_written))
        yield self

    def rows(self, ranges: Sequence[TargetRange]) -> Iterator[tuple[TargetRange, TargetRows]]:
        for each in ranges:
            keys = pa.array(self.by_place[each.place], pa.int64())
            hashes = np.array([self.hashes[n] for n in keys.to_pylist()], np.uint64)
            yield (
                each,
                TargetRows(
                    np.zeros(len(keys), np.int64), id_hashes(keys, keyless=False), hashes, keys
                ),
            )
        if self.fails:
            raise BqhError("the target went away")

    def value_hashes(self, rows: CellRows, layout: Any, *, as_written: bool) -> UInt64s:
        return np.full(len(rows.places), 77 + as_written, np.uint64)


def found(reading: Reading, target: HeldRows, **changes: Any) -> Mapping[int, CellDiff]:
    places = sorted(target.by_place)
    ranges = tuple((TargetRange(place, "", ""),) for place in places)
    tasks, spark = _any(target), _any(LocalSpark())
    return compare(spark, DiffJob(reading=reading, target=tasks, ranges=ranges, **changes))


def _any(value: object) -> Any:
    return value


def hashes_of(reading: Reading) -> dict[int, int]:
    """The row hash of each row of the source, by its number."""
    known = {}
    for (split,) in reading.splits:
        for batch in split.batches():
            named = reading.layout.named(batch)
            hashes = row_hashes(named, reading.layout.names).tolist()
            known |= dict(zip(batch.column("n").to_pylist(), hashes, strict=True))
    return known


def ids(*numbers: int) -> set[int]:
    return set(id_hashes(pa.array(numbers, pa.int64()), keyless=False).tolist())


ROWS = [ship(n, 10 * n) for n in range(12)]  # six in each of two hours


@pytest.mark.parametrize("per_place", [1, 4])
def test_missing_changed_equal_and_vanished_rows_are_told_in_their_cells(per_place: int) -> None:
    some = reading(*ROWS, tasks=2)
    held = hashes_of(some)
    held[1] += 1
    held |= {90: 5, 91: 6}
    target = HeldRows(held, {0: [0, 1, 2, 3, 90], 1: [6, 7, 8, 9, 10, 11, 91]})
    first, second = (found(some, target, per_place=per_place)[place] for place in (0, 1))
    assert (first.ids, first.distinct, first.equal, first.held, first.read) == (6, 6, 3, 5, 6)
    assert set(first.missing.tolist()) == ids(4, 5)
    assert set(first.changed.tolist()) == ids(1)
    assert first.vanished == [90]
    assert (second.equal, second.held, second.vanished) == (6, 7, [91])
    assert not len(second.missing)
    assert (first.is_equal, second.is_equal) == (False, False)
    assert (first.digest.count, first.extras) == (6, frozenset())


def test_equal_sides_are_equal() -> None:
    some = reading(*ROWS)
    target = HeldRows(hashes_of(some), {0: range(6), 1: range(6, 12)})
    assert all(diff.is_equal for diff in found(some, target).values())
    assert target.opened == [(1, False, False)] * 2


def test_rows_that_are_marked_as_deleted_are_neither_held_nor_vanished() -> None:
    some = reading(*ROWS[:6])
    flagged = int(FLAGGED)
    held = hashes_of(some) | {1: flagged, 90: flagged}
    diff = found(some, HeldRows(held, {0: [*range(6), 90]}))[0]
    assert (diff.held, diff.flagged, diff.vanished, diff.equal) == (5, 2, [], 5)
    assert set(diff.changed.tolist()) == ids(1)


def test_an_empty_side_is_compared_too() -> None:
    some = reading(*ROWS[:6])
    diff = found(some, HeldRows())[0]
    assert (len(diff.missing), diff.held, diff.is_equal) == (6, 0, False)
    empty = reading(tasks=0)
    diff = found(empty, HeldRows({1: 5}, {0: [1]}))[0]
    assert (diff.vanished, diff.ids) == ([1], 0)
    both = found(empty, HeldRows())
    assert {place: diff.is_equal for place, diff in both.items()} == {0: True, 1: True}


def test_rows_without_an_id_are_read_and_make_the_cell_unequal() -> None:
    some = reading(ship(1, 5), {**ship(2, 6), "n": None})
    diff = found(some, HeldRows({1: hashes_of(some)[1]}, {0: [1]}))[0]
    assert (diff.read, diff.ids, diff.equal, diff.is_equal) == (2, 1, 1, False)


def test_rows_that_share_an_id_are_counted_apart() -> None:
    some = reading(ship(1, 5), ship(1, 6), tasks=2)
    diff = found(some, HeldRows())[0]
    assert (diff.ids, diff.distinct) == (2, 1)


def test_a_deep_comparison_is_by_values_and_names_extra_attributes() -> None:
    some = reading(*ROWS[:6])
    for as_written, value in ((False, 77), (True, 78)):
        target = HeldRows(dict.fromkeys(range(6), value), {0: range(6)}, extras=frozenset("x"))
        found_ = found(some, target, deep=True, as_written=as_written)
        assert found_[0].equal == 6
        assert {diff.extras for diff in found_.values()} == {frozenset("x")}
        assert target.opened == [(1, True, as_written)]


class LostSplit:
    name = "lost"

    def batches(self) -> Iterator[pa.RecordBatch]:
        raise BqhError("the source went away")


def test_a_side_that_was_not_read_to_its_end_is_not_compared() -> None:
    some = reading(*ROWS[:6])
    target = HeldRows(hashes_of(some), {0: range(6)}, fails=True)
    with pytest.raises(NotCompared, match="the target went away"):
        found(some, target)
    lost: Split = LostSplit()
    broken = Reading(splits=((lost,),), layout=some.layout, cut=some.cut, grid=some.grid)
    with pytest.raises(NotCompared, match="the source went away"):
        found(broken, HeldRows())

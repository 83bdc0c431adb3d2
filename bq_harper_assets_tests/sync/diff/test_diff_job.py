"""The join of both sides, against one that is written plainly."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.diff.diff_job import compared_bin
from bq_harper_assets.sync.protocols import FLAGGED
from bq_harper_assets.sync.spark.hash_blobs import (
    PACKED,
    SourcePacker,
    pack_held,
    unpacked_keys,
)
from bq_harper_assets.sync.write.write_job import counted_bin

Rows = list[tuple[int, int]]  # id, row hash
ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), max_size=40)


def _hashes(ids: list[int]) -> UInt64s:
    return id_hashes(pa.array(ids, pa.int64()), keyless=False)


def bins(source: Rows, held: Rows, per_place: int) -> dict[int, pa.Table]:
    """The packed rows of place 3, as Spark would bring them together."""
    packer = SourcePacker(per_place=per_place)
    batches = []
    for half in (source[::2], source[1::2]):
        places = np.full(len(half), 3, np.int64)
        hashes = np.array([each for _, each in half], np.uint64)
        batches += packer.add(places, _hashes([each for each, _ in half]), hashes)
    batches += packer.rest()
    if held:
        ids = [each for each, _ in held]
        hashes = np.array([each for _, each in held], np.uint64)
        places = np.full(len(held), 3, np.int64)
        batches.append(pack_held(places, _hashes(ids), hashes, pa.array(ids), per_place))
    rows = pa.Table.from_batches(batches, schema=PACKED)
    numbers = rows.column("bin").unique().to_pylist()
    return {number: rows.filter(pa.compute.equal(rows["bin"], number)) for number in numbers}


@settings(deadline=None)
@given(ROWS, ROWS, st.sampled_from([1, 3]))
def test_missing_changed_vanished_and_equal_rows_are_told_apart(
    source: Rows, held: Rows, per_place: int
) -> None:
    source = list(dict(source).items())
    held = list(dict(held).items())
    found = [compared_bin(bin_, per_place) for bin_ in bins(source, held, per_place).values()]
    rows = [row for table in found for row in table.to_pylist()]
    there, here = dict(source), dict(held)
    names = {int(number): each for each, number in enumerate(_hashes(list(range(31))))}

    def ids(column: str) -> set[int]:
        parts = [np.frombuffer(row[column], np.uint64) for row in rows]
        return {names[number] for part in parts for number in part.tolist()}

    vanished = {
        key
        for row in rows
        for key in unpacked_keys(pa.chunked_array([[row["vanished"]]])).to_pylist()
    }
    both = there.keys() & here.keys()
    assert all(row["place"] == 3 for row in rows)
    assert ids("missing") == there.keys() - here.keys()
    assert ids("changed") == {each for each in both if there[each] != here[each]}
    assert vanished == here.keys() - there.keys()
    assert sum(row["equal"] for row in rows) == sum(there[e] == here[e] for e in both)
    assert sum(row["held"] for row in rows) == len(here)
    assert sum(row["ids"] for row in rows) == sum(row["distinct"] for row in rows) == len(there)


def test_a_row_that_is_marked_as_deleted_is_not_gone_again_and_returns_as_changed() -> None:
    held = [(1, int(FLAGGED)), (2, int(FLAGGED)), (3, 5)]
    [bin_] = bins([(1, 7), (3, 5)], held, 1).values()
    [row] = compared_bin(bin_, 1).to_pylist()
    assert np.frombuffer(row["changed"], np.uint64).tolist() == _hashes([1]).tolist()
    assert unpacked_keys(pa.chunked_array([[row["vanished"]]])).to_pylist() == []
    assert (row["held"], row["flagged"], row["equal"]) == (1, 2, 1)


def test_an_id_that_comes_twice_is_counted_twice_and_is_one() -> None:
    [bin_] = bins([(1, 7), (1, 7), (2, 7)], [], 1).values()
    [row] = compared_bin(bin_, 1).to_pylist()
    assert (row["ids"], row["distinct"]) == (3, 2)
    [counted] = counted_bin(bin_, 1).to_pylist()
    assert (counted["place"], counted["sent"], counted["distinct"]) == (3, 3, 2)

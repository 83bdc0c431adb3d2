"""Hashes are packed by bin and unpacked without losing or exchanging one."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bq_harper_assets.sync.spark.hash_blobs import (
    PACKED,
    PACKED_DDL,
    RECEIPTS,
    ROWS_PER_BIN,
    SourcePacker,
    bins_of,
    bins_per_place,
    keys_stream,
    pack_held,
    receipt_row,
    unpacked,
    unpacked_keys,
)

TOP = 0xFFFFFFFF


def by_bin(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    table = pa.Table.from_batches(list(batches), PACKED)
    for number in table.column("bin").unique().to_pylist():
        yield number, table.filter(pc.equal(table.column("bin"), number))


@pytest.mark.parametrize(
    ("rows", "bins"), [(0, 1), (ROWS_PER_BIN - 1, 1), (ROWS_PER_BIN, 2), (3 * ROWS_PER_BIN, 4)]
)
def test_a_place_has_as_many_bins_as_fit_its_rows(rows: int, bins: int) -> None:
    assert bins_per_place(rows) == bins


def test_the_bins_of_a_place_are_its_own_and_the_lowest_and_highest_ids_are_in_them() -> None:
    ids = np.array([0, TOP, 1 << 32, TOP // 2, (1 << 63) + TOP], np.uint64)
    assert bins_of(np.array([0, 0, 0, 0, 0]), ids, 4).tolist() == [0, 3, 0, 1, 3]
    assert bins_of(np.array([2, 2, 2, 2, 2]), ids, 4).tolist() == [8, 11, 8, 9, 11]
    assert bins_of(np.array([2, 1, 0, 2, 7]), ids, 1).tolist() == [2, 1, 0, 2, 7]


def test_the_hashes_of_a_source_stay_beside_their_ids() -> None:
    packer = SourcePacker(per_place=2)
    places = np.array([1, 0, 1, 0])
    ids, hashes = np.array([9, TOP, TOP, 7], np.uint64), np.array([90, 91, 92, 70], np.uint64)
    assert list(packer.add(places[:3], ids[:3], hashes[:3])) == []
    assert list(packer.add(places[3:], ids[3:], hashes[3:])) == []
    found = {
        number: (unpacked(rows.column("ids")).tolist(), unpacked(rows.column("hashes")).tolist())
        for number, rows in by_bin(packer.rest())
    }
    assert found == {0: ([7], [70]), 1: ([TOP], [91]), 2: ([9], [90]), 3: ([TOP], [92])}
    assert list(packer.rest()) == []


def test_many_rows_are_yielded_before_the_end_and_each_once() -> None:
    packer = SourcePacker(per_place=1)
    count = 200_000
    numbers = np.arange(count, dtype=np.uint64)
    few = list(packer.add(np.zeros(count - 1, np.int64), numbers[:-1]))
    assert few == []
    [(_, rows)] = by_bin(packer.add(np.zeros(1, np.int64), numbers[-1:]))
    assert (unpacked(rows.column("ids")) == numbers).all()
    assert unpacked(rows.column("hashes")).tolist() == []
    assert list(packer.rest()) == []


def test_the_rows_of_a_target_keep_their_keys() -> None:
    keys = pa.array(["a", "b", "c", "d"])
    ids, hashes = np.array([1, TOP, 3, 4], np.uint64), np.array([10, 20, 30, 40], np.uint64)
    packed = pack_held(np.array([1, 0, 0, 1]), ids, hashes, keys, 2)
    found = {
        number: (
            unpacked(rows.column("held_ids")).tolist(),
            unpacked(rows.column("held_hashes")).tolist(),
            unpacked_keys(rows.column("held_keys")).to_pylist(),
        )
        for number, rows in by_bin([packed])
    }
    assert found == {
        0: ([3], [30], ["c"]),
        1: ([TOP], [20], ["b"]),
        2: ([1, 4], [10, 40], ["a", "d"]),
    }


def test_keys_of_several_parts_are_joined_in_their_order() -> None:
    parts = [keys_stream(pa.array([3, 1])), None, keys_stream(pa.array([2]))]
    column = pa.chunked_array([pa.array(parts, pa.binary())])
    assert unpacked_keys(column).to_pylist() == [3, 1, 2]
    assert unpacked_keys(column.slice(1, 1)).to_pylist() == []


def test_a_receipt_is_in_a_bin_of_its_own_and_nothing_else_is() -> None:
    row = receipt_row(b"what a task did")
    assert row.to_pylist() == [
        {**dict.fromkeys(PACKED.names), "bin": RECEIPTS, "receipt": b"what a task did"}
    ]
    assert RECEIPTS < 0


def test_the_columns_are_told_to_spark_by_their_types() -> None:
    assert PACKED_DDL == (
        "bin long, ids binary, hashes binary, held_ids binary, held_hashes binary,"
        " held_keys binary, receipt binary"
    )

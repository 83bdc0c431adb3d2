"""The hashes of many rows are packed into one Spark row, so that Spark handles them in bulk.

Rows that must meet are in one bin: those of a place, or a part of them if the place has many.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import Int64s, UInt64s

RECEIPTS = -1  # the bin of the tasks' receipts
PACKED = pa.schema(
    [
        ("bin", pa.int64()),
        ("ids", pa.binary()),  # of the source's rows: their id hashes, 8 bytes each
        ("hashes", pa.binary()),  # and their row hashes
        ("held_ids", pa.binary()),  # the same of the target's rows
        ("held_hashes", pa.binary()),
        ("held_keys", pa.binary()),  # and their ids themselves, as an Arrow stream
        ("receipt", pa.binary()),
    ]
)
PACKED_DDL = ", ".join(f"{name} {'long' if name == 'bin' else 'binary'}" for name in PACKED.names)
ROWS_PER_BIN = 1_000_000
_ROWS_AT_ONCE = 200_000


def bins_per_place(rows: int) -> int:
    """Returns how many bins a place of so many rows is cut into, so that each fits into memory."""
    return 1 + rows // ROWS_PER_BIN


def bins_of(places: Int64s, ids: UInt64s, per_place: int) -> Int64s:
    """Returns the bin of each row; it depends on the id, so that both sides agree on it."""
    if per_place == 1:
        return places
    low = ids & np.uint64(0xFFFFFFFF)
    return places * per_place + ((low * np.uint64(per_place)) >> np.uint64(32)).astype(np.int64)


def receipt_row(receipt: bytes) -> pa.RecordBatch:
    """Makes the row that carries a task's receipt."""
    return _rows(pa.array([RECEIPTS]), receipt=pa.array([receipt], pa.binary()))


@dataclass(kw_only=True)
class SourcePacker:
    """A packer collects hashes of source rows, and yields them when there are enough."""

    per_place: int
    _bins: list[Int64s] = field(default_factory=list)
    _ids: list[UInt64s] = field(default_factory=list)
    _hashes: list[UInt64s] = field(default_factory=list)
    _count: int = 0

    def add(
        self, places: Int64s, ids: UInt64s, hashes: UInt64s | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Adds the hashes of a batch of rows; either every batch has row hashes, or none has."""
        self._bins.append(bins_of(places, ids, self.per_place))
        self._ids.append(ids)
        if hashes is not None:
            self._hashes.append(hashes)
        self._count += len(ids)
        if self._count >= _ROWS_AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields what was not yielded yet."""
        if not self._count:
            return
        bins = np.concatenate(self._bins)
        order = np.argsort(bins, kind="stable")
        found, begins = np.unique(bins[order], return_index=True)
        offsets = np.append(begins, len(bins)) * 8
        columns = {"ids": _binary(offsets, np.concatenate(self._ids)[order])}
        if self._hashes:
            columns["hashes"] = _binary(offsets, np.concatenate(self._hashes)[order])
        yield _rows(pa.array(found), **columns)
        self._bins, self._ids, self._hashes, self._count = [], [], [], 0


def pack_held(
    places: Int64s, ids: UInt64s, hashes: UInt64s, keys: pa.Array, per_place: int
) -> pa.RecordBatch:
    """Packs the target's rows, with their ids as they are stored."""
    bins = bins_of(places, ids, per_place)
    order = np.argsort(bins, kind="stable")
    found, begins = np.unique(bins[order], return_index=True)
    ends = np.append(begins, len(bins))
    keys = keys.take(pa.array(order))
    streams = [_stream(keys[a:b]) for a, b in pairwise(ends)]
    return _rows(
        pa.array(found),
        held_ids=_binary(ends * 8, ids[order]),
        held_hashes=_binary(ends * 8, hashes[order]),
        held_keys=pa.array(streams, pa.binary()),
    )


def unpacked(column: pa.ChunkedArray) -> UInt64s:
    """Reads all hashes of one column of a bin."""
    return np.frombuffer(b"".join(column.drop_null().to_pylist()), np.uint64)


def unpacked_keys(column: pa.ChunkedArray) -> pa.Array:
    """Reads all ids of a bin, in the order of their hashes."""
    parts = [
        pa.ipc.open_stream(part).read_all().column(0) for part in column.drop_null().to_pylist()
    ]
    chunks = [chunk for part in parts for chunk in part.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def keys_stream(keys: pa.Array) -> bytes:
    """Writes ids as bytes that unpacked_keys() reads."""
    return _stream(keys)


def _stream(keys: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([keys], names=["key"])
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _binary(offsets: Int64s, numbers: UInt64s) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(numbers)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _rows(bins: pa.Array, **columns: pa.Array) -> pa.RecordBatch:
    nothing = pa.nulls(len(bins), pa.binary())
    arrays = [bins, *(columns.get(name, nothing) for name in PACKED.names[1:])]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED)

"""One Spark job writes all cells of a turn, in few tasks, with no row data in the JVM."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.sync.identity.occurrences import numbers_by_stream
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets.sync.identity.row_id import hashes_of_ids
from bq_harper_assets.sync.protocols import Split
from bq_harper_assets.sync.source.cell_rows import Reading, batches_of
from bq_harper_assets.sync.spark.hash_blobs import PACKED_DDL, RECEIPTS, unpacked
from bq_harper_assets.sync.spark.receipts import Receipt, merged
from bq_harper_assets.sync.spark.task_waits import noted_for_driver
from bq_harper_assets.sync.spark.tasks import task_rows
from bq_harper_assets.sync.write.write_task import Task, WriteJob, within_limit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COUNTED = pa.schema(
    {"place": pa.int64(), "sent": pa.int64(), "distinct": pa.int64(), "receipt": pa.binary()}
)
_COUNTED_DDL = "place long, sent long, distinct long, receipt binary"
ROWS_COUNTED_HERE = 5_000_000
_HASHES = pa.schema(
    {"bin": pa.int64(), "stream": pa.string(), "ids": pa.binary(), "hashes": pa.binary()}
)
_HASHES_DDL = "bin long, stream string, ids binary, hashes binary"
_DOUBLED = pa.schema({"id": pa.int64(), "hash": pa.int64(), "stream": pa.string(), "n": pa.int64()})
_DOUBLED_DDL = "id long, hash long, stream string, n long"
_UNSIGNED = 0xFFFFFFFFFFFFFFFF
_BIN_BITS = 6


@dataclass(frozen=True)
class WriteResult:
    """The result of a write job is its receipts, and a separate count of the ids that were sent."""

    receipts: tuple[Receipt, ...] = ()
    sent: Mapping[int, int] = field(default_factory=dict)  # by place
    distinct: Mapping[int, int] = field(default_factory=dict)
    written: Mapping[int, int] = field(default_factory=dict)  # by batch


def write_all(spark: "SparkSession", job: WriteJob) -> WriteResult:
    """Writes in one job; if an executor dies, Spark replaces it and its streams are read again."""
    if not job.reading.splits:
        return WriteResult()

    def run(splits: tuple[Split, ...]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        with noted_for_driver(job.target.waits):
            yield from Task(job, context.attemptNumber()).run(splits)

    packed = task_rows(spark, job.reading.splits, run, PACKED_DDL)
    counted = _count_here if job.rows <= ROWS_COUNTED_HERE else _count_in_spark
    sent: dict[int, int] = {}
    distinct: dict[int, int] = {}
    receipts = []
    for row in counted(packed, job.per_place):
        if row["receipt"] is not None:
            receipts.append(Receipt.loads(bytes(row["receipt"])))
        else:
            place = row["place"]
            sent[place] = sent.get(place, 0) + row["sent"]
            distinct[place] = distinct.get(place, 0) + row["distinct"]
    written: Counter[int] = Counter()  # several places may have the same batch
    for place, tally in merged(receipts).items():
        written[int(job.reading.grid.batches[place])] += tally.written
    told = within_limit(receipts, job.table, job.order.most_refused)
    return WriteResult(told, sent, distinct, written)


def _count_here(packed: "DataFrame", per_place: int) -> Iterator[Mapping[str, Any]]:
    """Counts in the driver: eight bytes per row cost less than a second round of Python workers."""
    rows = packed.toArrow()
    for number in rows.column("bin").unique().to_pylist():
        of_bin = rows.filter(pc.equal(rows.column("bin"), number))
        yield from counted_bin(of_bin, per_place).to_pylist()


def _count_in_spark(packed: "DataFrame", per_place: int) -> Iterator[Mapping[str, Any]]:
    def count(rows: pa.Table) -> pa.Table:
        return counted_bin(rows, per_place)

    for row in packed.groupBy("bin").applyInArrow(count, _COUNTED_DDL).collect():
        yield row.asDict()


def counted_bin(rows: pa.Table, per_place: int) -> pa.Table:
    """Counts the ids of one bin, all and distinct; receipts are passed on."""
    number = rows.column("bin")[0].as_py()
    if number == RECEIPTS:
        receipts = rows.column("receipt").combine_chunks()
        nothing = pa.nulls(len(receipts), pa.int64())
        return pa.table([rows.column("bin"), nothing, nothing, receipts], schema=_COUNTED)
    ids = unpacked(rows.column("ids"))
    counted = [[number // per_place], [len(ids)], [len(np.unique(ids))], [None]]
    return pa.table(counted, schema=_COUNTED)


def numbered(spark: "SparkSession", reading: Reading) -> Reading:
    """Returns the reading with numbers for equal rows; this reads all rows one more time."""
    if not reading.splits:
        return reading

    def run(splits: tuple[Split, ...]) -> Iterator[pa.RecordBatch]:
        return _hashes(reading, splits)

    rows = (
        task_rows(spark, reading.splits, run, _HASHES_DDL)
        .groupBy("bin")
        .applyInArrow(shared_contents, _DOUBLED_DDL)
        .collect()
    )
    return _with_numbers(reading, (row.asDict() for row in rows))


def numbered_here(reading: Reading) -> Reading:
    """Does what numbered() does in this process, without Spark; it is meant for few rows."""
    parts = [part for splits in reading.splits for part in _hashes(reading, splits)]
    rows = pa.Table.from_batches(parts, _HASHES)
    return _with_numbers(reading, shared_contents(rows).to_pylist()) if rows.num_rows else reading


def _with_numbers(reading: Reading, doubled: Iterable[Mapping[str, Any]]) -> Reading:
    counts = (
        (row["id"] & _UNSIGNED, row["hash"] & _UNSIGNED, row["stream"], row["n"]) for row in doubled
    )
    return replace(reading, numbers=numbers_by_stream(counts))


def _hashes(reading: Reading, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    for split in splits:
        for batch in batches_of(reading, split):
            hashes = row_hashes(batch, reading.layout.names)
            ids = hashes_of_ids(batch, reading.layout, hashes)
            order = np.argsort(ids)
            # The highest bits make the bin, so that the sorted rows of a bin are adjacent already.
            bins = (ids[order] >> np.uint64(64 - _BIN_BITS)).astype(np.int64)
            found, begins = np.unique(bins, return_index=True)
            parts = [
                [part.tobytes() for part in np.split(each[order], begins[1:])]
                for each in (ids, hashes)
            ]
            yield pa.record_batch([found, [split.name] * len(found), *parts], schema=_HASHES)


def shared_contents(rows: pa.Table) -> pa.Table:
    """Counts, per stream, the rows that share their id with other rows of these bins."""
    ids, hashes = (unpacked(rows.column(name)) for name in ("ids", "hashes"))
    names, origins = np.unique(rows.column("stream").to_pylist(), return_inverse=True)
    sizes = [len(part) // 8 for part in rows.column("ids").to_pylist()]
    origin = np.repeat(origins, sizes)
    order = np.lexsort((origin, hashes, ids))
    sorted_ = np.stack([ids[order], hashes[order], origin[order].astype(np.uint64)])
    differs = (sorted_[:, 1:] != sorted_[:, :-1]).any(axis=0)
    begins = np.flatnonzero(np.concatenate([[True], differs]))
    counts = np.diff(np.append(begins, len(order)))
    of_id, of_hash, of_stream = sorted_[:, begins]
    _, at = np.unique(of_id, return_inverse=True)
    shared = np.bincount(at, counts)[at] > 1
    columns = [of_id.view(np.int64), of_hash.view(np.int64), names[of_stream.astype(np.int64)]]
    kept = [pa.array(column[shared]) for column in (*columns, counts)]
    return pa.table(kept, schema=_DOUBLED)

"""One Spark job moves all cells of a run: few tasks, each with its streams, no data in the JVM."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.numbering import Numbers, numbers_by_stream
from bq_harper_assets.sync.receipts import Receipt
from bq_harper_assets.sync.row_hash import row_hashes
from bq_harper_assets.sync.task import OUTPUT, RECEIPT, Move, Task, batches_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OUTPUT_DDL = "place long, id long, receipt binary"
_HASHES = pa.schema([("stream", pa.string()), ("hash", pa.int64())])
_HASHES_DDL = "stream string, hash long"


@dataclass(frozen=True)
class Moved:
    """What all tasks did, and what Spark counted of the ids they sent."""

    receipts: tuple[Receipt, ...]
    sent: Mapping[int, int]  # by place
    distinct: Mapping[int, int]


def spread(streams: Sequence[str], tasks: int) -> tuple[tuple[str, ...], ...]:
    """The streams dealt out to at most so many tasks."""
    return tuple(tuple(streams[first::tasks]) for first in range(min(tasks, len(streams))))


def move_all(spark: "SparkSession", move: Move) -> Moved:
    """One job; an executor that dies is replaced by Spark, and its streams are moved again."""
    from pyspark.sql import functions as f

    if not move.streams:
        return Moved((), {}, {})

    def run(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from Task(move, context.attemptNumber()).run(move.streams[number])

    rows = (
        _one_row_per_task(spark, len(move.streams))
        .mapInArrow(run, _OUTPUT_DDL)
        # By the receipt too, which rows of data do not have: collecting receipts in the same step
        # as the counts would make Spark sort all rows.
        .groupBy("place", "receipt")
        .agg(
            f.count(f.lit(1)).alias("rows"),
            f.count("id").alias("sent"),
            f.count_distinct("id").alias("distinct"),
        )
        .collect()
    )
    receipts = [bytes(row.receipt) for row in rows if row.place == RECEIPT for _ in range(row.rows)]
    return Moved(
        tuple(map(Receipt.loads, receipts)),
        {row.place: row.sent for row in rows if row.place != RECEIPT},
        {row.place: row.distinct for row in rows if row.place != RECEIPT},
    )


def numbered(spark: "SparkSession", move: Move) -> Move:
    """The move with a number for each of several equal rows; reads the rows once more."""
    from pyspark.sql import functions as f

    def run(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _hashes(move, move.streams[number])

    hashes = _one_row_per_task(spark, len(move.streams)).mapInArrow(run, _HASHES_DDL)
    counts = hashes.groupBy("hash", "stream").agg(f.count(f.lit(1)).alias("n"))
    rows = (
        counts.groupBy("hash")
        .agg(f.sum("n").alias("total"), f.collect_list(f.struct("stream", "n")).alias("parts"))
        .where("total > 1")
        .collect()
    )
    return replace(move, numbers=_numbers(rows))


def _numbers(rows: Sequence[Any]) -> Mapping[str, Numbers]:
    return numbers_by_stream(
        (part.stream, row.hash & 0xFFFFFFFFFFFFFFFF, part.n) for row in rows for part in row.parts
    )


def _hashes(move: Move, streams: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for stream in streams:
        for batch in batches_of(move, stream):
            hashes = row_hashes(batch, move.plan.names).view(np.int64)
            names = pa.repeat(pa.scalar(stream), len(hashes))
            yield pa.record_batch([names, pa.array(hashes)], schema=_HASHES)


def _one_row_per_task(spark: "SparkSession", tasks: int) -> "DataFrame":
    # createDataFrame().repartition() may put two of them into one task.
    return spark.range(0, tasks, 1, tasks)


assert OUTPUT.names == [part.split()[0] for part in _OUTPUT_DDL.split(", ")]

"""The parts of a job run in Spark, each in a task of its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Part = TypeVar("_Part")


def task_rows(
    spark: "SparkSession",
    parts: Sequence[_Part],
    run: Callable[[_Part], Iterator[pa.RecordBatch]],
    ddl: str,
) -> "DataFrame":
    """Runs each part in one task, and returns the rows that all of them yield."""

    def run_numbered(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from run(parts[number])

    # createDataFrame().repartition() may put two of them into one task.
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(run_numbered, ddl)

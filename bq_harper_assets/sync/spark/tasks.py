"""The parts of a job run in Spark, each in a task of its own."""

import gc
import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Part = TypeVar("_Part")
_modules_spared = 0  # in this process


def task_rows(
    spark: "SparkSession",
    parts: Sequence[_Part],
    run: Callable[[_Part], Iterator[pa.RecordBatch]],
    ddl: str,
) -> "DataFrame":
    """Runs each part in one task, and returns the rows that all of them yield."""

    def run_numbered(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_archives()
        spare_modules()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from run(parts[number])

    # createDataFrame().repartition() may put two of them into one task.
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(run_numbered, ddl)


def forget_archives() -> None:
    """Forgets the importers of archives; an import that needs one makes it again.

    Before every task Spark calls `importlib.invalidate_caches()`. For an archive this reads the
    whole list of its files again, and Spark puts two large ones and a jar on the path of its
    workers: that took more time than everything else that a small task does.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def spare_modules() -> None:
    """Exempts what the modules of this worker hold from garbage collection, once for each of them.

    After every task Spark calls `gc.collect()`, which goes through every object of every module
    that is loaded: that took nearly all processor time of a small task.
    """
    global _modules_spared
    if len(sys.modules) > _modules_spared:
        _modules_spared = len(sys.modules)
        gc.freeze()

"""What Spark raises for itself, told as an error of ours: which cells, what is safe, what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from bq_harper_assets.errors import BqhError
from bq_harper_assets.sync.cells import Cell


class SparkGaveUp(BqhError):
    """A task failed as often as Spark tries it, or Spark itself is gone."""


@contextmanager
def errors_of_spark(table: str, cells: Iterable[Cell], then: str) -> Iterator[None]:
    """For a block that runs Spark jobs for these cells; `then` is what is safe, and what to do."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        keys = sorted(cell.key for cell in cells)
        raise SparkGaveUp(
            f"Spark gave up on {table}, {len(keys)} cells from {keys[0]} to {keys[-1]}: "
            f"{_said(error)}. {then}"
        ) from error


def _said(error: Exception) -> str:
    """The first line of each cause: the rest of what Spark says is stack traces."""
    lines = []
    java = getattr(error, "java_exception", None)
    while java is not None:
        lines += str(java.getMessage()).strip().splitlines()[:1]
        java = java.getCause()
    lines = lines or str(error).strip().splitlines()[:1] or [type(error).__name__]
    return ": ".join(line.rstrip(":. ") for line in lines)

"""Spark's own errors become errors of the engine, which name the cells and what to do."""

import builtins
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from bq_harper_assets.errors import BqhError
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.errors import SparkGaveUp, SparkIsGone, TaskCannotSucceed
from bq_harper_assets.sync.spark.session import is_gone

GONE_WITHIN_S = 2.0  # Spark's connections break a moment before its process ends


@contextmanager
def errors_of_spark(table: str, cells: Iterable[Cell], then: str) -> Iterator[None]:
    """Translates the errors of a block that runs Spark jobs for these cells.

    `then` says what is safe, and what to do.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import AnalysisException, PySparkException, PythonException

    try:
        yield
    except BqhError:
        raise
    except Exception as error:
        keys = sorted(cell.key for cell in cells)
        of_cells = f"{table}, {len(keys)} cells from {keys[0]} to {keys[-1]}"
        is_broken = isinstance(error, Py4JError | OSError | EOFError)
        if is_gone(GONE_WITHIN_S if is_broken else 0.0):
            raise SparkIsGone(
                f"Spark's Java process is gone while it worked on {of_cells}: it was killed, or it"
                f" ran out of memory; .local/spark.log has its last words. {then}"
            ) from error
        if isinstance(error, PythonException | AnalysisException) and not _may_heal(error):
            raise TaskCannotSucceed(
                f"Spark cannot do {of_cells}, and trying again would not help: {_raised(error)}."
                f" {then}"
            ) from error
        if not isinstance(error, PySparkException | Py4JError):
            raise
        raise SparkGaveUp(f"Spark gave up on {of_cells}: {_said(error)}. {then}") from error


def _raised(error: Exception) -> str:
    """Returns the last line of a task's traceback, or the first line of an AnalysisException."""
    from pyspark.errors import AnalysisException

    lines = [line for line in str(error).splitlines() if line.strip() and line[0] != " "]
    if not lines:
        return type(error).__name__
    told = lines[0] if isinstance(error, AnalysisException) else lines[-1]
    return told.rstrip(". ")


def _may_heal(error: Exception) -> bool:
    """Says whether the error is of the machine, which may have more memory or disk next time."""
    kind = getattr(builtins, _raised(error).partition(":")[0], None)
    return isinstance(kind, type) and issubclass(kind, OSError | MemoryError)


def _said(error: Exception) -> str:
    """Joins the first line of each cause; the rest of Spark's text is stack traces."""
    lines = []
    java = getattr(error, "java_exception", None)
    while java is not None:
        lines += str(java.getMessage()).strip().splitlines()[:1]
        java = java.getCause()
    lines = lines or str(error).strip().splitlines()[:1] or [type(error).__name__]
    return ": ".join(line.rstrip(":. ") for line in lines)

"""Runs the functions of a Spark job in this thread: what tasks do, without the seconds of a JVM."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

ArrowTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass
class Attempt:
    """Stands for pyspark's TaskContext: which try of a task this is."""

    number: int = 0

    def attemptNumber(self) -> int:
        """0 for the first."""
        return self.number


@dataclass(frozen=True)
class LocalSpark:
    """As much of a SparkSession as a run asks for."""

    attempt: Attempt = field(default_factory=Attempt)
    on_job: Callable[[str], None] = lambda when: None  # "before" its first task, "after" its last
    dies_at_its_end: Callable[[], bool] = lambda: False  # asked per task: then it is tried again

    @property
    def conf(self) -> dict[str, str]:
        """Nothing is set."""
        return {}

    def range(self, start: int, end: int, step: int, tasks: int) -> "Tasks":
        """One task per number."""
        assert tasks == len(range(start, end, step))
        return Tasks(self, range(start, end, step))


@dataclass(frozen=True)
class Tasks:
    """Numbers, each in a task of its own."""

    spark: LocalSpark
    numbers: range

    def mapInArrow(self, run: ArrowTask, ddl: str) -> "Frame":
        """Runs all tasks now, one after the other."""
        self.spark.on_job("before")
        batches: list[pa.RecordBatch] = []
        for number in self.numbers:
            self.spark.attempt.number = 0
            if self.spark.dies_at_its_end():
                list(run([_number(number)]))  # what it did stays done; nobody hears of it
                self.spark.attempt.number = 1
            batches += run([_number(number)])
        self.spark.on_job("after")
        return Frame(batches)


@dataclass(frozen=True)
class Frame:
    """What the tasks gave out."""

    batches: list[pa.RecordBatch]

    def toArrow(self) -> pa.Table:
        """All of it."""
        return pa.Table.from_batches(self.batches)

    def collect(self) -> list["Row"]:
        """Row by row."""
        return [Row(row) for batch in self.batches for row in batch.to_pylist()]

    def groupBy(self, column: str) -> "Groups":
        """By the values of a column."""
        return Groups(self, column)


@dataclass(frozen=True)
class Groups:
    """Rows that share a value."""

    frame: Frame
    column: str

    def applyInArrow(self, run: Callable[[pa.Table], pa.Table], ddl: str) -> Frame:
        """Each group through the function."""
        if not self.frame.batches:
            return Frame([])
        rows = self.frame.toArrow()
        values = rows.column(self.column)
        groups = [rows.filter(pc.equal(values, value)) for value in values.unique()]
        return Frame([batch for group in groups for batch in run(group).to_batches()])


class Row:
    """A row with its columns as attributes."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.__dict__.update(columns)

    def asDict(self) -> dict[str, Any]:
        """By name."""
        return dict(self.__dict__)


def _number(number: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array([number])], names=["id"])

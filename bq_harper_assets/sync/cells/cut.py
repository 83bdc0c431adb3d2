"""A cut says how a route divides its rows into ranges: by time or by key; slices divide them again.

A range is two whole numbers on the axis of its cut: microseconds since 1970, or numbers of key
ranges. Arithmetic on these finds the cell of a row, whichever way the rows are divided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import pyarrow as pa

from bq_harper_assets.instants import floor_to_window, instant_at
from bq_harper_assets.sync.cells.window import Window, micros_of


class CellRange(Protocol):
    """A cell range is a window or a key range; all ranges of a cut are equally long on its axis."""

    @property
    def axis_start(self) -> int:
        """Returns where the range begins on the axis of its cut."""
        ...

    @property
    def axis_end(self) -> int:
        """Returns where it ends; the end does not belong to it."""
        ...

    @property
    def key(self) -> str:
        """Returns what people and Dagster call the range."""
        ...

    @property
    def options(self) -> str:
        """Returns the options by which a command names the range; none names all of the table."""
        ...


class Cut(Protocol):
    """A cut divides the rows of a route into ranges; it is sent to the tasks."""

    @property
    def rows_move(self) -> bool:
        """Says whether a row may come to lie in another range while its id stays the same."""
        ...

    @property
    def follows_time(self) -> bool:
        """Says whether ranges are times, so that the newest is open and a table can lag behind."""
        ...

    def range_at(self, value: int) -> CellRange:
        """Returns the range that has this value of the axis."""
        ...

    def axis_values(
        self, batch: pa.RecordBatch, timestamp: str, key: Sequence[str]
    ) -> pa.Int64Array:
        """Returns each row's value on the axis; it is NULL if the row belongs to no range.

        `timestamp` and `key` name the columns that the batch has for them.
        """
        ...


@dataclass(frozen=True)
class TimeCut:
    """A time cut divides rows into windows by their timestamp, which may change."""

    window: timedelta

    @property
    def rows_move(self) -> bool:
        """Says that a row whose time changes may come to lie in another window."""
        return True

    @property
    def follows_time(self) -> bool:
        """Says that rows may still arrive in the newest window."""
        return True

    def range_at(self, value: int) -> Window:
        """Returns the window that has this moment, in microseconds since 1970."""
        start = floor_to_window(instant_at(value), self.window)
        return Window(start, start + self.window)

    def axis_values(
        self, batch: pa.RecordBatch, timestamp: str, key: Sequence[str]
    ) -> pa.Int64Array:
        """Returns the time of each row in microseconds since 1970."""
        return micros_of(batch.column(timestamp))

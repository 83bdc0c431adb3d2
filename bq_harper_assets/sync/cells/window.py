"""A window is a half-open range of the timestamp column; all have one length, counted from 1970."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from bq_harper_assets.instants import EPOCH, floor_to_window, micros_at
from bq_harper_assets.sync.arrays.arrow_memory import plain
from bq_harper_assets.sync.errors import NotATime

Span = tuple[datetime, datetime]  # half-open, in UTC; of any length


@dataclass(frozen=True, order=True)
class Window:
    """A window is the time range [start, end), both in UTC."""

    start: datetime
    end: datetime

    @property
    def key(self) -> str:
        """Returns the window's Dagster partition key, such as 2026-11-16T07:00."""
        return self.start.replace(tzinfo=None).isoformat(timespec="minutes")

    @property
    def axis_start(self) -> int:
        """Returns the microseconds from 1970 to the window's start."""
        return micros_at(self.start)

    @property
    def axis_end(self) -> int:
        """Returns the microseconds from 1970 to the window's end."""
        return micros_at(self.end)

    @property
    def options(self) -> str:
        """Returns the options by which a command names the window."""
        return f"--from {self.start:%FT%H:%M} --to {self.end:%FT%H:%M}"

    @classmethod
    def parse(cls, key: str, length: timedelta) -> "Window":
        """Returns the window of this key; raises ValueError if no window of this length has it."""
        start = datetime.strptime(key, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
        window = cls(start, start + length)
        if (start - EPOCH) % length or window.key != key:
            raise ValueError(f"{key!r} is not the start of a window of {length}")
        return window


def windows_between(start: datetime, end: datetime, length: timedelta) -> Iterator[Window]:
    """Yields every window that holds a moment of [start, end), in order."""
    at = floor_to_window(start, length)
    while start < end and at < end:
        yield Window(at, at + length)
        at += length


def micros_of(timestamps: pa.Array) -> pa.Int64Array:
    """Converts TIMESTAMP, DATETIME (taken as UTC) or DATE to microseconds since 1970.

    NULLs stay NULL; any other type raises NotATime.
    """
    array = plain(timestamps)
    if pa.types.is_date(array.type):
        array = array.cast(pa.date32()).cast(pa.timestamp("us"))
    if not pa.types.is_timestamp(array.type):
        raise NotATime(array.type)
    return array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64())

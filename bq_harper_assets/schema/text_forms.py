"""Writes single values as the texts in which Harper stores them, and reads these texts again.

TIMESTAMP  2026-11-16T07:00:00.000000Z   27 characters: in Harper's ranges text order is time order
DATETIME   2026-11-16T07:00:00.000000
DATE       2026-11-16
TIME       07:00:00.000000
BYTES      base64
NUMERIC    no exponent, and no zeros that say nothing
INTERVAL   1-2 3 4:5:6.789               years-months days hours:minutes:seconds
RANGE      [2026-11-16, UNBOUNDED)       bounds as they are stored alone

The vectorised writers of the sync must give the same; a test holds them together.
Readers are strict: a text that would not be written back as it is raises ValueError.
"""

import base64
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, TypeVar

from bq_harper_assets.schema.logical import Kind

UNBOUNDED = "UNBOUNDED"
_NANOS = 1_000_000_000
_INTERVAL = re.compile(r"(-?)(\d+)-(\d+) (-?\d+) (-?)(\d+):(\d+):(\d+)(?:\.(\d{1,9}))?", re.ASCII)
_RANGE = re.compile(r"\[([^,]+), ([^,]+)\)")

_Value = TypeVar("_Value")


class Interval(NamedTuple):
    """An interval has the three parts of Arrow's month_day_nano value, and equals it."""

    months: int
    days: int
    nanoseconds: int


class Range(NamedTuple):
    """A range is half-open; a bound of None means unbounded."""

    start: Any
    end: Any


def timestamp_text(value: datetime) -> str:
    """Writes an aware datetime as the text of a TIMESTAMP, in UTC."""
    if value.tzinfo is None:
        raise ValueError("a TIMESTAMP is an instant, and this datetime has no time zone")
    return f"{datetime_text(value.astimezone(UTC).replace(tzinfo=None))}Z"


def datetime_text(value: datetime) -> str:
    """Writes a naive datetime as the text of a DATETIME."""
    return value.isoformat(timespec="microseconds")


def time_text(value: time) -> str:
    return value.isoformat(timespec="microseconds")


def bytes_text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def decimal_text(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def interval_text(value: Interval) -> str:
    months, days, nanos = value
    seconds, fraction = divmod(abs(nanos), _NANOS)
    text = (
        f"{'-' * (months < 0)}{abs(months) // 12}-{abs(months) % 12} {days} "
        f"{'-' * (nanos < 0)}{seconds // 3600}:{seconds // 60 % 60}:{seconds % 60}"
    )
    if not fraction:
        return text
    digits = f"{fraction:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}"


def range_text(value: Range) -> str:
    return f"[{_bound_text(value.start)}, {_bound_text(value.end)})"


def read_text(kind: Kind, text: str) -> Any:
    """Reads the value that a text stands for; raises ValueError if no value of the kind has it."""
    if kind not in _READERS:
        return text
    return _READERS[kind](text)


def _strict(
    read: Callable[[str], _Value], write: Callable[[_Value], str]
) -> Callable[[str], _Value]:
    def read_strictly(text: str) -> _Value:
        try:
            value = read(text)
            is_ours = write(value) == text
        except (ValueError, InvalidOperation) as error:
            raise ValueError(f"{text!r} cannot be read") from error
        if not is_ours:
            raise ValueError(f"{text!r} is not how the sync writes it")
        return value

    return read_strictly


def _read_interval(text: str) -> Interval:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError("no interval")
    sign, years, months, days, clock_sign, hours, minutes, seconds, fraction = match.groups("")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    nanos = whole * _NANOS + int(fraction.ljust(9, "0"))
    return Interval(
        (int(years) * 12 + int(months)) * (-1 if sign else 1),
        int(days),
        nanos * (-1 if clock_sign else 1),
    )


def _read_range(text: str) -> Range:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError("no range")
    return Range(*map(_read_bound, match.groups()))


def _read_bound(text: str) -> date | None:
    if text == UNBOUNDED:
        return None
    if len(text) == len("2026-11-16"):
        return date.fromisoformat(text)
    return datetime.fromisoformat(text)


def _bound_text(bound: date | None) -> str:
    if bound is None:
        return UNBOUNDED
    if not isinstance(bound, datetime):
        return bound.isoformat()
    return datetime_text(bound) if bound.tzinfo is None else timestamp_text(bound)


_DECIMAL = _strict(Decimal, decimal_text)
_READERS: dict[Kind, Callable[[str], Any]] = {
    Kind.INT64: _strict(int, str),
    Kind.NUMERIC: _DECIMAL,
    Kind.BIGNUMERIC: _DECIMAL,
    Kind.BYTES: _strict(base64.b64decode, bytes_text),
    Kind.TIMESTAMP: _strict(datetime.fromisoformat, timestamp_text),
    Kind.DATETIME: _strict(datetime.fromisoformat, datetime_text),
    Kind.DATE: _strict(date.fromisoformat, date.isoformat),
    Kind.TIME: _strict(time.fromisoformat, time_text),
    Kind.INTERVAL: _strict(_read_interval, interval_text),
    Kind.RANGE: _strict(_read_range, range_text),
}

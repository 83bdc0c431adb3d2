"""Reads the texts in which Harper stores values, and writes single values as such texts.

TIMESTAMP  2026-11-16T07:00:00.000000Z   27 characters: in Harper's ranges text order is time order
DATETIME   2026-11-16T07:00:00.000000
DATE       2026-11-16
TIME       07:00:00.000000
BYTES      base64
NUMERIC    no exponent, and no zeros that say nothing
INTERVAL   1-2 3 4:5:6.789               years-months days hours:minutes:seconds
RANGE      [2026-11-16, UNBOUNDED)       bounds as they are stored alone

Whole columns are written by the other modules of this room. A single value costs a hundred times
more there than in the standard library, which writes all kinds but INTERVAL the same way.
Readers are strict: a text that would not be written back as it is raises ValueError.
"""

import base64
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import pyarrow as pa

from bq_harper_assets.stores.harper.encoding.intervals_and_ranges import UNBOUNDED, interval_texts

_COUNT, _SIXTY = r"(0|[1-9]\d*)", r"(\d|[1-5]\d)"
# A zero has no sign. A fraction has 3, 6 or 9 digits, as many as are needed.
_INTERVAL = re.compile(
    rf"(-(?!0-0 ))?{_COUNT}-(\d|1[01]) (0|-?[1-9]\d*) "
    rf"(-(?!0:0:0$))?{_COUNT}:{_SIXTY}:{_SIXTY}(?:\.((?:\d{{3}}){{1,3}})(?<!000))?",
    re.ASCII,
)
_MOST_INT32, _MOST_INT64 = 2**31 - 1, 2**63 - 1  # what an interval of Arrow holds
_RANGE = re.compile(r"\[([^,]+), ([^,]+)\)")


class Range(NamedTuple):
    """A range is half-open; a bound of None means unbounded."""

    start: Any
    end: Any


def stored_text(value: Any) -> str:
    """Writes one value as a sync stores its kind as text; an aware datetime is a TIMESTAMP."""
    match value:
        case datetime() if value.tzinfo is not None:
            return f"{stored_text(value.astimezone(UTC).replace(tzinfo=None))}Z"
        case datetime() | time():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Decimal():
            text = f"{value:f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
        case Range():
            start, end = (UNBOUNDED if each is None else stored_text(each) for each in value)
            return f"[{start}, {end})"
        case pa.MonthDayNano():
            return str(interval_texts(pa.array([value]))[0])
    return str(value)


def strictly(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Makes a reader refuse, with ValueError, a text that a sync would write in another way."""

    def read_strictly(text: str) -> Any:
        try:
            value = read(text)
        except (ValueError, InvalidOperation) as error:
            raise ValueError(f"{text!r} cannot be read") from error
        if stored_text(value) != text:
            raise ValueError(f"{text!r} is not how the sync writes it")
        return value

    return read_strictly


def read_interval(text: str) -> pa.MonthDayNano:
    """Reads an interval; what it matches needs not be written again, which costs much."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not how the sync writes an interval")
    sign, years, months, days, clock_sign, hours, minutes, seconds, fraction = match.groups("")
    total_months = int(years) * 12 + int(months)
    nanos = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**9
    nanos += int(fraction.ljust(9, "0"))
    if total_months > _MOST_INT32 or abs(int(days)) > _MOST_INT32 or nanos > _MOST_INT64:
        raise ValueError(f"{text!r} is longer than an interval that can be written back")
    return pa.MonthDayNano(
        (-total_months if sign else total_months, int(days), -nanos if clock_sign else nanos)
    )


def read_range(text: str) -> Range:
    """Reads the bounds of a range; what is no range raises ValueError."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError("no range")
    return Range(*map(_read_bound, match.groups()))


def _read_bound(text: str) -> date | None:
    if text == UNBOUNDED:
        return None
    is_day = len(text) == len("2026-11-16")
    return date.fromisoformat(text) if is_day else datetime.fromisoformat(text)

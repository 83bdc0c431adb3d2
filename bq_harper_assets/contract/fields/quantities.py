"""Numbers, flags, durations, windows and instants are read strictly: a wrong value is refused."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from bq_harper_assets.contract.fields.declared_model import Reads

# Each divides the day, so all windows of a day line up.
WINDOW_MINUTES = (5, 15, 30, 60, 1440)
_WINDOW_TEXT = re.compile(r"(\d{1,4}) ?(m|min|minutes?|h|hours?|d|days?)?")
_DURATION_TEXT = re.compile(r"(\d{1,9}) ?(s|m|h|d)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def whole(minimum: int, maximum: int, *, unit: str = "", too_small: str = "") -> Reads:
    """Reads a whole number within limits; `too_small` says more to those who mistook the unit."""
    limits = f"must be a whole number from {minimum} to {maximum}{' ' + unit if unit else ''}"

    def parse(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"[-+]?\d{1,18}", value):
            value = int(value)
        if type(value) is not int or value > maximum:
            raise ValueError(limits)
        if value < minimum:
            raise ValueError(f"{limits}{': ' + too_small if too_small and value > 0 else ''}")
        return value

    return Reads(parse, {"type": "integer", "minimum": minimum, "maximum": maximum})


def _flag(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


FLAG = Reads(_flag, {"type": "boolean"})


def duration(maximum: timedelta, minimum: timedelta = timedelta(0)) -> Reads:
    """Reads a duration such as 90s, 5m, 2h or 1d; a bare number counts seconds."""
    limit, least = int(maximum.total_seconds()), int(minimum.total_seconds())
    limits = f"must be a duration from {duration_text(minimum)} to {limit // 86400}d"

    def parse(value: Any) -> timedelta:
        if isinstance(value, timedelta):
            seconds = value.total_seconds()
        elif type(value) is int:
            seconds = value
        elif isinstance(value, str) and (match := _DURATION_TEXT.fullmatch(value.strip())):
            seconds = int(match[1]) * _SECONDS[match[2] or "s"]
        else:
            raise ValueError(
                "must be a duration such as 90s, 5m, 2h or 1d; a bare number counts seconds"
            )
        if not least <= seconds <= limit:
            raise ValueError(limits)
        return timedelta(seconds=seconds)

    text = {"type": "string", "pattern": r"^\s*\d{1,9} ?[smhd]\s*$"}
    return Reads(parse, {"anyOf": [{"type": "integer", "minimum": least, "maximum": limit}, text]})


def _window(value: Any) -> timedelta:
    minutes: int | None = None
    if isinstance(value, timedelta):
        whole_minutes, rest = divmod(value, timedelta(minutes=1))
        minutes = None if rest else whole_minutes
    elif type(value) is int:
        minutes = value
    elif isinstance(value, str) and (match := _WINDOW_TEXT.fullmatch(value.strip())):
        minutes = int(match[1]) * {"m": 1, "h": 60, "d": 1440}[(match[2] or "m")[0]]
    if minutes not in WINDOW_MINUTES:
        raise ValueError("must be 5m, 15m, 30m, 60m or 1d")
    return timedelta(minutes=minutes)


WINDOW = Reads(
    _window,
    {
        "anyOf": [
            {"enum": list(WINDOW_MINUTES)},
            {
                "type": "string",
                "pattern": r"^\s*((5|15|30|60|1440) ?(m|min|minutes?)"
                r"|(1|24) ?(h|hours?)|1 ?(d|days?))\s*$",
            },
        ]
    },
)


def _instant(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            value = None
    if not isinstance(value, datetime):
        raise ValueError(
            "must be an ISO time such as 2026-01-31T00:00:00Z; without a zone it is UTC"
        )
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be a time between the years 1 and 9999") from None


INSTANT = Reads(_instant, {"type": "string", "pattern": r"^\s*\d{4}-?(\d\d|W)"})


def window_text(window: timedelta) -> str:
    """Writes the length of a window as a user does."""
    minutes = window // timedelta(minutes=1)
    return "1d" if minutes == 1440 else f"{minutes}m"


def duration_text(length: timedelta) -> str:
    """Writes the duration in its largest whole unit."""
    seconds = int(length.total_seconds())
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"

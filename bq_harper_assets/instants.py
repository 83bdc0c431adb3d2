"""Instants are counted in microseconds from 1970 in UTC, and windows are cut from there."""

from datetime import UTC, date, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)


def micros_at(moment: datetime) -> int:
    """Returns the microseconds from 1970 to the moment."""
    return (moment - EPOCH) // MICROSECOND


def instant_at(micros: int) -> datetime:
    """Returns the instant that is so many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=int(micros))


def floor_to_window(moment: datetime, length: timedelta) -> datetime:
    """Returns the start of the window that holds this moment."""
    return (moment - (moment - EPOCH) % length).astimezone(UTC)


def floor_to_day(moment: datetime) -> datetime:
    """Returns the midnight at or before this moment, in UTC."""
    return floor_to_window(moment, _DAY)


def first_day_from(moment: datetime) -> date:
    """Returns the first day that begins at or after this moment, in UTC."""
    return EPOCH.date() - (EPOCH - moment) // _DAY * _DAY


def count_windows(start: datetime, end: datetime, length: timedelta) -> int:
    """Counts the windows that begin before `end`, from the one that holds `start`."""
    return -((floor_to_window(start, length) - end) // length)

"""Where windows and days begin, in whatever zone the moment is written and also before 1970."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from bq_harper_assets.instants import (
    count_windows,
    first_day_from,
    floor_to_day,
    floor_to_window,
    instant_at,
    micros_at,
)
from bq_harper_assets_tests.stores.small_tables import utc

HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("moment", "micros"),
    [
        (utc(1970, 1, 1), 0),
        (utc(1970, 1, 2) + TICK, 86_400_000_001),
        (utc(1969, 12, 31, 23, 59, 59), -1_000_000),
    ],
)
def test_an_instant_is_counted_in_microseconds_and_back(moment: datetime, micros: int) -> None:
    assert micros_at(moment) == micros
    assert instant_at(micros) == moment
    assert instant_at(micros).tzinfo is UTC


@pytest.mark.parametrize(
    ("moment", "day"),
    [
        (utc(2026, 3, 1), date(2026, 3, 1)),
        (utc(2026, 3, 1) + TICK, date(2026, 3, 2)),
        (utc(1970, 1, 1), date(1970, 1, 1)),
        (utc(1969, 12, 31), date(1969, 12, 31)),
        (utc(1969, 12, 31) - TICK, date(1969, 12, 31)),
    ],
)
def test_a_day_is_the_first_that_begins_at_or_after_the_moment(moment: datetime, day: date) -> None:
    assert first_day_from(moment) == day


def test_windows_and_days_begin_in_utc_whatever_the_zone() -> None:
    east = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert floor_to_window(east, HOUR) == utc(2026, 2, 28, 23)
    assert floor_to_window(east, HOUR).tzinfo is UTC
    assert floor_to_day(east) == utc(2026, 2, 28)
    assert floor_to_day(utc(1969, 12, 31, 12)) == utc(1969, 12, 31)


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [
        (utc(2026, 3, 1, 0, 30), utc(2026, 3, 1, 1), 1),
        (utc(2026, 3, 1, 0, 30), utc(2026, 3, 1, 1) + TICK, 2),
        (utc(2026, 3, 1), utc(2026, 3, 1), 0),
        (utc(1969, 12, 31, 23, 30), utc(1970, 1, 1, 0, 30), 2),
    ],
)
def test_a_window_counts_as_soon_as_it_has_begun(
    start: datetime, end: datetime, count: int
) -> None:
    assert count_windows(start, end, HOUR) == count

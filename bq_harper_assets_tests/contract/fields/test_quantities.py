"""Windows and starts that cannot be meant are told like any other value."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from bq_harper_assets.contract.fields.quantities import (
    INSTANT,
    WINDOW,
    duration_text,
    window_text,
)
from bq_harper_assets_tests.contract.conftest import Disk


def test_a_start_in_the_future_is_told_by_its_name(one_table: Callable[[str], Disk]) -> None:
    (warning,) = one_table("sync: {startTimestamp: 2030-01-01}").load().warnings
    assert warning.message.startswith("sync.startTimestamp lies in the future")


def test_a_window_far_too_long_is_told_like_any_other(one_table: Callable[[str], Disk]) -> None:
    told = one_table("window: ${WINDOW}").refusal({"WINDOW": "9" * 5000})
    assert "tables[0].window = ${WINDOW} (table orders)\n    must be 5m, 15m" in told


def test_a_start_in_antiquity_is_told_as_a_date(one_table: Callable[[str], Disk]) -> None:
    told = one_table("sync: {startTimestamp: 0001-01-01}").refusal()
    assert "from 0001-01-01 to now" in told


def test_a_window_may_be_a_length_of_whole_minutes() -> None:
    assert WINDOW.parse(timedelta(hours=1)) == timedelta(hours=1)
    for wrong in (timedelta(minutes=7), timedelta(minutes=5, seconds=1)):
        with pytest.raises(ValueError, match="must be 5m, 15m, 30m, 60m or 1d"):
            WINDOW.parse(wrong)


def test_lengths_are_written_as_users_write_them() -> None:
    windows = [window_text(timedelta(minutes=minutes)) for minutes in (5, 60, 1440)]
    assert windows == ["5m", "60m", "1d"]
    lengths = [duration_text(timedelta(seconds=n)) for n in (0, 1, 60, 90, 3600, 86400, 90000)]
    assert lengths == ["0s", "1s", "1m", "90s", "1h", "1d", "25h"]


def test_an_instant_that_utc_cannot_write_is_refused() -> None:
    east = timezone(timedelta(hours=2))
    assert INSTANT.parse(datetime(1, 1, 1, 2, tzinfo=east)) == datetime(1, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="must be a time between the years 1 and 9999"):
        INSTANT.parse(datetime(1, 1, 1, 1, tzinfo=east))

"""Each window is asked for once, as soon as it has closed."""

from datetime import UTC, datetime, timedelta

import pytest
from dagster import RunRequest, SkipReason, build_schedule_context
from dagster._utils.schedules import cron_string_iterator

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START, newest_closed
from bq_harper_assets.defs.tables.schedules import build_job, build_schedule
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.stores.small_tables import utc

START = utc(2026, 11, 1)


def evaluated(table: TableContract, at: datetime) -> RunRequest | SkipReason:
    schedule = build_schedule(table, START, build_job(table))
    assert schedule.name == "ships_windows"
    found = schedule(build_schedule_context(scheduled_execution_time=at))
    assert isinstance(found, RunRequest | SkipReason)
    return found


@pytest.mark.promise("O5")
@pytest.mark.parametrize(
    ("window", "lag", "at", "expected"),
    [
        ("60m", "60s", utc(2026, 11, 16, 13, 1), "2026-11-16T12:00"),
        ("15m", "60s", utc(2026, 11, 16, 13, 16), "2026-11-16T13:00"),
        ("5m", "7m", utc(2026, 11, 16, 13, 2), "2026-11-16T12:50"),
        ("60m", "90m", utc(2026, 11, 16, 13, 30), "2026-11-16T11:00"),
        ("1d", "2h", utc(2026, 11, 16, 2), "2026-11-15T00:00"),
        ("1d", "1d", utc(2026, 11, 16), "2026-11-14T00:00"),
    ],
)
def test_a_tick_asks_for_all_slices_of_the_newest_closed_window(
    window: str, lag: str, at: datetime, expected: str
) -> None:
    request = evaluated(contract(window=window, safety_lag=lag, slices=3), at)
    assert isinstance(request, RunRequest)
    assert request.run_key == expected
    assert request.tags[RANGE_START] == f"{expected}|s00"
    assert request.tags[RANGE_END] == f"{expected}|s02"


@pytest.mark.promise("O5")
@pytest.mark.parametrize("window", ["5m", "15m", "30m", "60m", "1d"])
@pytest.mark.parametrize("lag", ["60s", "90s", "5m", "7m", "61m", "1d"])
def test_ticks_follow_the_windows_one_by_one_and_none_is_early(window: str, lag: str) -> None:
    table = contract(window=window, safety_lag=lag)
    schedule = build_schedule(table, START, build_job(table))
    cron = schedule.cron_schedule
    assert isinstance(cron, str)
    ticks = cron_string_iterator(utc(2026, 11, 10, 7, 3).timestamp(), cron, "UTC")
    before = None
    for _ in range(60):
        tick = next(ticks).astimezone(UTC)
        newest = newest_closed(table, tick)
        waited = tick - newest.end - table.safety_lag
        assert timedelta(0) <= waited < timedelta(minutes=1)
        assert before in (None, newest.start - table.window)
        before = newest.start


def test_before_the_first_window_has_closed_a_tick_is_skipped_with_the_reason() -> None:
    skipped = evaluated(contract(), utc(2026, 11, 1, 0, 1))
    assert isinstance(skipped, SkipReason)
    assert "2026-11-01 00:00" in str(skipped.skip_message)
    assert isinstance(evaluated(contract(), utc(2026, 11, 1, 1, 1)), RunRequest)

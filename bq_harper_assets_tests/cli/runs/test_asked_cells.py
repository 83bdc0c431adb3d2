"""Which cells a range of time and a list of slices name."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from bq_harper_assets.cli.runs.asked_cells import cells_between, require_range
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    hours_ago,
)


def test_slices_are_a_number_or_a_range_of_those_there_are() -> None:
    four, start = contract(slices=4), hours_ago(3)
    for asked, expected in ((None, {0, 1, 2, 3}), ("2", {2}), ("1-2", {1, 2}), ("s03", {3})):
        cells = cells_between(four, start, None, None, asked)
        assert {cell.slice for cell in cells} == expected
    for asked in ("4", "2-1", "1-4", "x"):
        with pytest.raises(click.UsageError, match=f"--slices {asked}"):
            cells_between(four, start, None, None, asked)


def test_only_closed_windows_inside_the_range_are_taken() -> None:
    one, start = contract(slices=1, live=False), hours_ago(6)
    everything = cells_between(one, start, None, None, None)
    assert len(everything) in (5, 6)  # in the first minute of an hour the last is still open
    assert everything[0].window.start == start
    later = (start + 2 * HOUR).replace(tzinfo=None)
    assert cells_between(one, start, later, None, None) == everything[2:]
    assert cells_between(one, start, None, later, None) == everything[:2]
    assert cells_between(one, start, later, later, None) == []


def test_of_a_live_table_the_open_window_is_taken_too_unless_an_end_is_given() -> None:
    now = datetime.now(UTC)
    lag = timedelta(minutes=(now.minute - 30) % 60)  # so that half of a window has closed
    live, start = contract(slices=1, safety_lag=lag), hours_ago(6)
    closed = cells_between(live.model_copy(update={"live": False}), start, None, None, None)
    half = (now - lag).replace(minute=0, second=0, microsecond=0)
    *others, newest = cells_between(live, start, None, None, None)
    assert (others, newest.window.start) == (closed, half)
    end = (start + 20 * HOUR).replace(tzinfo=None)
    assert cells_between(live, start, None, end, None) == closed


LAG = timedelta(minutes=10)
CLOSED_AT = utc(2026, 1, 5, 3, 10)  # then the window from 2 to 3 o'clock closes
MICROSECOND = timedelta(microseconds=1)
NAIVE = utc(2026, 1, 5, 4).replace(tzinfo=None)  # as click gives it


def hours(now: datetime, to: datetime | None = None, *, live: bool) -> list[int]:
    asked = contract(slices=1, safety_lag=LAG, live=live)
    cells = cells_between(asked, utc(2026, 1, 5), None, to, None, now)
    return [cell.window.start.hour for cell in cells]


def test_a_window_is_closed_once_the_safety_lag_has_passed_since_its_end() -> None:
    assert hours(CLOSED_AT - MICROSECOND, live=False) == [0, 1]
    assert hours(CLOSED_AT, live=False) == [0, 1, 2]
    assert hours(CLOSED_AT, live=True) == [0, 1, 2]


def test_an_open_window_is_taken_when_more_than_a_minute_of_it_is_over() -> None:
    minute = timedelta(minutes=1)
    assert hours(CLOSED_AT + minute, live=True) == [0, 1, 2]
    assert hours(CLOSED_AT + minute + MICROSECOND, live=True) == [0, 1, 2, 3]
    assert hours(CLOSED_AT + minute + MICROSECOND, NAIVE, live=True) == [0, 1, 2]


def test_a_range_begins_before_it_ends() -> None:
    first, last = NAIVE - HOUR, NAIVE
    for from_, to in ((first, last), (first, None), (None, last), (None, None)):
        require_range(from_, to)
    for from_, to in ((last, first), (first, first)):
        with pytest.raises(click.UsageError, match=r"--from 2026-01-05T0\d:00 is not before --to"):
            require_range(from_, to)

"""Which cells a range of time and a list of slices name."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from bq_harper_assets.cli.runs.asked_cells import cells_between
from bq_harper_assets_tests.defs.test_partitions import contract
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

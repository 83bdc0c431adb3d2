"""Windows and cells: every moment lies in exactly one."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.instants import floor_to_window, micros_at
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import NOT_OURS, Grid, Part
from bq_harper_assets.sync.cells.window import Window, micros_of, windows_between
from bq_harper_assets.sync.errors import NotATime

HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
LENGTHS = st.sampled_from([timedelta(minutes=m) for m in (5, 15, 30, 60, 1440)])
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001


@settings(deadline=None)
@given(MOMENTS, LENGTHS)
def test_a_moment_lies_in_its_window_before_1970_too(moment: datetime, length: timedelta) -> None:
    start = floor_to_window(moment, length)
    window = Window(start, start + length)
    assert window.start <= moment < window.end
    assert Window.parse(window.key, length) == window
    assert list(windows_between(moment, moment + timedelta(microseconds=1), length)) == [window]
    cell = Cell(window, 0)
    grid = Grid.of({cell: Part.whole(cell, 1)}, 1)
    times = [moment, window.start, window.end - TICK, window.end, window.start - TICK, None]
    micros = micros_of(pa.array(times, pa.timestamp("us", "UTC")))
    places = grid.places_of(micros, np.zeros(6, np.int64))
    assert places.tolist() == [0, 0, 0, NOT_OURS, NOT_OURS, NOT_OURS]


def test_datetimes_and_dates_count_as_utc() -> None:
    plain = pa.array([datetime(2026, 11, 16, 7, 30)], pa.timestamp("us"))  # noqa: DTZ001
    half_past = micros_at(datetime(2026, 11, 16, 7, 30, tzinfo=UTC))
    assert micros_of(plain).to_pylist() == [half_past]
    midnight = micros_at(datetime(2026, 11, 16, tzinfo=UTC))
    assert micros_of(pa.array([date(2026, 11, 16), None])).to_pylist() == [midnight, None]


def test_slices_of_arrays_give_the_times_of_their_own_rows() -> None:
    moments = pa.array([0, None, 3_600_000_000], pa.timestamp("us", "UTC"))
    assert micros_of(moments.slice(1)).to_pylist() == [None, 3_600_000_000]


def test_a_column_without_times_is_refused_with_a_way_out() -> None:
    with pytest.raises(NotATime, match=r"string.*timestampColumn"):
        micros_of(pa.array(["2026"]))


def test_windows_between_cover_a_range_that_starts_inside_of_one_and_in_another_zone() -> None:
    start = datetime(2026, 11, 16, 9, 30, tzinfo=timezone(timedelta(hours=2)))
    windows = list(windows_between(start, start + HOUR, HOUR))
    assert [window.key for window in windows] == ["2026-11-16T07:00", "2026-11-16T08:00"]
    assert list(windows_between(start, start, HOUR)) == []


def test_a_window_that_begins_where_a_range_ends_is_not_in_it() -> None:
    seven = datetime(2026, 11, 16, 7, tzinfo=UTC)
    assert list(windows_between(seven, seven + HOUR, HOUR)) == [Window(seven, seven + HOUR)]

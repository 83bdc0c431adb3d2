"""Rows are cut by time into the window that their timestamp lies in."""

import pickle
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bq_harper_assets.instants import instant_at, micros_at
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import TimeCut

HOUR = timedelta(hours=1)


@given(st.integers(-(10**15), 10**16))
def test_a_moment_lies_in_the_range_that_the_cut_gives_for_it(micros: int) -> None:
    window = TimeCut(HOUR).range_at(micros)
    assert window.start <= instant_at(micros) < window.end
    assert window.axis_start <= micros < window.axis_end == window.axis_start + 3_600_000_000
    assert TimeCut(HOUR).range_at(window.axis_start) == window


def test_a_row_has_its_time_on_the_axis_and_none_without_a_time() -> None:
    noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    rows = pa.record_batch({"ts": pa.array([noon, None], pa.timestamp("us", "UTC"))})
    cut = pickle.loads(pickle.dumps(TimeCut(HOUR)))
    assert cut.axis_values(rows, "ts", ()).to_pylist() == [micros_at(noon), None]


def test_a_window_is_named_as_people_and_commands_name_it() -> None:
    cell = Cell(TimeCut(HOUR).range_at(micros_at(datetime(2026, 1, 5, 7, 30, tzinfo=UTC))), 2)
    assert cell.key == "2026-01-05T07:00|s02"
    assert cell.range.options == "--from 2026-01-05T07:00 --to 2026-01-05T08:00"

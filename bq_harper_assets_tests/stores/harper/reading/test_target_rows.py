"""The ranges of time in which Harper's rows are read."""

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.reading.target_rows import ROWS_PER_REQUEST, ranges_of, text_of
from bq_harper_assets_tests.sync.cells.test_grid import HOUR, NOON


def test_the_ranges_of_a_window_meet_and_none_is_left_out() -> None:
    rows = 3 * ROWS_PER_REQUEST
    ranges = ranges_of(5, NOON, NOON + HOUR, rows, Kind.TIMESTAMP)
    assert len(ranges) == 4
    assert [one.high for one in ranges[:-1]] == [one.low for one in ranges[1:]]
    assert ranges[0].low == "2026-01-05T12:00:00.000000Z"
    assert ranges[-1].high == "2026-01-05T13:00:00.000000Z"
    assert {one.place for one in ranges} == {5}


def test_bounds_are_texts_as_the_rows_have_them() -> None:
    assert text_of(Kind.DATETIME, NOON) == "2026-01-05T12:00:00.000000"
    assert text_of(Kind.DATE, NOON) == "2026-01-06"
    assert text_of(Kind.DATE, NOON - 12 * HOUR) == "2026-01-05"
    days = ranges_of(0, NOON - 12 * HOUR, NOON + 12 * HOUR, 10 * ROWS_PER_REQUEST, Kind.DATE)
    assert [(one.low, one.high) for one in days] == [("2026-01-05", "2026-01-06")]

"""Which rows a range of time names, for each type of time."""

from datetime import timedelta

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.restriction import between
from bq_harper_assets_tests.stores.bigquery.test_read_session import END, START, TS
from bq_harper_assets_tests.stores.small_tables import utc


def test_a_day_belongs_to_the_window_in_which_it_begins() -> None:
    day = Column(name="d", kind=Kind.DATE)
    hour = timedelta(hours=1)

    assert between(day, START, START + hour) == (
        "(`d` >= DATE '2026-03-01' AND `d` < DATE '2026-03-02')"
    )
    assert between(day, START + hour, END) == (
        "(`d` >= DATE '2026-03-02' AND `d` < DATE '2026-03-02')"
    )


def test_a_time_restriction_names_both_bounds_in_utc_to_the_microsecond() -> None:
    assert between(TS, utc(1, 1, 1), END - timedelta(microseconds=1), "a OR b") == (
        "(`ts` >= TIMESTAMP '0001-01-01 00:00:00.000000+00:00'"
        " AND `ts` < TIMESTAMP '2026-03-01 23:59:59.999999+00:00') AND (a OR b)"
    )

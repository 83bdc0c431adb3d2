"""Which rows a range of time names, for each type of time."""

from datetime import timedelta, timezone

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.restriction import at_any, between, literal, outside
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


NOON = utc(2026, 3, 1, 12)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.TIMESTAMP, "TIMESTAMP '2026-03-01 12:00:00.000000+00:00'"),
        (Kind.DATETIME, "DATETIME '2026-03-01 12:00:00.000000'"),
        (Kind.DATE, "DATE '2026-03-02'"),
    ],
)
def test_an_instant_is_the_first_value_of_the_type_at_or_after_it(kind: Kind, text: str) -> None:
    assert literal(kind, NOON) == text
    east = NOON.astimezone(timezone(timedelta(hours=2)))
    assert literal(kind, east) == text


def test_a_type_without_time_has_no_instant() -> None:
    with pytest.raises(ValueError, match="a STRING column says nothing about time"):
        literal(Kind.STRING, NOON)


def test_rows_of_single_instants_are_named_in_order_and_each_once() -> None:
    day = Column(name="d", kind=Kind.DATE)
    instants = [START + timedelta(days=n) for n in (7, 3, 5, 1, 6, 2, 4, 3)]
    days = ", ".join(f"DATE '2026-03-0{n}'" for n in range(2, 9))
    assert at_any(day, instants) == f"(`d` IN ({days}))"
    assert at_any(day, [START], "a = 1") == "(`d` IN (DATE '2026-03-01')) AND (a = 1)"


def test_rows_that_no_window_has_are_those_without_a_time_or_beyond_both_ends() -> None:
    assert outside(TS, START, NOON, "a = 1") == (
        "(`ts` IS NULL OR `ts` < TIMESTAMP '2026-03-01 00:00:00.000000+00:00'"
        " OR `ts` >= TIMESTAMP '2026-03-01 12:00:00.000000+00:00') AND (a = 1)"
    )

"""Text of any kind and instants of any zone are stored in any database."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql.base import PGDialect

from bq_harper_assets.ledger.store.columns import AnyText, AxisPoint, Instant, duration_micros


@settings(deadline=None)
@given(text=st.text(st.characters()))
@example("\x00\\u0000\ud800\udc00\\")
def test_any_text_can_be_stored_in_any_database(text: str) -> None:
    dialect = PGDialect()
    stored = AnyText().process_bind_param(text, dialect)
    assert stored is not None
    assert "\x00" not in stored
    stored.encode("utf-8")
    assert AnyText().process_result_value(stored, dialect) == text
    assert AnyText().process_bind_param(None, dialect) is None
    assert AnyText().process_result_value(None, dialect) is None


def test_an_instant_is_the_same_number_in_every_zone_and_read_in_utc() -> None:
    dialect, east = PGDialect(), timezone(timedelta(hours=3))
    moment = datetime(1970, 1, 1, 3, 0, 1, 5, tzinfo=east)
    assert Instant().process_bind_param(moment, dialect) == 1_000_005
    read = Instant().process_result_value(1_000_005, dialect)
    assert read == moment
    assert read is not None
    assert read.tzinfo is UTC
    assert Instant().process_bind_param(None, dialect) is None
    assert Instant().process_result_value(None, dialect) is None


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Instant().process_bind_param(datetime(2026, 1, 5), PGDialect())  # noqa: DTZ001


def test_a_point_of_an_axis_is_a_number_or_the_number_of_an_instant() -> None:
    moment = datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    told = [AxisPoint().process_bind_param(each, PGDialect()) for each in (moment, 7, None)]
    assert told == [2_000_000, 7, None]


def test_a_duration_is_counted_in_microseconds() -> None:
    assert duration_micros(timedelta(minutes=1, microseconds=3)) == 60_000_003

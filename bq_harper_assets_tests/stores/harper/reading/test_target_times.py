"""Stored times that are none do not hide those that are."""

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.reading.target_times import stored_micros


def test_what_is_no_time_is_none_and_all_others_are_read() -> None:
    values = ["1970-01-01T00:00:00.000001Z", "garbage", 17, None, "", "1970-01-01T00:00:01Z", {}]
    found = stored_micros(values, Kind.TIMESTAMP)
    assert found == [1, None, None, None, None, 1_000_000, None]
    assert stored_micros(["1970-01-02", "x"], Kind.DATE) == [86_400_000_000, None]

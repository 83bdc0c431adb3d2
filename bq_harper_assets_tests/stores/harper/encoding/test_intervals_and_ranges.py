"""Intervals and ranges as text."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.stores.harper.encoding.intervals_and_ranges import interval_texts, range_texts


@pytest.mark.promise("B9")
@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((0, 0, 0), "0-0 0 0:0:0"),
        ((14, 3, 14_706_789_000_000), "1-2 3 4:5:6.789"),
        ((-14, -3, -14_706_000_000_000), "-1-2 -3 -4:5:6"),
        ((0, 5, -1_000), "0-0 5 -0:0:0.000001"),
        ((120_000, 3_660_000, 316_224_000_000_000_001), "10000-0 3660000 87840:0:0.000000001"),
    ],
)
def test_an_interval_is_spelled_with_a_sign_per_part(
    interval: tuple[int, int, int], text: str
) -> None:
    array = pa.array([None, pa.MonthDayNano(interval)])
    assert interval_texts(array).to_pylist() == [None, text]
    assert interval_texts(array.slice(1)).to_pylist() == [text]


@pytest.mark.promise("B9")
def test_a_range_is_spelled_with_its_bounds_as_they_are_stored_alone() -> None:
    def ranges(type_: pa.DataType, *values: Any) -> list[str | None]:
        struct = pa.struct([("start", type_), ("end", type_)])
        texts: list[str | None] = range_texts(pa.array(values, struct)).to_pylist()
        return texts

    day, moment = date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)
    assert ranges(pa.date32(), {"start": day, "end": None}, None) == [
        "[2026-01-02, UNBOUNDED)",
        None,
    ]
    assert ranges(pa.timestamp("us", "UTC"), {"start": None, "end": moment}) == [
        "[UNBOUNDED, 2026-01-02T00:00:00.000000Z)"
    ]
    assert ranges(pa.timestamp("us"), {"start": None, "end": None}) == ["[UNBOUNDED, UNBOUNDED)"]

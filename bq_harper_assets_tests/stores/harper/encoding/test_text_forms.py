"""Texts are read as what they mean."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.text_forms import Range
from bq_harper_assets.stores.harper.reading.from_harper import from_harper
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.stores.harper_columns import harper_column


@pytest.mark.promise("B4")
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.TIMESTAMP, "0001-01-01T00:00:00.000001Z", datetime(1, 1, 1, 0, 0, 0, 1, UTC)),
        (Kind.TIMESTAMP, "9999-12-31T23:59:59.999999Z",
         datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        (Kind.TIMESTAMP, "1969-12-31T23:59:59.500000Z",
         datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)),
        (Kind.DATE, "2024-02-29", date(2024, 2, 29)),
        (Kind.INTERVAL, "-1-2 -3 -4:5:6.789", pa.MonthDayNano((-14, -3, -14706_789_000_000))),
        (Kind.INTERVAL, "0-0 0 0:0:0", pa.MonthDayNano((0, 0, 0))),
        (Kind.INTERVAL, "0-0 0 0:0:0.000001", pa.MonthDayNano((0, 0, 1000))),
        (Kind.RANGE, "[2026-11-16, UNBOUNDED)", Range(date(2026, 11, 16), None)),
        (Kind.RANGE, "[UNBOUNDED, 2026-11-16T07:00:00.000000Z)",
         Range(None, datetime(2026, 11, 16, 7, tzinfo=UTC))),
    ],
)  # fmt: skip
def test_texts_are_read_as_what_they_mean(kind: Kind, text: str, value: Any) -> None:
    assert from_harper(text, harper_column(Column(name="c", kind=kind), contract())) == value

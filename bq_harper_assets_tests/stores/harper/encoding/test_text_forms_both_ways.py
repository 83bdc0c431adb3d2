"""Single values are written as a sync stores them, and only such texts are read."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.stores.harper.encoding.text_forms import (
    Range,
    read_interval,
    read_range,
    stored_text,
    strictly,
)

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MOST_MONTHS, MOST_NANOS = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (NOON, "2026-01-05T12:00:00.000000Z"),
        (NOON.astimezone(timezone(timedelta(hours=2))), "2026-01-05T12:00:00.000000Z"),
        (NOON.replace(tzinfo=None), "2026-01-05T12:00:00.000000"),
        (time(7, 8, 9, 1), "07:08:09.000001"),
        (date(2026, 1, 5), "2026-01-05"),
        (b"\x00\xff", "AP8="),
        (Decimal("1.500"), "1.5"),
        (Decimal("100"), "100"),
        (Decimal("100.00"), "100"),
        (Decimal("1E+2"), "100"),
        (Decimal("1E-7"), "0.0000001"),
        (Range(date(2026, 1, 5), None), "[2026-01-05, UNBOUNDED)"),
        (Range(None, NOON), "[UNBOUNDED, 2026-01-05T12:00:00.000000Z)"),
        (pa.MonthDayNano((-14, -3, 1_000)), "-1-2 -3 0:0:0.000001"),
        (7, "7"),
        ("text", "text"),
    ],
)
def test_a_value_is_written_as_a_sync_stores_it(value: Any, text: str) -> None:
    assert stored_text(value) == text


@pytest.mark.parametrize("text", ["1.50", "01", "1e2", "+1", " 1"])
def test_a_text_that_a_sync_would_write_otherwise_is_refused(text: str) -> None:
    assert strictly(Decimal)("1.5") == Decimal("1.5")
    with pytest.raises(ValueError, match="is not how the sync writes it"):
        strictly(Decimal)(text)


def test_a_text_that_says_nothing_is_refused() -> None:
    for read, text in ((Decimal, "x"), (date.fromisoformat, "2026-13-01"), (read_range, "[a)")):
        with pytest.raises(ValueError, match="cannot be read"):
            strictly(read)(text)


def _interval(months: int = 0, days: int = 0, nanos: int = 0) -> str:
    return stored_text(pa.MonthDayNano((months, days, nanos)))


@pytest.mark.parametrize(
    "value",
    [
        (MOST_MONTHS, MOST_MONTHS, MOST_NANOS),
        (-MOST_MONTHS, -MOST_MONTHS, -MOST_NANOS),
        (1, 0, -1),
        (0, -1, 60_000_000_000),
    ],
)
def test_an_interval_is_read_back_up_to_the_longest(value: tuple[int, int, int]) -> None:
    assert read_interval(_interval(*value)) == pa.MonthDayNano(value)


@pytest.mark.parametrize(
    "text",
    [
        "178956970-8 0 0:0:0",  # 2^31 months
        "0-0 2147483648 0:0:0",
        "0-0 -2147483648 0:0:0",
        "0-0 0 2562047:47:16.854775808",  # 2^63 nanoseconds
    ],
)
def test_an_interval_that_is_too_long_to_be_written_back_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is longer than an interval"):
        read_interval(text)


@pytest.mark.parametrize("text", ["0-12 0 0:0:0", "-0-0 0 0:0:0", "0-0 0 0:60:0", "1-0", ""])
def test_another_form_of_an_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not how the sync writes an interval"):
        read_interval(text)


def test_a_range_is_read_with_its_bounds() -> None:
    assert read_range("[2026-01-05, UNBOUNDED)") == Range(date(2026, 1, 5), None)
    assert read_range("[UNBOUNDED, 2026-01-05T12:00:00.000000Z)") == Range(None, NOON)
    for text in ("[2026-01-05, 2026-01-06]", "2026-01-05, 2026-01-06", "[2026-01-05)"):
        with pytest.raises(ValueError, match="no range"):
            read_range(text)

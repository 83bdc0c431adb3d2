"""Texts of values: what Python says of the same value, in a fixed width where order matters."""

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.values.bytes_text import base64_text
from bq_harper_assets.sync.values.decimals import decimal_texts, exceeds_number
from bq_harper_assets.sync.values.intervals import interval_texts, range_texts
from bq_harper_assets.sync.values.times import (
    date_text,
    datetime_texts,
    time_texts,
    timestamp_texts,
)
from bq_harper_assets_tests.sync import reference_hash
from bq_harper_assets_tests.sync.typed_values import SCALARS


def _iso(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds")


SPELLED: dict[str, tuple[Callable[[pa.Array], pa.Array], Callable[[Any], str]]] = {
    "timestamp": (timestamp_texts, lambda moment: f"{_iso(moment)}Z"),
    "datetime": (datetime_texts, _iso),
    "date": (date_text, date.isoformat),
    "time": (time_texts, lambda moment: moment.isoformat(timespec="microseconds")),
    "binary": (base64_text, lambda value: base64.b64encode(value).decode()),
    "numeric": (decimal_texts, reference_hash.decimal_text),
    "bignumeric": (decimal_texts, reference_hash.decimal_text),
}


@pytest.mark.promise("B4", "B3", "B2")
@pytest.mark.parametrize("name", SPELLED)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_value_is_spelled_as_python_spells_it(name: str, data: st.DataObject) -> None:
    spell, expected = SPELLED[name]
    type_, values = SCALARS[name]
    drawn = data.draw(st.lists(st.none() | values, max_size=8))
    skipped = data.draw(st.integers(0, 2))
    texts = spell(pa.array(drawn, type_).slice(skipped)).to_pylist()
    assert texts == [None if value is None else expected(value) for value in drawn[skipped:]]


@pytest.mark.promise("B4")
@settings(deadline=None, max_examples=60)
@given(st.lists(SCALARS["timestamp"][1], min_size=2))
def test_sorting_the_text_sorts_the_time(moments: list[datetime]) -> None:
    texts = timestamp_texts(pa.array(moments, pa.timestamp("us", "UTC"))).to_pylist()
    assert sorted(texts) == [
        text for _, text in sorted(zip(moments, texts, strict=True), key=lambda pair: pair[0])
    ]
    assert {len(text) for text in texts} == {27}


@pytest.mark.promise("B4")
@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "9999-12-31T23:59:59.999999Z"),
        (datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "1969-12-31T23:59:59.999999Z"),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00.000000Z"),
        (datetime(1900, 2, 28, tzinfo=UTC), "1900-02-28T00:00:00.000000Z"),
        (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5))), "2025-12-31T19:00:00.000000Z"),
    ],
)
def test_the_edges_of_time(moment: datetime, text: str) -> None:
    assert timestamp_texts(pa.array([moment])).to_pylist() == [text]


def test_days_far_apart_are_spelled_like_days_close_together() -> None:
    far = [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)]
    assert date_text(pa.array(far)).to_pylist() == [day.isoformat() for day in far]
    near = [date(2024, 2, 28) + timedelta(days=at) for at in (2, 0, 1, 2)]
    assert date_text(pa.array(near)).to_pylist() == [day.isoformat() for day in near]


def test_whatever_lies_under_a_null_is_never_spelled() -> None:
    huge = pa.array([2**62, 0])
    hidden = [pa.py_buffer(b"\x02"), huge.buffers()[1]]
    moments = pa.Array.from_buffers(pa.timestamp("us", "UTC"), 2, hidden)
    assert timestamp_texts(moments).to_pylist() == [None, "1970-01-01T00:00:00.000000Z"]


def test_times_of_other_units_are_spelled_in_microseconds() -> None:
    assert time_texts(pa.array([time(1, 2, 3)], pa.time32("s"))).to_pylist() == ["01:02:03.000000"]
    seconds = pa.array([0], pa.timestamp("s", "America/New_York"))
    assert timestamp_texts(seconds).to_pylist() == ["1970-01-01T00:00:00.000000Z"]


@pytest.mark.promise("B3")
def test_all_256_bytes_survive_base64() -> None:
    everything = bytes(range(256))
    text = base64_text(pa.array([everything, b"", b"\xff"])).to_pylist()
    assert [base64.b64decode(value) for value in text] == [everything, b"", b"\xff"]


@pytest.mark.promise("B2")
@pytest.mark.parametrize(
    ("value", "beyond"),
    [
        ("0", False),
        ("123456789012345", False),
        ("-1234567.89012345", False),
        ("0.000000001", False),
        ("99999999999999000000000000000", False),
        ("1234567890123456", True),
        ("1234567.890123456", True),
        ("99999999999999999999999999999.999999999", True),
    ],
)
def test_fifteen_digits_are_what_a_number_holds(value: str, beyond: bool) -> None:
    for type_ in (pa.decimal128(38, 9), pa.decimal256(76, 38)):
        assert exceeds_number(decimal_texts(pa.array([Decimal(value), None], type_))).tolist() == [
            beyond,
            False,
        ]


def test_the_largest_bignumeric_keeps_its_77_digits() -> None:
    largest = 5 * 10**76 + 7
    raw = largest.to_bytes(32, "little", signed=True)
    array = pa.Array.from_buffers(pa.decimal256(76, 38), 1, [None, pa.py_buffer(raw)])
    text = decimal_texts(array)[0].as_py()
    assert text == f"5{'0' * 38}.{'0' * 37}7"


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

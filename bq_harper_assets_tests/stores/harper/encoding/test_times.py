"""Texts of values: what Python says of the same value, in a fixed width where order matters."""

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.stores.harper.encoding.bytes_text import base64_text
from bq_harper_assets.stores.harper.encoding.times import (
    date_text,
    datetime_texts,
    time_texts,
    timestamp_texts,
)
from bq_harper_assets.sync.identity.decimals import decimal_texts
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

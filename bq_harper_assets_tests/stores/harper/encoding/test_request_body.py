"""Bodies: every record once, in order, within the limits."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.stores.harper.encoding.record import IS_JSON
from bq_harper_assets.stores.harper.encoding.request_body import bodies

INNER = pa.struct([("z", pa.list_(pa.int64()))])
NESTED = pa.struct([("x", INNER), ("y", pa.list_(pa.string()))])


def _records(texts: list[str | None], *, raw: bool) -> pa.RecordBatch:
    count = len(texts)
    arrays = [pa.array([f"id{at}" for at in range(count)]), pa.array(texts, pa.string())]
    fields = [pa.field("id", pa.string()), pa.field('na"me', pa.string())]
    nested = [
        {"x": {"z": [at]}, "y": [text or "", None]} if at % 3 else None
        for at, text in enumerate(texts)
    ]
    arrays.append(pa.array(nested, NESTED))
    fields.append(pa.field("nested", NESTED))
    if raw:
        json_texts = [json.dumps({"a": text, "n": [1, None]}, indent=1) for text in texts]
        for name in ("j", "é"):
            arrays.append(pa.array(json_texts, pa.large_string()))
            fields.append(pa.field(name, pa.large_string(), metadata=IS_JSON))
    return pa.record_batch(arrays, schema=pa.schema(fields))


def _expected(records: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = records.to_pylist()
    for row in rows:
        for name in ("j", "é"):
            if name in row:
                row[name] = json.loads(row[name])
    return rows


@pytest.mark.parametrize("raw", [False, True])
@settings(deadline=None, max_examples=60)
@given(
    texts=st.lists(st.none() | st.text(max_size=30), max_size=12),
    most_rows=st.integers(1, 6),
    most_bytes=st.integers(1, 900),
    skipped=st.integers(0, 3),
)
def test_bodies_hold_every_record_once_within_the_limits(
    raw: bool, texts: list[str | None], most_rows: int, most_bytes: int, skipped: int
) -> None:
    records = _records(texts, raw=raw).slice(skipped)
    cut = list(bodies(records, most_rows=most_rows, most_bytes=most_bytes))
    rows = [row for body in cut for row in json.loads(body.content)]
    assert rows == _expected(records)
    at = 0
    for body in cut:
        assert body.first == at
        assert len(json.loads(body.content)) == body.rows <= most_rows
        assert len(body.content) <= most_bytes or body.rows == 1
        at += body.rows


def test_bodies_are_filled_to_the_byte() -> None:
    records = pa.record_batch({"id": pa.array(["a", "b", "c"])})
    row = len('{"id":"a"}')
    for most_bytes, sizes in ((2 * row + 3, [2, 1]), (2 * row + 2, [1, 1, 1]), (3 * row + 4, [3])):
        cut = bodies(records, most_rows=100, most_bytes=most_bytes)
        assert [body.rows for body in cut] == sizes


def test_nulls_are_sent_as_such_and_text_is_escaped() -> None:
    records = pa.record_batch({"id": pa.array(['\0\n"\\é🚢']), "n": pa.array([None], pa.int64())})
    [body] = bodies(records, most_rows=10, most_bytes=1000)
    assert json.loads(body.content) == [{"id": '\0\n"\\é🚢', "n": None}]


def test_a_slice_of_nested_columns_is_encoded_as_it_stands() -> None:
    records = _records([str(at) for at in range(100)], raw=False)
    [body] = bodies(records.slice(90, 5), most_rows=100, most_bytes=100_000)
    assert json.loads(body.content) == _expected(records)[90:95]

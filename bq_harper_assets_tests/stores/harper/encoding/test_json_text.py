"""Arrow columns as JSON text: what Python's own parser reads is what was there."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.stores.harper.encoding.json_text import (
    array_of,
    json_lines,
    json_of,
    object_of,
)

# Names and texts with all that JSON has to escape; a lone surrogate is no text in Arrow.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text\n": st.none() | TEXT,
            "count": st.none() | st.integers(-(2**53), 2**53),
            "inner": st.none() | st.fixed_dictionaries({"of": st.none() | TEXT}),
            "many": st.none() | st.lists(st.booleans()),
        }
    ),
    min_size=1,
    max_size=5,
)
SCHEMA = pa.schema(
    [
        ("text\n", pa.string()),
        ("count", pa.int64()),
        ("inner", pa.struct([("of", pa.string())])),
        ("many", pa.list_(pa.bool_())),
    ]
)


@settings(deadline=None)
@given(ROWS, st.integers(0, 2))
def test_each_row_is_found_by_its_offsets_with_nulls_written_out(
    rows: list[dict[str, Any]], skipped: int
) -> None:
    skipped = min(skipped, len(rows) - 1)
    text, offsets = json_lines(pa.RecordBatch.from_pylist(rows, SCHEMA).slice(skipped))
    found = [json.loads(b"{" + text[start : end - 2].tobytes()) for start, end in pairwise(offsets)]
    assert found == rows[skipped:]


@settings(deadline=None)
@given(st.lists(st.none() | TEXT))
def test_values_are_read_back_one_by_one(values: list[str | None]) -> None:
    texts = json_of(pa.array(values, pa.string()))
    assert [json.loads(text) for text in texts.to_pylist()] == values


@settings(deadline=None)
@given(st.lists(st.lists(TEXT, max_size=3), max_size=5), TEXT)
def test_texts_that_are_json_already_are_joined_to_arrays_and_objects(
    lists: list[list[str]], name: str
) -> None:
    elements = pa.array([json.dumps(text) for each in lists for text in each], pa.large_string())
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    arrays = array_of(offsets, elements)
    assert [json.loads(text) for text in arrays.to_pylist()] == lists
    numbers = pa.array([str(at) for at in range(len(lists))], pa.large_string())
    objects = object_of([name, f"{name} 2"], [arrays, numbers]).to_pylist()
    assert [json.loads(text) for text in objects] == [
        {name: each, f"{name} 2": at} for at, each in enumerate(lists)
    ]

"""Arrow's memory seen by numpy: slices, NULLs and every layout of texts give the same values."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.arrays.arrow_memory import (
    fixed_width,
    list_lengths,
    null_mask,
    offsets_of,
    plain,
    text_of_offsets,
    text_of_width,
    variable_width,
)

TEXTS = ["", "a", "ä", None, "harbour", "🚢", "x" * 20]
LAYOUTS = [
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
    pa.dictionary(pa.int32(), pa.string()),
]


def _read(array: pa.Array) -> list[bytes | None]:
    starts, lengths, data = variable_width(array)
    nulls = null_mask(array)
    return [
        None if nulls is not None and nulls[at] else data[start : start + length].tobytes()
        for at, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]


@pytest.mark.parametrize("type_", LAYOUTS, ids=str)
def test_every_layout_of_texts_is_read_alike_whole_or_in_slices(type_: pa.DataType) -> None:
    array = pa.array(TEXTS, pa.string()).cast(type_)
    expected = [None if text is None else text.encode() for text in TEXTS]
    for first in range(len(TEXTS) + 1):
        assert _read(plain(array.slice(first))) == expected[first:]
        assert _read(plain(array.slice(0, first))) == expected[:first]


def test_strings_of_one_width_and_an_array_of_none_are_read_too() -> None:
    fixed = pa.array([b"abc", b"def", b"ghi"], pa.binary(3))
    assert _read(fixed.slice(1)) == [b"def", b"ghi"]
    for type_ in (pa.string(), pa.large_binary(), pa.binary(3)):
        assert _read(pa.array([], type_)) == []


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(0, 3))
def test_numbers_are_read_from_a_slice_without_its_nulls(
    values: list[int | None], skipped: int
) -> None:
    array = pa.array(values, pa.int64()).slice(skipped)
    left = values[skipped:]
    nulls = null_mask(array)
    assert (nulls is None) == (None not in left)
    found = fixed_width(array, np.int64).tolist()
    assert len(found) == len(left)
    kept = [(value, read) for value, read in zip(left, found, strict=True) if value is not None]
    assert all(value == read for value, read in kept)


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(st.integers(0, 9))), st.integers(0, 2))
def test_a_null_list_has_no_elements_and_runs_begin_where_the_one_before_ends(
    lists: list[Any], skipped: int
) -> None:
    lengths = list_lengths(pa.array(lists, pa.list_(pa.int64())).slice(skipped))
    expected = [len(each or ()) for each in lists[skipped:]]
    assert lengths.tolist() == expected
    assert offsets_of(lengths).tolist() == [sum(expected[:at]) for at in range(len(expected) + 1)]


def test_texts_are_made_of_bytes_with_their_nulls() -> None:
    nulls = np.array([False, True, False])
    matrix = np.frombuffer(b"onetwosix", np.uint8).reshape(3, 3)
    assert text_of_width(matrix, nulls).to_pylist() == ["one", None, "six"]
    offsets, data = np.array([0, 2, 2, 6], np.int64), np.frombuffer("ab🚢".encode(), np.uint8)
    assert text_of_offsets(offsets, data).to_pylist() == ["ab", "", "🚢"]
    assert text_of_offsets(offsets, data, nulls).to_pylist() == ["ab", None, "🚢"]

"""Slices: every row has one owner, which follows from its id alone."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.stores.harper.encoding.times import timestamp_texts
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of

_ROWS = 20_000
_COUNT = np.arange(_ROWS)
_START = datetime(2026, 11, 16, tzinfo=UTC)


def _every(step: timedelta) -> pa.Array:
    moments = pa.array([_START + step * n for n in range(_ROWS)], pa.timestamp("us", "UTC"))
    return timestamp_texts(moments)


KEYS = {
    "counting integers": pa.array(_COUNT),
    "even integers": pa.array(_COUNT * 2),
    "multiples of a large power of two": pa.array(_COUNT * 2**40),
    "negative integers": pa.array(-_COUNT),
    "counting texts": pa.array(_COUNT).cast(pa.string()),
    "texts with a long common start": pa.array([f"{'x' * 100}{n}" for n in range(_ROWS)]),
    "one letter and zeros": pa.array([f"v{n:09}" for n in range(_ROWS)]),
    "whole seconds": _every(timedelta(seconds=1)),
    "whole milliseconds": _every(timedelta(milliseconds=1)),
    "microseconds": _every(timedelta(microseconds=1)),
}


@pytest.mark.promise("H1")
@pytest.mark.parametrize("kind", KEYS)
def test_slices_share_the_rows_evenly_for_any_key_and_any_number_of_slices(kind: str) -> None:
    hashes = id_hashes(KEYS[kind], keyless=False)
    for slices in (*range(1, 17), 33, 64):
        shares = np.bincount(slice_of(hashes, slices), minlength=slices)
        assert len(shares) == slices
        assert shares.sum() == _ROWS
        assert abs(shares / (_ROWS / slices) - 1).max() <= 0.3


@pytest.mark.promise("H1", "A9")
def test_slices_stay_what_they_were_in_earlier_releases() -> None:
    texts = pa.array(["a", "vessel-1", "", "0123456789ABCDEFGHJKMNP", "Ångström", None])
    numbers = pa.array([0, 1, -1, 2**53, None])
    assert slice_of(id_hashes(texts, keyless=False), 64).tolist() == [14, 37, 58, 5, 0, 0]
    assert slice_of(id_hashes(numbers, keyless=False), 64).tolist() == [58, 58, 32, 25, 0]


def test_ids_read_back_as_other_arrow_types_have_the_same_slice() -> None:
    texts = ["a", "b" * 30, "c"]
    expected = id_hashes(pa.array(texts), keyless=False).tolist()
    for type_ in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert id_hashes(pa.array(texts, type_), keyless=False).tolist() == expected
    assert id_hashes(pa.array(["x", *texts]).slice(1), keyless=False).tolist() == expected


def test_equal_rows_of_a_keyless_table_share_a_slice() -> None:
    stem = "01KHJ5T6V01234567890ABC"
    ids = pa.array([stem, f"{stem}-1", f"{stem}-12345", "x" + stem[1:]])
    hashes = id_hashes(ids, keyless=True)
    assert Counter(hashes.tolist()).most_common(1)[0][1] == 3
    assert hashes[0] == id_hashes(ids, keyless=False)[0]


def test_a_row_without_an_id_has_the_hash_zero() -> None:
    for ids in (pa.array(["a", None]), pa.array([1, None])):
        assert id_hashes(ids, keyless=False)[1] == 0

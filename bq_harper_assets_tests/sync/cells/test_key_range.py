"""Rows are cut by key into numbered ranges, and every key lies in exactly one."""

import pickle
from bisect import bisect_right

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder, KeyRange

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=4)


def _numbers(cut: KeyCut, keys: pa.Array) -> list[int]:
    batch = pa.record_batch({"k": keys})
    found: list[int] = cut.axis_values(batch, "ts", ("k", "second")).to_pylist()
    return found


@given(st.sets(NUMBERS, max_size=9), st.lists(NUMBERS, max_size=30))
def test_a_number_lies_in_the_range_that_its_bounds_say(bounds: set[int], keys: list[int]) -> None:
    edges = sorted(bounds)
    cut = KeyCut(tuple(map(str, edges)), KeyOrder.NUMBERS)
    keys += edges
    wanted = [bisect_right(edges, key) for key in keys]
    assert _numbers(cut, pa.array(keys, pa.int64())) == wanted
    for key, number in zip(keys, wanted, strict=True):
        found = cut.range_at(number)
        assert found.low is None or int(found.low) <= key
        assert found.high is None or key < int(found.high)


@given(st.sets(TEXTS, max_size=9), st.lists(TEXTS, max_size=30))
def test_a_text_lies_in_its_range_by_its_bytes(bounds: set[str], keys: list[str]) -> None:
    edges = sorted(bounds, key=lambda text: text.encode())
    cut = KeyCut(tuple(edges), KeyOrder.BYTES)
    keys += edges
    encoded = [edge.encode() for edge in edges]
    wanted = [bisect_right(encoded, key.encode()) for key in keys]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        assert _numbers(cut, pa.array(keys, pa.string()).cast(kind)) == wanted


def test_numbers_are_not_compared_as_texts() -> None:
    cut = KeyCut(("9", "10"), KeyOrder.NUMBERS)
    assert _numbers(cut, pa.array(["8", "9", "10", "100"])) == [0, 1, 2, 2]
    with pytest.raises(ValueError, match="must ascend: 9, 10"):
        KeyCut(("9", "10"), KeyOrder.BYTES)


def test_a_row_without_a_key_is_in_the_first_range_where_it_is_rejected() -> None:
    cut = KeyCut(("5",), KeyOrder.NUMBERS)
    assert _numbers(cut, pa.array([None, 4, 5, None])) == [0, 0, 1, 0]
    assert _numbers(KeyCut((), KeyOrder.NUMBERS), pa.array([None, 4])) == [0, 0]


def test_the_ranges_of_a_cut_meet_and_are_open_at_both_ends() -> None:
    cut = KeyCut(("1000", "2000"), KeyOrder.NUMBERS)
    assert cut.ranges == (
        KeyRange(0, None, "1000"),
        KeyRange(1, "1000", "2000"),
        KeyRange(2, "2000", None),
    )
    assert [(each.axis_start, each.axis_end) for each in cut.ranges] == [(0, 1), (1, 2), (2, 3)]
    assert [Cell(each, 1).key for each in cut.ranges] == [
        "..1000|s01",
        "1000..2000|s01",
        "2000..|s01",
    ]
    assert pickle.loads(pickle.dumps(cut)) == cut
    for number in (-1, 3):
        with pytest.raises(ValueError, match=f"no key range {number} of 3"):
            cut.range_at(number)


@pytest.mark.parametrize("bounds", [("2", "1"), ("1", "1")])
def test_bounds_that_do_not_ascend_are_refused(bounds: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="must ascend"):
        KeyCut(bounds, KeyOrder.NUMBERS)

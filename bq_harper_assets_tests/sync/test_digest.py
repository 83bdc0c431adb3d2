"""Digests: equal for equal rows in any order and from any parts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.digest import Digest

HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=20)


def _of(hashes: list[int]) -> Digest:
    return Digest.of(np.array(hashes, np.uint64))


@settings(deadline=None)
@given(HASHES, HASHES)
def test_parts_in_any_order_add_up_to_the_whole(one: list[int], other: list[int]) -> None:
    assert _of(one) + _of(other) == _of(sorted(one + other))
    assert Digest.parse(str(_of(one))) == _of(one)


def test_no_rows_add_nothing() -> None:
    assert _of([]) == Digest()
    assert Digest() + _of([5]) == _of([5])


def test_a_doubled_lost_or_changed_row_is_seen() -> None:
    assert len({_of([1, 2]), _of([1, 2, 2]), _of([1]), _of([1, 3]), _of([1, 2, 0])}) == 5

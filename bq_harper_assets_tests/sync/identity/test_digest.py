"""Digests: equal for equal rows in any order and from any parts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.identity.digest import Digest, digests_by_place

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


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**64 - 1)), max_size=30))
def test_each_place_gets_the_digest_of_its_own_rows(rows: list[tuple[int, int]]) -> None:
    places = np.array([place for place, _ in rows], np.int64)
    hashes = np.array([row_hash for _, row_hash in rows], np.uint64)
    assert digests_by_place(places, hashes) == {
        place: _of([row_hash for at, row_hash in rows if at == place])
        for place in sorted({place for place, _ in rows})
    }

"""Numbers as text of fixed width: no bit is lost, and the order stays."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.arrays.base32 import base32, base32_of_128
from bq_harper_assets_tests.sync.identity.test_row_id import decoded


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1))
def test_base32_holds_every_bit_and_sorts_like_the_numbers(pairs: list[tuple[int, int]]) -> None:
    high, low = (np.array(numbers, np.uint64) for numbers in zip(*pairs, strict=True))
    assert [decoded(bytes(row).decode()) for row in base32(high, 13)] == high.tolist()
    texts = [bytes(row).decode() for row in base32_of_128(high, low)]
    assert [decoded(text) for text in texts] == [one << 64 | other for one, other in pairs]
    assert {len(text) for text in texts} == {26}
    assert [decoded(text) for text in sorted(texts)] == sorted(map(decoded, texts))

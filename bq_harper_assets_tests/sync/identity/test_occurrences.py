"""Numbers of rows that would share an id: each is given once, whatever the streams and batches."""

from collections import Counter as Count
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.identity.occurrences import Counter, numbers_by_stream

# The stream, the id that the row would have, its content, and where its stream is cut after it.
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 2), st.booleans())
)
Row = tuple[str, int, int, bool]


def _hash(row: Row) -> int:
    """Rows of one content have one hash, and contents of two ids have two."""
    _, row_id, content, _ = row
    return 10 * (2 - row_id) + content  # hashes do not come in the order of ids


def _numbered(rows: list[Row]) -> list[tuple[int, int]]:
    """(id, number) of each row, as the streams give them out batch by batch."""
    counts = Count((row[1], _hash(row), row[0]) for row in rows)
    numbers = numbers_by_stream((*what, count) for what, count in counts.items())
    found: list[tuple[int, int]] = []
    for stream in "abc":
        counter = Counter(numbers.get(stream))
        batch: list[Row] = []
        mine = [row for row in rows if row[0] == stream]
        for at, row in enumerate(mine, 1):
            batch.append(row)
            if row[3] or at == len(mine):
                given_out = counter.number(np.array([_hash(each) for each in batch], np.uint64))
                ids = [each[1] for each in batch]
                found += zip(ids, given_out.to_pylist(), strict=True)
                batch = []
    return found


@settings(deadline=None)
@given(ROWS)
def test_the_rows_of_an_id_have_the_numbers_from_nought_each_once(rows: list[Row]) -> None:
    found = _numbered(rows)
    for row_id in {row[1] for row in rows}:
        numbers = sorted(number for each, number in found if each == row_id)
        assert numbers == list(range(len(numbers)))
    assert len(found) == len(rows)


@settings(deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_neither_order_nor_batches_change_which_contents_have_which_numbers(
    rows: list[Row], chance: Random
) -> None:
    def by_content(given_rows: list[Row]) -> set[tuple[int, int, int]]:
        counts = Count((row[1], _hash(row), row[0]) for row in given_rows)
        numbers = numbers_by_stream((*what, count) for what, count in counts.items())
        return {
            (ord(stream), int(row_hash), int(first))
            for stream, known in numbers.items()
            for row_hash, first in zip(known.hashes, known.firsts, strict=True)
        }

    shuffled = list(rows)
    chance.shuffle(shuffled)
    assert by_content(shuffled) == by_content(rows)


def test_a_row_that_shares_its_id_with_no_other_has_the_number_nought() -> None:
    assert Counter(None).number(np.array([5, 6], np.uint64)).to_pylist() == [0, 0]
    numbers = numbers_by_stream([(1, 7, "a", 2)])
    found = Counter(numbers["a"]).number(np.array([7, 99, 7], np.uint64))
    assert found.to_pylist() == [0, 0, 1]

"""Rows of a keyless table that would share an id get numbers, so that all of them are kept.

Equal rows are interchangeable: it does not matter which of them has which number, only that each
number is given once. So it is enough to know how often each content occurs in each stream; a
stream's numbers then begin where those of the streams before it end, whatever order rows come in.
Rows that differ only in columns that came later share an id too: their contents take turns in the
order of their hashes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import Int64s, UInt64s


@dataclass(frozen=True, eq=False)
class Numbers:
    """A stream's numbers are its doubled row hashes, ascending, and the first number of each."""

    hashes: UInt64s
    firsts: Int64s


def numbers_by_stream(counts: Iterable[tuple[int, int, str, int]]) -> Mapping[str, Numbers]:
    """Gives each stream its numbers, so that no two rows with one id get the same number.

    Each count is (id hash, row hash, stream, how often), for ids that several rows would share.
    """
    next_number: dict[int, int] = {}
    firsts: dict[str, dict[int, int]] = {}
    for id_hash, row_hash, stream, count in sorted(counts):
        number = next_number.get(id_hash, 0)
        firsts.setdefault(stream, {})[row_hash] = number
        next_number[id_hash] = number + count
    return {
        stream: Numbers(
            np.array(sorted(by_hash), np.uint64),
            np.array([by_hash[row_hash] for row_hash in sorted(by_hash)], np.int64),
        )
        for stream, by_hash in firsts.items()
    }


class Counter:
    """A counter gives out the numbers of one stream, batch by batch."""

    def __init__(self, numbers: Numbers | None) -> None:
        self._hashes = numbers.hashes if numbers else np.array([], np.uint64)
        self._next = numbers.firsts.copy() if numbers else np.array([], np.int64)

    def number(self, row_hashes: UInt64s) -> pa.Int64Array:
        """Returns the number of each row; it is 0 for a row that shares its id with no other."""
        numbers = np.zeros(len(row_hashes), np.int64)
        if not len(self._hashes):
            return pa.array(numbers)
        at = np.minimum(np.searchsorted(self._hashes, row_hashes), len(self._hashes) - 1)
        doubled = np.flatnonzero(self._hashes[at] == row_hashes)
        order = doubled[np.argsort(at[doubled], kind="stable")]
        contents, begins, counts = np.unique(at[order], return_index=True, return_counts=True)
        ranks = np.arange(len(order)) - np.repeat(begins, counts)
        numbers[order] = self._next[at[order]] + ranks
        self._next[contents] += counts
        return pa.array(numbers)

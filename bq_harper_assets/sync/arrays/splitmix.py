"""Numbers and byte strings are mixed to 64 bits here, which row hashes, ids and slices build on.

Stored ids and hashes depend on every constant here: with another one all stored rows would look
changed.
"""

from functools import lru_cache
from hashlib import blake2b

import numpy as np

from bq_harper_assets.sync.arrays.arrow_memory import Bytes, Int64s, UInt64s, offsets_of

GOLDEN = 0x9E3779B97F4A7C15
# Hashes of the two lanes collide together only by chance. The digits are those of pi, so that
# nobody chose them.
LANES = (0x243F6A8885A308D3, 0x13198A2E03707344)
_MASK = 0xFFFFFFFFFFFFFFFF
_M1, _M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_KEEP = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
_COLUMNWISE_BYTES = 64  # most texts are shorter, and for them a pass over all rows is faster


def mix(numbers: UInt64s) -> UInt64s:
    """Mixes numbers in place: each result bit depends on every bit of the number (splitmix64)."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(_M1)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(_M2)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def mix_one(number: int) -> int:
    """Does for one number what mix() does for many."""
    number &= _MASK
    number = (number ^ number >> 30) * _M1 & _MASK
    number = (number ^ number >> 27) * _M2 & _MASK
    return number ^ number >> 31


@lru_cache(maxsize=4096)
def seed_of(name: str, lane: int) -> np.uint64:
    """Returns the number that makes equal values of two columns hash differently."""
    digest = blake2b(name.encode(), digest_size=16).digest()
    return np.uint64(int.from_bytes(digest[8 * lane : 8 * lane + 8], "little"))


def position_keys(positions: Int64s, lane: int) -> UInt64s:
    """Returns the numbers that make equal elements at two positions of a list hash differently."""
    return mix(positions.astype(np.uint64) * np.uint64(GOLDEN) + np.uint64(LANES[lane]))


def sums_of_runs(numbers: UInt64s, offsets: Int64s) -> UInt64s:
    """Returns the sum, modulo 2^64, of each run of numbers."""
    totals = np.zeros(len(numbers) + 1, np.uint64)
    np.cumsum(numbers, out=totals[1:])
    sums: UInt64s = totals[offsets[1:]] - totals[offsets[:-1]]
    return sums


def positions_in_runs(lengths: Int64s) -> Int64s:
    """Counts 0, 1, 2 ... within each run, one run after the other."""
    offsets = offsets_of(lengths)
    positions: Int64s = np.arange(offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    return positions


def hash_bytes(starts: Int64s, lengths: Int64s, data: Bytes, lane: int) -> UInt64s:
    """Hashes each byte string, from its length and the sum of its mixed 8-byte words.

    A sum lets all words of all strings be mixed at once, however long the longest string is.
    """
    padded = np.zeros(len(data) + 8, np.uint8)
    padded[: len(data)] = data
    words = np.ndarray((len(data) + 1,), "<u8", padded, 0, (1,))  # the word at every byte
    sums = lengths.astype(np.uint64) * np.uint64(GOLDEN) + np.uint64(LANES[lane])
    longest = int(lengths.max()) if len(lengths) else 0
    rows = np.flatnonzero(lengths > 0)
    for at in range(0, min(longest, _COLUMNWISE_BYTES), 8):
        rows = rows[lengths[rows] > at] if at else rows
        key = np.uint64(mix_one(at // 8 * GOLDEN + LANES[lane]))
        word = words[starts[rows] + at] & _KEEP[np.minimum(lengths[rows] - at, 8)]
        sums[rows] += mix(word ^ key)
    if longest > _COLUMNWISE_BYTES:
        rows = np.flatnonzero(lengths > _COLUMNWISE_BYTES)
        sums[rows] += _tails(starts[rows], lengths[rows], words, lane)
    return mix(sums)


def _tails(starts: Int64s, lengths: Int64s, words: UInt64s, lane: int) -> UInt64s:
    counts = (lengths - _COLUMNWISE_BYTES + 7) // 8
    positions = positions_in_runs(counts) + _COLUMNWISE_BYTES // 8
    left = np.repeat(lengths, counts) - positions * 8
    word = words[np.repeat(starts, counts) + positions * 8] & _KEEP[np.minimum(left, 8)]
    return sums_of_runs(mix(word ^ position_keys(positions, lane)), offsets_of(counts))

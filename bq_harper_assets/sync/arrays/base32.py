"""Numbers are written as Crockford base 32 of fixed width, so that text order is number order."""

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import Bytes, UInt64s, null_mask, variable_width

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS = np.frombuffer(ALPHABET.encode(), np.uint8)
# Writing two letters at a time halves the passes over the numbers.
_PAIRS = np.stack([np.repeat(_LETTERS, 32), np.tile(_LETTERS, 32)], axis=1).view(np.uint16)[:, 0]

_VALUES = np.full(256, 32, np.uint64)  # 32 means that the byte is not a letter of the alphabet
_VALUES[_LETTERS] = np.arange(32)


def base32(numbers: UInt64s, width: int) -> Bytes:
    """Writes the lowest 5 x width bits of each number as one row of characters."""
    pairs = np.empty((len(numbers), (width + 1) // 2), np.uint16)
    left = numbers
    for at in reversed(range(pairs.shape[1])):
        pairs[:, at] = _PAIRS[left & np.uint64(1023)]
        left = left >> np.uint64(10)
    return pairs.view(np.uint8)[:, width % 2 :]


def base32_of_128(high: UInt64s, low: UInt64s) -> Bytes:
    """Writes the 128 bits high, low of each row as 26 characters."""
    middle = (high << np.uint64(4)) | (low >> np.uint64(60))
    top = high >> np.uint64(56)
    return np.concatenate([base32(top, 2), base32(middle, 12), base32(low, 12)], axis=1)


def number_of(texts: pa.Array, width: int) -> UInt64s:
    """Reads the numbers that base32() wrote; gives 0 where a text is NULL or not written by it."""
    starts, lengths, data = variable_width(texts)
    fitting = lengths == width
    nulls = null_mask(texts)
    if nulls is not None:
        fitting &= ~nulls
    numbers = np.zeros(len(texts), np.uint64)
    at = starts[fitting]
    read = np.zeros(len(at), np.uint64)
    known = np.ones(len(at), np.bool_)
    for position in range(width):
        values = _VALUES[data[at + position]]
        known &= values < 32
        read = (read << np.uint64(5)) | values
    read[~known] = 0
    numbers[fitting] = read
    return numbers

"""Numbers as Crockford base 32 text of fixed width: text order is number order."""

import numpy as np

from bq_harper_assets.sync.arrow_buffers import Bytes, UInt64s

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS = np.frombuffer(ALPHABET.encode(), np.uint8)
# Two letters at a time halves the passes over the numbers.
_PAIRS = np.stack([np.repeat(_LETTERS, 32), np.tile(_LETTERS, 32)], axis=1).view(np.uint16)[:, 0]


def base32(numbers: UInt64s, width: int) -> Bytes:
    """The lowest 5 x width bits of each number as one row of characters."""
    pairs = np.empty((len(numbers), (width + 1) // 2), np.uint16)
    left = numbers
    for at in reversed(range(pairs.shape[1])):
        pairs[:, at] = _PAIRS[left & np.uint64(1023)]
        left = left >> np.uint64(10)
    return pairs.view(np.uint8)[:, width % 2 :]


def base32_of_128(high: UInt64s, low: UInt64s) -> Bytes:
    """26 characters of the 128 bits high, low."""
    middle = (high << np.uint64(4)) | (low >> np.uint64(60))
    top = high >> np.uint64(56)
    return np.concatenate([base32(top, 2), base32(middle, 12), base32(low, 12)], axis=1)

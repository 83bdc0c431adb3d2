"""BYTES values are stored as base64 text."""

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import (
    null_mask,
    offsets_of,
    text_of_offsets,
    variable_width,
)
from bq_harper_assets.sync.arrays.splitmix import positions_in_runs

_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)


def base64_text(array: pa.Array) -> pa.LargeStringArray:
    """Encodes values as standard base64 with padding; NULLs stay NULL."""
    starts, lengths, data = variable_width(array)
    groups = (lengths + 2) // 3
    positions = positions_in_runs(groups) * 3
    at = np.repeat(starts, groups) + positions
    left = np.repeat(lengths, groups) - positions  # the bytes of the value from this group on
    padded = np.concatenate([data, np.zeros(2, np.uint8)]).astype(np.uint32)
    bits = padded[at] << 16
    bits |= np.where(left > 1, padded[at + 1], 0) << 8
    bits |= np.where(left > 2, padded[at + 2], 0)
    out = np.empty((len(at), 4), np.uint8)
    for place, shift in enumerate((18, 12, 6, 0)):
        out[:, place] = _ALPHABET[bits >> shift & 63]
    out[left < 2, 2] = ord("=")
    out[left < 3, 3] = ord("=")
    return text_of_offsets(offsets_of(groups) * 4, out, null_mask(array))

"""The slice of a row follows from its id, never from its timestamp, which may change windows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.sync.arrays.arrow_memory import (
    Int64s,
    UInt64s,
    fixed_width,
    null_mask,
    plain,
    variable_width,
)
from bq_harper_assets.sync.arrays.splitmix import LANES, hash_bytes, mix

KEYLESS_LENGTH = 23  # characters of a keyless id before its occurrence number


def id_hashes(ids: pa.Array, *, keyless: bool) -> UInt64s:
    """Hashes each id to the same number whether it was just made or read back from the target.

    Equal rows of a keyless table share a hash, because the occurrence number is left out of it.
    A row without an id has the hash 0.
    """
    values = plain(ids)
    if pa.types.is_integer(values.type):
        hashes = mix(fixed_width(values.cast(pa.int64()), np.uint64) + np.uint64(LANES[0]))
    elif keyless:
        texts = pc.binary_slice(values.cast(pa.binary()), 0, KEYLESS_LENGTH)
        hashes = hash_bytes(*variable_width(texts), 0)
    else:
        hashes = hash_bytes(*variable_width(values), 0)
    nulls = null_mask(values)
    if nulls is not None:
        hashes[nulls] = 0
    return hashes


def slice_of(hashes: UInt64s, slices: int) -> Int64s:
    """Returns the slice, 0 to slices - 1, of each id hash."""
    upper = hashes >> np.uint64(32)
    return ((upper * np.uint64(slices)) >> np.uint64(32)).astype(np.int64)

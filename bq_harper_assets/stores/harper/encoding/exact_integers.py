"""A JavaScript number holds integers exactly only up to 2^53."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.sync.arrays.arrow_memory import Bools, fixed_width, null_mask

LARGEST_INTEGER = 2**53


def exceeds_safe_integer(values: pa.Int64Array) -> Bools:
    """Says where a value lies beyond +-2^53."""
    limits = pc.min_max(values)
    least, most = limits["min"].as_py(), limits["max"].as_py()
    if least is None or (least >= -LARGEST_INTEGER and most <= LARGEST_INTEGER):
        return np.zeros(len(values), np.bool_)
    numbers = fixed_width(values, np.int64)
    beyond: Bools = (numbers > LARGEST_INTEGER) | (numbers < -LARGEST_INTEGER)
    nulls = null_mask(values)
    return beyond if nulls is None else beyond & ~nulls

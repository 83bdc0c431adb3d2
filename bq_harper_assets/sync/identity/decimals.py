"""NUMERIC and BIGNUMERIC are written digit by digit, and checked for what a number can hold."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.sync.arrays.arrow_memory import Bools

MOST_DIGITS = 15  # a double keeps every decimal of so many digits


def decimal_texts(array: pa.Array) -> pa.StringArray:
    """Writes the shortest plain text, without an exponent and without needless zeros."""
    scale = array.type.scale
    signed = pc.cast(_unscaled(array), pa.string())
    if scale == 0:
        return signed
    digits = pc.ascii_lpad(pc.ascii_ltrim(signed, "-"), scale + 1, "0").cast(pa.binary())
    whole = pc.binary_slice(digits, 0, -scale).cast(pa.string())
    fraction = pc.ascii_rtrim(pc.binary_slice(digits, -scale).cast(pa.string()), "0")
    point = pc.if_else(pc.equal(fraction, ""), "", ".")
    sign = pc.if_else(pc.starts_with(signed, "-"), "-", "")
    return pc.binary_join_element_wise(sign, whole, point, fraction, "")


def exceeds_number(texts: pa.StringArray) -> Bools:
    """Says where a decimal's text has more significant digits than a number keeps."""
    longest = pc.max(pc.binary_length(texts)).as_py()
    if longest is None or longest <= MOST_DIGITS:
        return np.zeros(len(texts), np.bool_)
    digits = pc.ascii_trim(pc.replace_substring(texts, ".", ""), "-0")
    beyond = pc.fill_null(pc.greater(pc.binary_length(digits), MOST_DIGITS), False)
    found: Bools = beyond.to_numpy(zero_copy_only=False)
    return found


def _unscaled(array: pa.Array) -> pa.Array:
    """Removes the decimal point: Arrow prints small decimals with an exponent, whole ones never."""
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(38, array.type.scale))
    whole = pa.decimal128(38, 0) if array.type.bit_width == 128 else pa.decimal256(76, 0)
    return pa.Array.from_buffers(whole, len(array), array.buffers(), array.null_count, array.offset)

"""INTERVAL and RANGE values are stored as text, the way BigQuery writes them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.stores.harper.encoding.times import date_text, datetime_texts, timestamp_texts
from bq_harper_assets.sync.arrays.arrow_memory import Int64s, fixed_width, null_mask, plain

UNBOUNDED = "UNBOUNDED"
_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])


def interval_texts(array: pa.Array) -> pa.StringArray:
    """Writes `1-2 3 4:5:6.789`: years-months days hours:minutes:seconds, each with its own sign."""
    parts = fixed_width(array, _PARTS)
    months = parts["months"].astype(np.int64)
    nanos = parts["nanos"].astype(np.int64)
    seconds, fraction = np.divmod(np.abs(nanos), 1_000_000_000)
    text = pc.binary_join_element_wise(
        _sign(months), _digits(np.abs(months) // 12), "-", _digits(np.abs(months) % 12), " ",
        _digits(parts["days"].astype(np.int64)), " ",
        _sign(nanos), _digits(seconds // 3600), ":", _digits(seconds // 60 % 60), ":",
        _digits(seconds % 60), _fraction(fraction), "",
    )  # fmt: skip
    nulls = null_mask(array)
    return text if nulls is None else pc.if_else(pa.array(nulls), pa.scalar(None, text.type), text)


def range_texts(array: pa.Array) -> pa.Array:
    """Writes `[start, end)` with bounds as single values are stored; an open end is UNBOUNDED."""
    start, end = (_bound(plain(child)) for child in array.flatten())
    text = pc.binary_join_element_wise("[", start, ", ", end, ")", "")
    nulls = null_mask(array)
    return text if nulls is None else pc.if_else(pa.array(nulls), pa.scalar(None, text.type), text)


def _bound(array: pa.Array) -> pa.Array:
    if pa.types.is_date(array.type):
        text = date_text(array)
    elif array.type.tz is None:
        text = datetime_texts(array)
    else:
        text = timestamp_texts(array)
    return pc.fill_null(text, UNBOUNDED)


def _sign(numbers: Int64s) -> pa.Array:
    return pc.if_else(pa.array(numbers < 0), "-", "")


def _digits(numbers: Int64s) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _fraction(nanos: Int64s) -> pa.Array:
    """Writes nothing, or a point and 3, 6 or 9 digits, as many as are needed."""
    digits = pc.ascii_lpad(_digits(nanos), 9, "0")
    for shorter in (6, 3):
        cut = pc.utf8_slice_codeunits(digits, 0, shorter)
        digits = pc.if_else(pc.ends_with(digits, "000"), cut, digits)
    return pc.if_else(pa.array(nanos == 0), "", pc.binary_join_element_wise(".", digits, ""))

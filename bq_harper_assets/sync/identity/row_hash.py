"""A row hash is a 64-bit number made of a row's typed values: equal rows have equal hashes.

row    = mix(lane + sum over the present columns of mix(mix(lane + value) ^ seed(name)))
struct = as a row, of its fields
list   = mix(lane + length * golden + sum over elements of mix(mix(lane + value) ^ key(position)))
text   = its bytes, by splitmix.hash_bytes; a decimal is its shortest text, an interval its 16 bytes
number = its 64 bits; -0.0 counts as 0.0; a time is microseconds, a date days

A NULL and an empty list are not present, at any depth, so that a column that was added and never
filled changes no hash. A struct of NULLs is present. A JSON value is its text.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import (
    Bools,
    UInt64s,
    fixed_width,
    list_lengths,
    null_mask,
    offsets_of,
    plain,
    variable_width,
)
from bq_harper_assets.sync.arrays.splitmix import (
    GOLDEN,
    LANES,
    hash_bytes,
    mix,
    position_keys,
    positions_in_runs,
    seed_of,
    sums_of_runs,
)
from bq_harper_assets.sync.errors import UnhashableType
from bq_harper_assets.sync.identity.decimals import decimal_texts

_NAN = 0x7FF8000000000000  # NaNs may differ in bits that carry no meaning


def row_hashes(
    batch: pa.RecordBatch, columns: Sequence[str] | None = None, *, lane: int = 0
) -> UInt64s:
    """Hashes each row over the named columns (all by default), whatever order they come in."""
    names = batch.schema.names if columns is None else columns
    return _hash_fields([(name, batch.column(name)) for name in names], batch.num_rows, lane)


def _hash_fields(fields: Sequence[tuple[str, pa.Array]], count: int, lane: int) -> UInt64s:
    sums = np.full(count, LANES[lane], np.uint64)
    for name, array in fields:
        values = plain(array)
        absent = _absent(values)
        if absent is not None and absent.all():
            continue
        mixed = mix(_values(values, lane) + np.uint64(LANES[lane]))
        mixed ^= seed_of(name, lane)
        mix(mixed)
        if absent is not None:
            mixed[absent] = 0
        sums += mixed
    return mix(sums)


def _absent(array: pa.Array) -> Bools | None:
    if _is_list(array.type):
        empty: Bools = list_lengths(array) == 0
        return empty
    return null_mask(array)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _values(array: pa.Array, lane: int) -> UInt64s:
    """Returns one number per element; the number of a NULL element is undefined."""
    type_ = array.type
    if pa.types.is_null(type_):
        return np.zeros(len(array), np.uint64)
    if pa.types.is_struct(type_):
        fields = [(field.name, child) for field, child in zip(type_, array.flatten(), strict=True)]
        return _hash_fields(fields, len(array), lane)
    if _is_list(type_):
        return _lists(array, lane)
    if pa.types.is_boolean(type_):
        flags = array.fill_null(False).to_numpy(zero_copy_only=False)
        return np.asarray(flags).astype(np.uint64)
    if pa.types.is_floating(type_):
        return _floats(array)
    if pa.types.is_decimal(type_):
        return hash_bytes(*variable_width(decimal_texts(array)), lane)
    if pa.types.is_interval(type_):
        raw = fixed_width(array, "V16").view(np.uint8)
        starts = np.arange(len(array), dtype=np.int64) * 16
        return hash_bytes(starts, np.full(len(array), 16, np.int64), raw, lane)
    if pa.types.is_temporal(type_):
        return _times(array)
    if pa.types.is_integer(type_):
        return fixed_width(array.cast(pa.int64()), np.uint64)
    if _is_bytes(type_):
        return hash_bytes(*variable_width(array), lane)
    raise UnhashableType(type_)


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def _floats(array: pa.Array) -> UInt64s:
    numbers = fixed_width(array.cast(pa.float64()), np.float64) + 0.0
    bits: UInt64s = numbers.view(np.uint64)
    bits[np.isnan(numbers)] = _NAN
    return bits


def _times(array: pa.Array) -> UInt64s:
    if pa.types.is_date(array.type):
        days = fixed_width(array.cast(pa.date32()), np.int32)
        return days.astype(np.int64).view(np.uint64)
    if pa.types.is_time(array.type):
        return fixed_width(array.cast(pa.time64("us")), np.uint64)
    if pa.types.is_timestamp(array.type):
        return fixed_width(array.cast(pa.timestamp("us", array.type.tz)), np.uint64)
    raise UnhashableType(array.type)


def _lists(array: pa.Array, lane: int) -> UInt64s:
    lengths = list_lengths(array)
    elements = plain(array.flatten())
    mixed = mix(_values(elements, lane) + np.uint64(LANES[lane]))
    keys = position_keys(positions_in_runs(lengths), lane)
    mixed = mix(mixed ^ keys)
    nulls = null_mask(elements)
    if nulls is not None:
        mixed[nulls] = keys[nulls]
    sums = lengths.astype(np.uint64) * np.uint64(GOLDEN) + np.uint64(LANES[lane])
    sums += sums_of_runs(mixed, offsets_of(lengths))
    return mix(sums)

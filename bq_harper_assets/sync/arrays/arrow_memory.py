"""These functions show Arrow's memory as numpy arrays and back: no row becomes a Python object."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
Bytes = NDArray[np.uint8]


def plain(array: pa.Array) -> pa.Array:
    """Returns the same values without dictionaries, extension types and views."""
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    if pa.types.is_dictionary(array.type):
        return plain(array.dictionary_decode())
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def null_mask(array: pa.Array) -> Bools | None:
    """Returns a mask of the NULL values, or None if no value is NULL."""
    if array.null_count == 0:
        return None
    mask: Bools = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def fixed_width(array: pa.Array, dtype: DTypeLike) -> NDArray[Any]:
    """Returns the values of a fixed-width array without a copy; values under NULL are undefined."""
    kind = np.dtype(dtype)
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind, count=len(array), offset=array.offset * kind.itemsize)


def variable_width(array: pa.Array) -> tuple[Int64s, Int64s, Bytes]:
    """Returns the start and length of each text or byte string, and the bytes that hold them all.

    Starts and lengths under NULL are undefined.
    """
    count = len(array)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        starts = np.arange(count, dtype=np.int64) * width
        data = fixed_width(array, f"V{width}").view(np.uint8)
        return starts, np.full(count, width, np.int64), data
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.dtype(np.int64 if large else np.int32)
    _, positions, content = array.buffers()
    if positions is None or count == 0:
        return np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(
        positions, dtype, count=count + 1, offset=array.offset * dtype.itemsize
    ).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    data = (
        np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)[first:last]
    )
    return offsets[:-1] - first, np.diff(offsets), data


def list_lengths(array: pa.Array) -> Int64s:
    """Counts the elements of each list; a NULL list has none."""
    lengths: Int64s = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    return lengths


def offsets_of(lengths: Int64s) -> Int64s:
    """Returns where each of several adjacent runs begins, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def text_of_width(characters: Bytes, nulls: Bools | None) -> pa.StringArray:
    """Makes an array of equally long ASCII texts, one per row of a matrix."""
    count, width = characters.shape
    offsets = np.arange(0, width * count + 1, width, dtype=np.int32)
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(characters)), _bitmap(nulls)
    )


def text_of_offsets(offsets: Int64s, data: Any, nulls: Bools | None = None) -> pa.LargeStringArray:
    """Makes an array of the texts that follow one another in `data`."""
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data), _bitmap(nulls)
    )


def _bitmap(nulls: Bools | None) -> pa.Buffer | None:
    return None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))

"""Arrow columns become JSON text, written by arro3 or joined from texts that are JSON already."""

import io
import json
from collections.abc import Sequence

import arro3.io
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.sync.arrays.arrow_memory import Bytes, Int64s, text_of_offsets

_NEWLINE, _COMMA = b"\n,"


def json_lines(rows: pa.RecordBatch) -> tuple[Bytes, Int64s]:
    """Writes all rows as JSON objects, without the first brace, and returns where each begins.

    Row i is `{` + text[offsets[i] : offsets[i + 1] - 2], for `,{` follows each row.
    """
    out = io.BytesIO()
    # By default arro3 leaves NULLs out, and it panics on slices of records inside of records.
    arro3.io.write_ndjson(_compact(rows), out, explicit_nulls=True)
    out.write(b"{")
    text = np.frombuffer(out.getbuffer(), np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)  # inside of a string a newline is escaped
    text[ends] = _COMMA
    offsets = np.ones(len(ends) + 1, np.int64)
    np.add(ends, 2, out=offsets[1:])
    return text, offsets


def json_of(array: pa.Array) -> pa.LargeStringArray:
    """Writes each value as JSON text; a NULL becomes `null`."""
    if len(array) == 0:
        return pa.array([], pa.large_string())
    text, offsets = json_lines(pa.record_batch([array], ["v"]))
    lines = text_of_offsets(offsets, text).cast(pa.large_binary())
    return pc.binary_slice(lines, len('"v":'), -len("},{")).cast(pa.large_string())


def array_of(offsets: Int64s, elements: pa.Array) -> pa.LargeStringArray:
    """Makes JSON arrays of JSON texts; array i has the elements [offsets[i], offsets[i + 1])."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), elements)
    return joined(["[", pc.binary_join(lists, _literal(",")), "]"])


def object_of(names: Sequence[str], values: Sequence[pa.Array]) -> pa.LargeStringArray:
    """Makes JSON objects of JSON texts."""
    parts: list[pa.Array | str] = ["{"]
    for name, value in zip(names, values, strict=True):
        comma = "," if len(parts) > 1 else ""
        parts += [f"{comma}{member(name)}", value]
    return joined([*parts, "}"])


def member(name: str) -> str:
    """Returns the text before a value in an object: its name and a colon."""
    return f"{json.dumps(name, ensure_ascii=False)}:"


def joined(parts: Sequence[pa.Array | str]) -> pa.LargeStringArray:
    """Joins the parts of each row."""
    texts = [_literal(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*texts, _literal(""))


def _literal(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _compact(rows: pa.RecordBatch) -> pa.RecordBatch:
    if not any(pa.types.is_nested(field.type) for field in rows.schema):
        return rows
    return pa.ipc.read_record_batch(rows.serialize(), rows.schema)

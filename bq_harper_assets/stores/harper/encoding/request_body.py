"""Records become request bodies, cut by rows and by bytes; nothing is encoded twice."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bq_harper_assets.stores.harper.encoding.json_text import joined, json_lines, member
from bq_harper_assets.stores.harper.encoding.record import IS_JSON
from bq_harper_assets.sync.arrays.arrow_memory import Bytes, Int64s, text_of_offsets, variable_width


@dataclass(frozen=True)
class Body:
    """A body is a JSON array of the records first, first + 1, ... of a batch."""

    content: bytes
    first: int
    rows: int


def bodies(records: pa.RecordBatch, *, most_rows: int, most_bytes: int) -> Iterator[Body]:
    """Yields all records in order, within the limits; one beyond `most_bytes` is sent alone."""
    if records.num_rows == 0:
        return
    text, offsets = _lines(records)
    view, first = text.data, 0
    while first < records.num_rows:
        # A body of rows [first, end) has offsets[end] - offsets[first] + 1 bytes.
        fitting = int(np.searchsorted(offsets, offsets[first] + most_bytes - 1, side="right")) - 1
        end = min(max(fitting, first + 1), first + most_rows, records.num_rows)
        content = b"".join((b"[{", view[offsets[first] : offsets[end] - 2], b"]"))
        yield Body(content, first, end - first)
        first = end


def _lines(records: pa.RecordBatch) -> tuple[Bytes, Int64s]:
    """Does what json_lines() does, and puts columns that are JSON already before the others."""
    is_json = [field.metadata == IS_JSON for field in records.schema]
    if not any(is_json):
        return json_lines(records)
    names = records.schema.names
    raw = [name for name, already in zip(names, is_json, strict=True) if already]
    text, offsets = json_lines(records.select([name for name in names if name not in raw]))
    parts: list[pa.Array | str] = []
    for name in raw:
        parts += [member(name), records.column(name), ","]
    # A row's text ends with the next row's brace, so new members go directly after it.
    starts, lengths, data = variable_width(joined([*parts, text_of_offsets(offsets, text)]))
    return data, np.append(starts, starts[-1] + lengths[-1])

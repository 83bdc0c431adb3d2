"""The times of Harper's rows are read with care, because others may have written anything there."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.types import HARPER_KINDS
from bq_harper_assets.sync.cells.window import micros_of

_TYPES = {
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.DATETIME: pa.timestamp("us"),
    Kind.DATE: pa.date32(),
}


def stored_micros(values: Sequence[Any], kind: Kind) -> list[int | None]:
    """Converts stored times to microseconds since 1970; None stands for what is not a time."""
    texts = [value if isinstance(value, str) else None for value in values]
    try:
        return _micros(texts, _TYPES[kind])
    except pa.ArrowInvalid:  # one of them is not a time: they are read one by one
        return [_micros_or_none(text, _TYPES[kind]) for text in texts]


def texts_of_micros(micros: Sequence[int | None], kind: Kind) -> list[str | None]:
    """Returns the text that a sync stores for each time."""
    moments = pa.array(micros, pa.int64()).cast(_TYPES[Kind.TIMESTAMP]).cast(_TYPES[kind])
    texts = HARPER_KINDS[kind].texts
    assert texts is not None  # a time is stored as text
    return texts(moments).to_pylist()  # type: ignore[no-any-return]


def _micros_or_none(text: str | None, type_: pa.DataType) -> int | None:
    try:
        return _micros([text], type_)[0]
    except pa.ArrowInvalid:
        return None


def _micros(texts: Sequence[str | None], type_: pa.DataType) -> list[int | None]:
    return micros_of(pa.array(texts, pa.string()).cast(type_)).to_pylist()  # type: ignore[no-any-return]

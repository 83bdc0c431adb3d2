"""A column's values are stored faithfully, at any depth, or their rows are rejected with why."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.schema.harper_types import Form, HarperColumn
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.encoding.bytes_text import base64_text
from bq_harper_assets.stores.harper.encoding.exact_integers import exceeds_safe_integer
from bq_harper_assets.stores.harper.encoding.intervals import interval_texts, range_texts
from bq_harper_assets.stores.harper.encoding.json_checks import (
    holds_unsafe_integer,
    is_no_json,
    passes_for_promise,
)
from bq_harper_assets.stores.harper.encoding.json_text import array_of, json_of, object_of
from bq_harper_assets.stores.harper.encoding.times import (
    date_text,
    datetime_texts,
    time_texts,
    timestamp_texts,
)
from bq_harper_assets.sync.arrays.arrow_memory import (
    fixed_width,
    list_lengths,
    null_mask,
    offsets_of,
    plain,
)
from bq_harper_assets.sync.identity.decimals import decimal_texts, exceeds_number
from bq_harper_assets.sync.identity.faults import RowFault, fault_if

GeoJson = Callable[[pa.Array], pa.Array]
_WAY_OUT = "with schemaOverrides type: string the column is kept as text"
TEXTS: dict[Kind, Callable[[pa.Array], pa.Array]] = {
    Kind.TIMESTAMP: timestamp_texts,
    Kind.DATETIME: datetime_texts,
    Kind.DATE: date_text,
    Kind.TIME: time_texts,
    Kind.BYTES: base64_text,
    Kind.NUMERIC: decimal_texts,
    Kind.BIGNUMERIC: decimal_texts,
    Kind.INTERVAL: interval_texts,
    Kind.RANGE: range_texts,
}


@dataclass(frozen=True, eq=False)
class Stored:
    """Stored values have the faults of some rows, and say whether their texts are JSON already."""

    array: pa.Array
    faults: tuple[RowFault, ...] = ()
    is_json: bool = False

    def as_json(self) -> pa.Array:
        """Returns the values as JSON texts."""
        return self.array if self.is_json else json_of(self.array)


def stored_values(
    array: pa.Array, column: HarperColumn, geojson: GeoJson | None, path: str = ""
) -> Stored:
    """Returns the column's values as Harper stores them.

    `path` names, in reasons, a column that is inside another one.
    """
    values = plain(array)
    if not path and _is_object_of_its_own(column):
        return _whole_json(values, column.name)
    path = path or column.name
    if not column.repeated:
        return _single(values, column, geojson, path)
    offsets = offsets_of(list_lengths(values))
    inner = _single(plain(values.flatten()), column, geojson, f"{path}[]")
    faults = tuple(fault.of_lists(offsets) for fault in inner.faults)
    # BigQuery has no NULL arrays: one that arrives as NULL is empty.
    if inner.is_json:
        return Stored(array_of(offsets, inner.array), faults, is_json=True)
    return Stored(pa.LargeListArray.from_arrays(pa.array(offsets), inner.array), faults)


def _is_object_of_its_own(column: HarperColumn) -> bool:
    return column.kind is Kind.JSON and column.form is Form.OBJECT and not column.repeated


def _single(values: pa.Array, column: HarperColumn, geojson: GeoJson | None, path: str) -> Stored:
    match column.kind:
        case Kind.STRUCT:
            stored = _struct(values, column, geojson, path)
        case Kind.JSON if column.form is Form.OBJECT:
            stored = _json(values, path)
        case Kind.GEOGRAPHY if geojson is not None:
            stored = _geography(values, geojson, path)
        case Kind.INT64:
            stored = _integer(values, column.form, path)
        case Kind.FLOAT64:
            stored = _float(values, path)
        case Kind.NUMERIC | Kind.BIGNUMERIC if column.form is Form.NUMBER:
            stored = _decimal(values, path)
        case Kind.STRING | Kind.BOOL | Kind.JSON:
            stored = Stored(values)
        case kind if kind in TEXTS:
            stored = Stored(TEXTS[kind](values))
        case _:
            stored = _unknown(values)
    if column.form is Form.TEXT and not _is_text(stored.array.type):
        stored = Stored(stored.as_json(), stored.faults, is_json=True)
    if column.form is Form.TEXT and stored.is_json:
        return Stored(_null_where(stored.array, null_mask(values)), stored.faults)
    return stored


def _struct(values: pa.Array, column: HarperColumn, geojson: GeoJson | None, path: str) -> Stored:
    children = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
    inner = [
        stored_values(children[field.name], field, geojson, f"{path}.{field.name}")
        for field in column.fields
    ]
    names = [field.name for field in column.fields]
    faults = tuple(fault for stored in inner for fault in stored.faults)
    nulls = null_mask(values)
    if any(stored.is_json for stored in inner):
        objects = object_of(names, [stored.as_json() for stored in inner])
        return Stored(_null_where(objects, nulls, "null"), faults, is_json=True)
    mask = None if nulls is None else pa.array(nulls)
    arrays = [stored.array for stored in inner]
    return Stored(pa.StructArray.from_arrays(arrays, names, mask=mask), faults)


def _whole_json(values: pa.Array, path: str) -> Stored:
    """Stores a JSON column of the top level; only there Harper cannot read the name `then`."""
    stored = _json(values, path)
    reason = f"{path}: Harper cannot read an object with a name `then`; {_WAY_OUT}"
    faults = fault_if(passes_for_promise(stored.array), reason)
    return Stored(stored.array, (*stored.faults, *faults), is_json=True)


def _json(values: pa.Array, path: str) -> Stored:
    texts = values.cast(pa.large_string())
    faults = (
        *fault_if(is_no_json(texts), f"{path}: not JSON that can be stored; {_WAY_OUT}"),
        *fault_if(holds_unsafe_integer(texts), f"{path}: an integer beyond 2^53; {_WAY_OUT}"),
    )
    return Stored(pc.fill_null(texts, "null"), faults, is_json=True)


def _geography(values: pa.Array, geojson: GeoJson, path: str) -> Stored:
    texts = geojson(values).cast(pa.large_string())
    unread = pc.and_(texts.is_null(), values.is_valid()).to_numpy(zero_copy_only=False)
    faults = fault_if(unread, f"{path}: not a geometry that can be read")
    return Stored(pc.fill_null(texts, "null"), faults, is_json=True)


def _integer(values: pa.Array, form: Form, path: str) -> Stored:
    values = values.cast(pa.int64())
    if form is Form.TEXT:
        return Stored(values.cast(pa.string()))
    reason = f"{path}: beyond 2^53; with values.int64: string such columns are kept as text"
    return Stored(values, fault_if(exceeds_safe_integer(values), reason))


def _float(values: pa.Array, path: str) -> Stored:
    values = values.cast(pa.float64())
    unbounded = ~np.isfinite(fixed_width(values, np.float64))
    nulls = null_mask(values)
    if nulls is not None:
        unbounded &= ~nulls
    return Stored(values, fault_if(unbounded, f"{path}: NaN or infinite, which JSON cannot hold"))


def _decimal(values: pa.Array, path: str) -> Stored:
    reason = (
        f"{path}: more than 15 digits; with values.numeric: string such columns are kept as text"
    )
    texts = decimal_texts(values)
    # Parsing finds the nearest double, which Arrow's own cast of decimals does not promise.
    return Stored(texts.cast(pa.float64()), fault_if(exceeds_number(texts), reason))


def _unknown(values: pa.Array) -> Stored:
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return Stored(base64_text(values))
    return Stored(values)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _null_where(texts: pa.Array, nulls: np.ndarray | None, null: str | None = None) -> pa.Array:
    return (
        texts if nulls is None else pc.if_else(pa.array(nulls), pa.scalar(null, texts.type), texts)
    )

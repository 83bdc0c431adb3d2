"""A column's values are stored faithfully, at any depth, or their rows are rejected with why."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.encoding.json_checks import passes_for_promise
from bq_harper_assets.stores.harper.encoding.json_text import array_of, object_of
from bq_harper_assets.stores.harper.encoding.single_values import WAY_OUT, Stored, json_values
from bq_harper_assets.stores.harper.types import HARPER_KINDS, Form, HarperColumn
from bq_harper_assets.sync.arrays.arrow_memory import list_lengths, null_mask, offsets_of, plain
from bq_harper_assets.sync.identity.faults import fault_if

GeoJson = Callable[[pa.Array], pa.Array]


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
    stored = _in_form(values, column, geojson, path)
    if column.form is Form.TEXT and not _is_text(stored.array.type):
        stored = Stored(stored.as_json(), stored.faults, is_json=True)
    if column.form is Form.TEXT and stored.is_json:
        return Stored(_null_where(stored.array, null_mask(values)), stored.faults)
    return stored


def _in_form(values: pa.Array, column: HarperColumn, geojson: GeoJson | None, path: str) -> Stored:
    kind = HARPER_KINDS[column.kind]
    if column.kind is Kind.STRUCT:
        return _struct(values, column, geojson, path)
    if column.kind is Kind.GEOGRAPHY and geojson is not None:
        return _geography(values, geojson, path)
    if column.form is Form.TEXT and kind.texts is not None:
        return Stored(kind.texts(values))
    return kind.values(values, path)


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
    stored = json_values(values, path)
    reason = f"{path}: Harper cannot read an object with a name `then`; {WAY_OUT}"
    faults = fault_if(passes_for_promise(stored.array), reason)
    return Stored(stored.array, (*stored.faults, *faults), is_json=True)


def _geography(values: pa.Array, geojson: GeoJson, path: str) -> Stored:
    texts = geojson(values).cast(pa.large_string())
    unread = pc.and_(texts.is_null(), values.is_valid()).to_numpy(zero_copy_only=False)
    faults = fault_if(unread, f"{path}: not a geometry that can be read")
    return Stored(pc.fill_null(texts, "null"), faults, is_json=True)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _null_where(texts: pa.Array, nulls: np.ndarray | None, null: str | None = None) -> pa.Array:
    return (
        texts if nulls is None else pc.if_else(pa.array(nulls), pa.scalar(null, texts.type), texts)
    )

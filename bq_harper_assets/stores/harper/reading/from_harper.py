"""Reads values back from Harper as BigQuery had them: the inverse of how the sync writes them."""

import json
from contextlib import suppress
from typing import Any

from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.encoding.geography import wkt_of
from bq_harper_assets.stores.harper.errors import UnreadableValue
from bq_harper_assets.stores.harper.types import HARPER_KINDS, Form, HarperColumn, read_text


def from_harper(value: Any, column: HarperColumn, path: str = "") -> Any:
    """Reads a JSON value as the Python value of its kind; raises UnreadableValue if it is none.

    A GEOGRAPHY becomes WKT, a JSON its value, a STRUCT a dict, an INTERVAL Arrow's MonthDayNano,
    and a RANGE the Range of text_forms.
    """
    path = path or column.name
    if not column.repeated:
        return _single(value, column, path)
    if value is None:
        return []  # BigQuery has no NULL arrays
    if not isinstance(value, list):
        raise UnreadableValue(path, value, "an array")
    return [_single(item, column, f"{path}[{at}]") for at, item in enumerate(value)]


def _single(value: Any, column: HarperColumn, path: str) -> Any:
    if value is None:
        return None
    if column.form is Form.TEXT:
        if not isinstance(value, str):
            raise UnreadableValue(path, value, f"{column.kind} as text")
        return _of_text(value, column, path)
    return _native(value, column, path)


def _of_text(text: str, column: HarperColumn, path: str) -> Any:
    kind = HARPER_KINDS[column.kind]
    try:
        if kind.of_text is None and kind.form is not Form.TEXT:
            return _native(json.loads(text), column, path)
        return read_text(column.kind, text)
    except ValueError as error:
        raise UnreadableValue(path, text, f"{column.kind} as text") from error


def _native(value: Any, column: HarperColumn, path: str) -> Any:
    if column.kind is Kind.STRUCT and isinstance(value, dict):
        return {
            field.name: from_harper(value.get(field.name), field, f"{path}.{field.name}")
            for field in column.fields
        }
    if column.kind is Kind.GEOGRAPHY and isinstance(value, dict):
        return _geography(value, path)
    if (read := HARPER_KINDS[column.kind].of_json) is not None:
        with suppress(ValueError):
            return read(value)
    raise UnreadableValue(path, value, f"{column.kind} as {column.form}")


def _geography(value: dict[str, Any], path: str) -> str:
    try:
        return wkt_of(value)
    except ValueError as error:
        raise UnreadableValue(path, value, "GeoJSON") from error

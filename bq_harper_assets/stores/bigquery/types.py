"""Says of each logical kind what BigQuery calls it and how its values leave it: a row each.

A STRUCT is its fields, so that row_text.py and arrival_check.py know it by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as types

from bq_harper_assets.schema.logical import Kind

if TYPE_CHECKING:
    from google.cloud import bigquery


def as_json(value: str) -> str:
    """Makes SQL for the value as JSON; of an array too, which is that of its elements."""
    return f"TO_JSON_STRING({value})"


@dataclass(frozen=True, kw_only=True)
class SourceKind:
    """Says how BigQuery names a kind, sends its values, and writes them as text in SQL."""

    aliases: tuple[str, ...] = ()  # the service answers with the names of its first years
    arrives: Callable[[pa.DataType], bool] | None = None  # None: servers differ in how they send it
    # SQL of a text that ends where the value ends, so that neighbours stay distinct.
    text: Callable[[str], str] = as_json


def _bounds_of_range(value: str) -> str:
    start, end = (
        f"IFNULL(CAST({bound}({value}) AS STRING), 'UNBOUNDED')"
        for bound in ("RANGE_START", "RANGE_END")
    )
    return as_json(f"CONCAT({start}, ', ', {end})")


BIGQUERY_KINDS: dict[Kind, SourceKind] = {
    Kind.INT64: SourceKind(aliases=("INTEGER",), arrives=types.is_integer),
    Kind.FLOAT64: SourceKind(
        aliases=("FLOAT",),
        arrives=types.is_floating,
        text=lambda value: as_json(f"IF({value} = 0, 0.0, {value})"),  # -0.0 counts as 0.0
    ),
    Kind.NUMERIC: SourceKind(aliases=("DECIMAL",), arrives=types.is_decimal),
    Kind.BIGNUMERIC: SourceKind(aliases=("BIGDECIMAL",), arrives=types.is_decimal),
    Kind.BOOL: SourceKind(aliases=("BOOLEAN",), arrives=types.is_boolean),
    Kind.STRING: SourceKind(arrives=types.is_string),
    Kind.BYTES: SourceKind(arrives=types.is_binary, text=lambda value: as_json(f"TO_HEX({value})")),
    Kind.TIMESTAMP: SourceKind(
        arrives=lambda type_: types.is_timestamp(type_) and type_.tz is not None
    ),
    Kind.DATETIME: SourceKind(arrives=lambda type_: types.is_timestamp(type_) and type_.tz is None),
    Kind.DATE: SourceKind(arrives=types.is_date),
    Kind.TIME: SourceKind(arrives=types.is_time),
    Kind.JSON: SourceKind(arrives=types.is_string),
    Kind.GEOGRAPHY: SourceKind(text=lambda value: as_json(f"ST_ASTEXT({value})")),
    Kind.INTERVAL: SourceKind(text=lambda value: as_json(f"CAST({value} AS STRING)")),
    Kind.RANGE: SourceKind(text=_bounds_of_range),
    Kind.STRUCT: SourceKind(aliases=("RECORD",), arrives=types.is_struct),
    Kind.UNKNOWN: SourceKind(),
}
_BY_NAME = {
    name: kind
    for kind, row in BIGQUERY_KINDS.items()
    if kind is not Kind.UNKNOWN
    for name in (kind.value, *row.aliases)
}


def kind_and_spelling(field: "bigquery.SchemaField") -> tuple[Kind, str]:
    """Returns a field's kind, and BigQuery's own word where the kind says too little."""
    name = str(field.field_type).upper()
    kind = _BY_NAME.get(name, Kind.UNKNOWN)
    if kind is Kind.UNKNOWN:
        return kind, name
    element = field.range_element_type
    return kind, f"{kind}<{element.element_type}>" if element is not None else ""

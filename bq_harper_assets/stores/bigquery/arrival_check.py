"""Before the first row is read, the columns that arrive are compared with those that were planned.

A source may change between the reading of its schema and the reading of its rows. A column may
then arrive with another type, and its values must not be stored as the planned type.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.types as types

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.types import BIGQUERY_KINDS
from bq_harper_assets.sync.errors import SourceSchemaMoved

_SQL_TYPE = b"ARROW:extension:name"


def require_planned(table: str, arrives: bytes, columns: Sequence[Column]) -> None:
    """Raises SourceSchemaMoved if the serialised Arrow schema does not have these columns."""
    schema = pa.ipc.read_schema(pa.py_buffer(arrives))
    fields = {field.name: field for field in schema}
    if changes := [change for column in columns for change in _changes(column, fields)]:
        raise SourceSchemaMoved(table, changes)


def _changes(column: Column, fields: dict[str, pa.Field], above: str = "") -> Iterator[str]:
    path = f"{above}{column.read_as}"
    field = fields.get(column.read_as)
    if field is None:
        yield f"{path} is gone"
        return
    type_ = field.type
    is_list = types.is_list(type_) or types.is_large_list(type_)
    planned = f"ARRAY<{column.kind}>" if column.repeated else column.kind.value
    if is_list != column.repeated:
        yield f"{path} was {planned} and arrives as {type_}"
        return
    value = type_.value_type if is_list else type_
    fits = BIGQUERY_KINDS[column.kind].arrives
    if fits is not None and not fits(value):
        yield f"{path} was {planned} and arrives as {type_}"
    elif column.kind is Kind.STRING and (other := (field.metadata or {}).get(_SQL_TYPE)):
        yield f"{path} was {planned} and arrives as {other.decode()}"
    elif column.kind is Kind.STRUCT:
        inner = {each.name: each for each in value}
        for each in column.fields:
            yield from _changes(each, inner, f"{path}.")

"""Contracts and columns that the tests of the schema share."""

from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.schema.selection import Selection, select_columns
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.schema import HarperTypes

TS = Column(name="event_time", kind=Kind.TIMESTAMP)


def contract(**changes: Any) -> TableContract:
    """A contract of a table with the timestamp column event_time."""
    fields: dict[str, Any] = {
        "id": "orders",
        "dataset": "shop",
        "table": "orders",
        "timestamp_column": "event_time",
        "target_table": "Orders",
    }
    return TableContract.model_validate(fields | changes)


def selected(
    contract: TableContract, schema: TableSchema, before: TableVersion | None = None
) -> Selection:
    """What is synced into Harper."""
    return select_columns(contract, schema, HarperTypes(contract), before)


def schema(*columns: Column, **layout: Any) -> TableSchema:
    """These columns after the timestamp."""
    return TableSchema(columns=(TS, *columns), **layout)

"""Defines the three tables: columns as BigQuery spells them, and the Arrow schemas that fit."""

import dataclasses
from typing import Any

import pyarrow as pa

from bq_harper_assets.stores.bigquery.dataset import BigQueryColumn, TableShape

DATASET = "maritime"
_ARROW = {
    "STRING": pa.string(),
    "INT64": pa.int64(),
    "FLOAT64": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}


def _columns(*runs: str) -> tuple[BigQueryColumn, ...]:
    """Reads runs of columns, each a type and its names; a name that ends with `?` may be NULL."""
    return tuple(
        BigQueryColumn(name.rstrip("?"), type_, required=not name.endswith("?"))
        for type_, *names in (run.split() for run in runs)
        for name in names
    )


POSITIONS = TableShape(
    name="vessel_positions",
    columns=_columns(
        "STRING mmsi imo vessel_name vessel_type flag",
        "INT64 length beam",
        "FLOAT64 draft latitude longitude speed_knots",
        "INT64 course heading",
        "STRING status destination?",
        "TIMESTAMP eta? timestamp",
        "STRING report_date",
    ),
    day_column="timestamp",
    clustering=("vessel_type", "mmsi", "report_date"),
)

EVENTS = TableShape(
    name="port_events",
    columns=_columns(
        "TIMESTAMP event_time",
        "STRING port_id port_name? vessel_mmsi event_type status?",
        "FLOAT64 latitude? longitude?",
    ),
    day_column="event_time",
    clustering=("port_id", "vessel_mmsi"),
)

REGISTER = TableShape(
    name="vessel_metadata",
    columns=_columns(
        "TIMESTAMP last_updated",
        "STRING mmsi imo? vessel_name? vessel_type? flag? callsign?",
        "INT64 length? beam? draft? gross_tonnage? deadweight? year_built?",
        "STRING home_port? owner? status?",
    ),
    day_column="last_updated",
    clustering=("vessel_type", "mmsi"),
)

SHAPES = (REGISTER, EVENTS, POSITIONS)


def with_optional(shape: TableShape, name: str) -> TableShape:
    """Returns the same table, in which one column may be NULL."""
    columns = tuple(
        dataclasses.replace(c, required=c.required and c.name != name) for c in shape.columns
    )
    return dataclasses.replace(shape, columns=columns)


def arrow_table(shape: TableShape, columns: dict[str, Any]) -> Any:
    """Makes a pyarrow Table with every column of the shape; required ones are so in Parquet too.

    BigQuery refuses to append a file whose column may be NULL to a required column.
    """
    schema = pa.schema(
        [pa.field(c.name, _ARROW[c.type], nullable=not c.required) for c in shape.columns]
    )
    return pa.table([columns[name] for name in schema.names], schema=schema)

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


def _required(*columns: tuple[str, str]) -> tuple[BigQueryColumn, ...]:
    return tuple(BigQueryColumn(name, type_, required=True) for name, type_ in columns)


def _optional(*columns: tuple[str, str]) -> tuple[BigQueryColumn, ...]:
    return tuple(BigQueryColumn(name, type_) for name, type_ in columns)


POSITIONS = TableShape(
    name="vessel_positions",
    columns=(
        *_required(
            ("mmsi", "STRING"),
            ("imo", "STRING"),
            ("vessel_name", "STRING"),
            ("vessel_type", "STRING"),
            ("flag", "STRING"),
            ("length", "INT64"),
            ("beam", "INT64"),
            ("draft", "FLOAT64"),
            ("latitude", "FLOAT64"),
            ("longitude", "FLOAT64"),
            ("speed_knots", "FLOAT64"),
            ("course", "INT64"),
            ("heading", "INT64"),
            ("status", "STRING"),
        ),
        *_optional(("destination", "STRING"), ("eta", "TIMESTAMP")),
        *_required(("timestamp", "TIMESTAMP"), ("report_date", "STRING")),
    ),
    day_column="timestamp",
    clustering=("vessel_type", "mmsi", "report_date"),
)

EVENTS = TableShape(
    name="port_events",
    columns=(
        *_required(("event_time", "TIMESTAMP"), ("port_id", "STRING")),
        *_optional(("port_name", "STRING")),
        *_required(("vessel_mmsi", "STRING"), ("event_type", "STRING")),
        *_optional(("status", "STRING"), ("latitude", "FLOAT64"), ("longitude", "FLOAT64")),
    ),
    day_column="event_time",
    clustering=("port_id", "vessel_mmsi"),
)

REGISTER = TableShape(
    name="vessel_metadata",
    columns=(
        *_required(("last_updated", "TIMESTAMP"), ("mmsi", "STRING")),
        *_optional(
            ("imo", "STRING"),
            ("vessel_name", "STRING"),
            ("vessel_type", "STRING"),
            ("flag", "STRING"),
            ("callsign", "STRING"),
            ("length", "INT64"),
            ("beam", "INT64"),
            ("draft", "INT64"),
            ("gross_tonnage", "INT64"),
            ("deadweight", "INT64"),
            ("year_built", "INT64"),
            ("home_port", "STRING"),
            ("owner", "STRING"),
            ("status", "STRING"),
        ),
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

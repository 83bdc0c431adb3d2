"""Reads a table's schema as BigQuery describes it, with one call and no query."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.stores.bigquery.calls import NO_RETRY, BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import Feature
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.bigquery.types import kind_and_spelling

if TYPE_CHECKING:
    from google.cloud import bigquery


def read_schema(
    client: "bigquery.Client",
    project: str,
    dataset: str,
    table: str,
    *,
    calls: BigQueryCalls,
) -> TableSchema:
    """Reads columns with types, modes and nested fields, partitioning, clustering, primary key.

    A view has columns only. `calls` says how often it is tried again.
    """
    ref = TableRef(project, dataset, table)
    described = calls.call(
        lambda: client.get_table(str(ref), retry=NO_RETRY, timeout=calls.request_s),
        doing="reading the schema",
        feature=Feature.DESCRIBE,
        table=str(ref),
    )
    return TableSchema(
        columns=columns_of(described.schema),
        partition_field=_partition_field(described),
        clustering=tuple(described.clustering_fields or ()),
        primary_key=_primary_key(described),
        is_table=described.table_type == "TABLE",
    )


def columns_of(fields: "Iterable[bigquery.SchemaField]") -> tuple[Column, ...]:
    """Makes the logical columns for the fields of a table or a query result."""
    return tuple(_column(field) for field in fields)


def _column(field: "bigquery.SchemaField") -> Column:
    kind, spelling = kind_and_spelling(field)
    return Column(
        name=field.name,
        kind=kind,
        repeated=field.mode == "REPEATED",
        required=field.mode == "REQUIRED",
        fields=columns_of(field.fields) if kind is Kind.STRUCT else (),
        spelling=spelling,
        description=field.description or "",
        max_length=field.max_length,
    )


def _partition_field(described: Any) -> str | None:
    """Returns the partition column; None also if rows are partitioned by when they arrived."""
    by_time, by_range = described.time_partitioning, described.range_partitioning
    partitioning = by_time or by_range
    return partitioning.field if partitioning is not None else None


def _primary_key(described: Any) -> tuple[str, ...]:
    constraints = described.table_constraints
    if constraints is None or constraints.primary_key is None:
        return ()
    return tuple(constraints.primary_key.columns)

"""The schema of each table as an asset: its columns, and what its newest version has changed."""

from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    AssetSelection,
    Failure,
    MaterializeResult,
    MetadataValue,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
    asset,
    define_asset_job,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.keys import schema_key
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.sources import source_key
from bq_harper_assets.defs.tables import RETRIES
from bq_harper_assets.errors import BqhError
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.evolving import Evolved, evolve_table
from bq_harper_assets.sync.transient import TRANSIENT
from bq_harper_assets.validation.drift import as_markdown


def build_schema(contract: TableContract) -> AssetsDefinition:
    """Materialising it makes in Harper what the newest recorded schema needs."""

    @asset(
        key=schema_key(contract),
        deps=[source_key(contract)],
        retry_policy=RETRIES,
        group_name="schema",
        kinds={"bigquery"},
        description=f"The columns of {contract.target_table}, version by version.",
    )
    def schema(
        context: AssetExecutionContext, harper: HarperResource, ledger: LedgerResource
    ) -> MaterializeResult[None]:
        try:
            with (
                ledger.open() as opened,
                HarperClient(harper.connection(), retry=harper.retry()) as client,
            ):
                evolved = evolve_table(opened, client, contract)
        except BqhError as error:
            raise Failure(str(error), allow_retries=isinstance(error, TRANSIENT)) from error
        if evolved.warning:
            context.log.warning(evolved.warning)
        return MaterializeResult(metadata=_metadata(evolved))

    return schema


def build_evolve_job(contract: TableContract) -> UnresolvedAssetJobDefinition:
    """Brings Harper's table to the newest recorded schema; it moves no rows."""
    return define_asset_job(
        evolve_job(contract),
        AssetSelection.assets(schema_key(contract)),
        description=f"Brings {contract.target_table} to its newest recorded schema.",
    )


def evolve_job(contract: TableContract) -> str:
    """Its name."""
    return f"evolve_{contract.id}"


def _metadata(evolved: Evolved) -> dict[str, Any]:
    recorded = evolved.recorded
    first = "the first version" if recorded.version == 1 else "recorded in a fuller form"
    changed = as_markdown(evolved.changes) if evolved.changes else first
    return {
        "dagster/column_schema": column_table(evolved.version),
        "schema_version": recorded.version,
        "recorded_at": MetadataValue.timestamp(recorded.recorded_at),
        "recorded_by": recorded.by,
        "cause": recorded.cause,
        "changes": MetadataValue.md(changed),
        "table_action": evolved.ensured.action.value,
        "columns": len(evolved.version.live),
    }


def column_table(version: TableVersion) -> TableSchema:
    """Every column of the version, as BigQuery types it and Harper stores it."""
    return TableSchema(
        [
            TableColumn(
                column.name,
                column.type_text,
                column.description or None,
                TableColumnConstraints(
                    nullable=not column.required,
                    other=[
                        f"Harper: {column.stored.type.value}",
                        *(["indexed"] if column.indexed else []),
                        *([f"in BigQuery: {column.source}"] * (column.source != column.name)),
                        *([] if column.is_live else [column.state.value]),
                    ],
                ),
            )
            for column in version.columns
        ]
    )

"""The schema of each table is an asset, with one materialisation for each version.

A run that evolves the table tells the version that it has prepared Harper for; the sensor tells the
others: those that a sync or a person has recorded and followed, and those that nobody may follow.
"""

from collections.abc import Iterable
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    AssetsDefinition,
    AssetSelection,
    DagsterInstance,
    Failure,
    MaterializeResult,
    MetadataValue,
    ResourceParam,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
    asset,
    define_asset_job,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import NOT_SYNCED, evolve_job, schema_key
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.runs.early_end import stoppable
from bq_harper_assets.defs.runs.step_retries import retried
from bq_harper_assets.defs.tables.source_assets import source_key
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.schema.changes import waiting_changes
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.table.schema_evolution import Evolved, evolve_table
from bq_harper_assets.sync.schema_sync.version_history import VersionStep
from bq_harper_assets.validation.schema_drift import as_markdown

_VERSION = "schema_version"


def build_schema(contract: TableContract) -> AssetsDefinition:
    """Builds the asset; to materialise it makes in Harper what the newest recorded schema needs."""

    @asset(
        key=schema_key(contract),
        deps=[source_key(contract)],
        group_name="schema",
        kinds={"bigquery"},
        description=f"The columns of {contract.target.table}, version by version.",
    )
    def schema(
        context: AssetExecutionContext, bigquery_to_harper: ResourceParam[BigQueryToHarperResource]
    ) -> MaterializeResult[None]:
        limit = contract.sync.give_up_after
        harper, ledger = bigquery_to_harper.harper, bigquery_to_harper.ledger

        def once() -> Evolved:
            try:
                with (
                    WAITS.listen(context.log.info),
                    ledger.open() as opened,
                    HarperClient(harper.connection(), retry=harper.retry().within(limit)) as client,
                ):
                    return evolve_table(opened, client, contract)
            except BqhError as error:
                raise Failure(
                    str(error), allow_retries=isinstance(error, TransientError)
                ) from error

        evolved = stoppable(context, lambda stop: retried(context, stop, once, limit))
        if evolved.warning:
            context.log.warning(evolved.warning)
        *earlier, newest = evolved.steps
        for step in unshown(context.instance, contract, earlier):
            context.log_event(version_shown(contract, step))
        more: dict[str, Any] = {"table_action": evolved.ensured.action.value}
        if waiting := "; ".join(map(str, waiting_changes(newest.version, contract))):
            context.log.info(f"{contract.id} goes on with the columns it has: {waiting}")
            more[NOT_SYNCED] = waiting
        return MaterializeResult(metadata={**version_metadata(newest), **more})

    return schema


def build_evolve_job(contract: TableContract) -> UnresolvedAssetJobDefinition:
    """Builds the job that brings Harper's table to the newest recorded schema; it writes no row."""
    return define_asset_job(
        evolve_job(contract),
        AssetSelection.assets(schema_key(contract)),
        description=f"Brings {contract.target.table} to its newest recorded schema.",
    )


def unshown(
    instance: DagsterInstance, contract: TableContract, steps: Iterable[VersionStep]
) -> list[VersionStep]:
    """Lists versions that came since the one that Dagster shows now, whoever told it of that."""
    event = instance.get_latest_materialization_event(schema_key(contract))
    made = event.asset_materialization if event else None
    shown = made.metadata[_VERSION].value if made and _VERSION in made.metadata else 0
    return [step for step in steps if step.recorded.version > int(str(shown))]


def version_shown(contract: TableContract, step: VersionStep) -> AssetMaterialization:
    """Makes an event of a version, for whoever has no run of the asset to tell it."""
    return AssetMaterialization(schema_key(contract), metadata=version_metadata(step))


def version_metadata(step: VersionStep) -> dict[str, Any]:
    """Gives the columns of a version, what it changed, and who recorded it, when and why."""
    recorded = step.recorded
    first = "the first version" if recorded.version == 1 else "nothing that rows depend on"
    return {
        "dagster/column_schema": column_table(step.version),
        _VERSION: recorded.version,
        "recorded_at": MetadataValue.timestamp(recorded.recorded_at),
        "recorded_by": recorded.by,
        "cause": recorded.cause,
        "changes": MetadataValue.md(as_markdown(step.changes) if step.changes else first),
        "columns": len(step.version.live),
    }


def column_table(version: TableVersion) -> TableSchema:
    """Lists every column of the version, as BigQuery types it and Harper stores it."""
    return TableSchema(
        [
            TableColumn(
                column.name,
                column.type_text,
                column.description or None,
                TableColumnConstraints(
                    nullable=not column.required,
                    other=[
                        f"Harper: {column.target.type}",
                        *(["indexed"] if column.indexed else []),
                        *(
                            [f"in BigQuery: {column.source.name}"]
                            * (column.source.name != column.name)
                        ),
                        *([] if column.is_live else [column.state.value]),
                        *(["new fields wait"] if column.is_live and column.waits else []),
                    ],
                ),
            )
            for column in version.columns
        ]
    )

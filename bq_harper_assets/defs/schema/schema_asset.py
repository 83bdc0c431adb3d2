"""The schema of each table as an asset: its columns, and what its newest version has changed."""

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    AssetSelection,
    Failure,
    MaterializeResult,
    asset,
    define_asset_job,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import schema_key
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.runs.early_end import stoppable
from bq_harper_assets.defs.runs.step_retries import retried
from bq_harper_assets.defs.schema.schema_versions import unshown, version_metadata, version_shown
from bq_harper_assets.defs.tables.source_assets import source_key
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.stores.waiting import WAITS
from bq_harper_assets.sync.schema_sync.target_evolution import Evolved, evolve_table


def build_schema(contract: TableContract) -> AssetsDefinition:
    """Materialising it makes in Harper what the newest recorded schema needs."""

    @asset(
        key=schema_key(contract),
        deps=[source_key(contract)],
        group_name="schema",
        kinds={"bigquery"},
        description=f"The columns of {contract.target_table}, version by version.",
    )
    def schema(
        context: AssetExecutionContext, harper: HarperResource, ledger: LedgerResource
    ) -> MaterializeResult[None]:
        limit = contract.sync.give_up_after

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
        action = {"table_action": evolved.ensured.action.value}
        return MaterializeResult(metadata={**version_metadata(newest), **action})

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

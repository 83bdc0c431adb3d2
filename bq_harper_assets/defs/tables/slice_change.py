"""Another number of slices waits for runs that count on the old one, and is noted in Dagster."""

from collections.abc import Iterator

from dagster import AssetObservation, DagsterInstance, RunsFilter
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import ALL_TABLES_JOB, live_job, sync_job, target_key

_UNFINISHED = (BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING)


def unfinished(instance: DagsterInstance, contract: TableContract) -> Iterator[str]:
    """Names the runs and backfills of the table that wait or work."""
    key = target_key(contract)
    jobs = (sync_job(contract), live_job(contract), ALL_TABLES_JOB)
    for run in instance.get_runs(RunsFilter(statuses=NOT_FINISHED_STATUSES)):
        if key in (run.asset_selection or ()) or run.job_name in jobs:
            yield f"run {run.run_id} ({run.status.value.lower()})"
    for backfill in instance.get_backfills(BulkActionsFilter(statuses=_UNFINISHED)):
        if key in (backfill.asset_selection or ()):
            yield f"backfill {backfill.backfill_id} ({backfill.status.value.lower()})"


def note_change(instance: DagsterInstance, contract: TableContract, was: int) -> None:
    """Notes the change, so that the asset's page says why partition keys came or went."""
    text = (
        f"{contract.id} has {contract.slices} slices now and had {was}. Partitions of slices that "
        "no longer exist keep their history and are not shown; all others are compared again."
    )
    instance.report_runless_asset_event(
        AssetObservation(
            target_key(contract),
            description=text,
            metadata={"slices_before": was, "slices": contract.slices},
        )
    )

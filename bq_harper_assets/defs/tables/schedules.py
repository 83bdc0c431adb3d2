"""A schedule per table syncs each window once it has closed, all slices in one ranged run."""

from datetime import datetime, timedelta

from dagster import (
    AssetCheckKey,
    AssetSelection,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    define_asset_job,
    schedule,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import sync_job, target_key
from bq_harper_assets.defs.partitions import newest_closed, range_tags
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.validation import schema_drift

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


def build_job(contract: TableContract) -> UnresolvedAssetJobDefinition:
    """Builds the job that syncs any partitions of one table."""
    key = target_key(contract)
    # A run that fails would leave this check skipped, and what the sensor has found unseen.
    seen_by_sensor = AssetSelection.checks(AssetCheckKey(key, schema_drift.SCHEMA_DRIFT_CHECK))
    return define_asset_job(sync_job(contract), AssetSelection.assets(key) - seen_by_sensor)


def build_schedule(
    contract: TableContract, start: datetime, job: UnresolvedAssetJobDefinition
) -> ScheduleDefinition:
    """Builds the schedule, which ticks a safety lag after each window and asks for it only once."""

    @schedule(
        name=f"{contract.id}_windows",
        cron_schedule=closing_cron(contract),
        job=job,
        description=f"Syncs each window of {contract.target.table} when it has closed.",
    )
    def newest_closed_window(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        window = newest_closed(contract, context.scheduled_execution_time)
        if window.start < start:
            return SkipReason(f"the first window begins at {start:%F %H:%M} and has not closed yet")
        cells = [Cell(window, number) for number in range(contract.slices)]
        return RunRequest(run_key=window.key, tags=range_tags(cells))

    return newest_closed_window


def closing_cron(contract: TableContract) -> str:
    """Says in cron's words: every window length, a safety lag in whole minutes after its end."""
    length = contract.window // _MINUTE
    offset = -(-contract.safety_lag // _MINUTE) % length
    if contract.window == _DAY:
        return f"{offset % 60} {offset // 60} * * *"
    return f"{','.join(str(minute) for minute in range(offset, 60, length))} * * * *"

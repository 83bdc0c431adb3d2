"""Active runs of a table are looked up, so that none is asked for twice while it goes on."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import sync_job, target_key
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START, cells_of
from bq_harper_assets.defs.runs.dead_runs import was_found_dead
from bq_harper_assets.sync.cells.window import Window, windows_between

PARTITION = "dagster/partition"
ENDED = (DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED)
_ACTIVE = [status for status in DagsterRunStatus if status not in ENDED]


def runs_of_table(instance: DagsterInstance, contract: TableContract) -> list[DagsterRun]:
    """Lists the active runs that have the table among their assets, whoever asked for them."""
    return [run for run in instance.get_runs(RunsFilter(statuses=_ACTIVE)) if _is_of(contract, run)]


def failed_windows(
    instance: DagsterInstance, contract: TableContract, since: datetime
) -> frozenset[Window]:
    """Finds windows whose last run, of those that ended since, failed and was not killed."""
    ended = RunsFilter(statuses=list(ENDED), updated_after=since)
    succeeded: dict[Window, bool] = {}
    for record in instance.get_run_records(ended, order_by="update_timestamp"):  # newest first
        run = record.dagster_run
        if _is_of(contract, run):
            is_well = not _has_failed(instance, run)
            with suppress(ValueError):  # the contract had windows of another length then
                for window in windows_of(contract, run):
                    succeeded.setdefault(window, is_well)
    return frozenset(window for window, is_well in succeeded.items() if not is_well)


def _is_of(contract: TableContract, run: DagsterRun) -> bool:
    in_selection = target_key(contract) in (run.asset_selection or ())
    return in_selection or run.job_name == sync_job(contract)


def job_is_running(instance: DagsterInstance, job: str) -> bool:
    """Says whether a run of the job is queued or at work."""
    return bool(instance.get_runs(RunsFilter(job_name=job, statuses=_ACTIVE), limit=1))


def windows_of(contract: TableContract, run: DagsterRun) -> Iterator[Window]:
    """Lists the windows that the run was started for."""
    single = run.tags.get(PARTITION)
    keys = [run.tags.get(RANGE_START, single), run.tags.get(RANGE_END, single)]
    if None in keys:
        return
    first, last = cells_of(contract, [str(key) for key in keys])
    yield from windows_between(first.window.start, last.window.end, contract.window)


def last_failure(instance: DagsterInstance, job: str) -> datetime | None:
    """Says when the job's newest run failed; None if it did not, or only because it was killed."""
    for record in instance.get_run_records(RunsFilter(job_name=job), limit=1):
        if _has_failed(instance, record.dagster_run):
            return record.update_timestamp
    return None


def _has_failed(instance: DagsterInstance, run: DagsterRun) -> bool:
    """Says whether the run failed by itself: of a run that was killed that is not known."""
    return run.status is DagsterRunStatus.FAILURE and not was_found_dead(instance, run.run_id)

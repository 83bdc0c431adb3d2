"""Runs that were killed are ended in Dagster, and told to whoever takes up their cells again."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from dagster import DagsterEventType, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.run_process import IS_GONE, Pulse, gone, last_seen, pulse_of, where
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.left_overs import LeftOver
from bq_harper_assets.ledger.records import CellKey
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.ledger_facts import cell_key

WITH_A_PROCESS = (
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)
# What others write of a run, perhaps long after its process has gone.
FROM_OUTSIDE = {
    DagsterEventType.ENGINE_EVENT,
    DagsterEventType.RUN_FAILURE,
    DagsterEventType.RUN_CANCELING,
    DagsterEventType.RUN_CANCELED,
}
_LAST_EVENTS = 20
_SHOWN_OF_ID = 8


def end_dead_runs(instance: DagsterInstance) -> list[DagsterRun]:
    """Fails the runs whose process is gone, whoever started them, and lists them.

    So they count against no limit any more. Run monitoring does the same while a daemon runs, but
    not of runs that have not begun yet.
    """
    ended = []
    for seen in instance.get_runs(RunsFilter(statuses=list(WITH_A_PROCESS))):
        if pulse_of(instance, seen) is not Pulse.GONE:
            continue
        # A process is gone also after it has told its run's end.
        run = instance.get_run_by_id(seen.run_id)
        if run is None or run.is_finished:
            continue
        if run.status is DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, gone(run))
        else:
            instance.report_run_failed(run, gone(run))
        # Only of an instance whose pools have slots; dagster.yaml makes them count runs instead.
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        ended.append(run)
    return ended


def was_found_dead(instance: DagsterInstance, run_id: str) -> bool:
    """Says whether the run did not fail itself, but was ended because its process was gone."""
    ends = instance.all_logs(run_id, of_type=DagsterEventType.RUN_FAILURE)
    return any(IS_GONE in entry.message for entry in ends)


def clear_the_way(
    instance: DagsterInstance,
    ledger: Ledger,
    contract: TableContract,
    cells: Sequence[Cell],
    run_id: str | None = None,
) -> list[str]:
    """Ends dead runs before `cells` are synced, and tells each in a line.

    The line says what becomes of the cells that it left half done, and until when its lease is
    waited for. The run that asks, if it is one, is left out.
    """
    ended = end_dead_runs(instance)
    table = ledger.find_route(contract.id)
    asked = {cell_key(cell) for cell in cells}
    told = {
        left.run_id: f"{_fate(instance, left)}; {_taken_up(contract, left, asked)}{_waiting(left)}"
        for left in (ledger.left_over(table) if table else ())
        if left.run_id != run_id and not _is_at_work(instance, left)
    }
    others = [run for run in ended if run.run_id not in told]
    return [*told.values(), *(f"{_died(instance, run)}, in {run.job_name}" for run in others)]


def fates_of_ended_runs(instance: DagsterInstance, lefts: Iterable[LeftOver]) -> dict[str, str]:
    """Says of each of these runs that has ended what became of it; nothing is changed."""
    return {left.run_id: _fate(instance, left) for left in lefts if not _is_at_work(instance, left)}


def _is_at_work(instance: DagsterInstance, left: LeftOver) -> bool:
    run = instance.get_run_by_id(left.run_id)
    if run is None:  # of another Dagster with the same ledger: it works if it holds a lease
        return left.held_until is not None
    return not run.is_finished and pulse_of(instance, run) is not Pulse.GONE


def _fate(instance: DagsterInstance, left: LeftOver) -> str:
    run = instance.get_run_by_id(left.run_id)
    if run is None:
        return f"run {_short(left.run_id)} of another Dagster did not end"
    if run.status is DagsterRunStatus.CANCELED:
        return f"run {_short(left.run_id)} was stopped"
    if run.status is DagsterRunStatus.SUCCESS:  # an answer that is missing keeps its lease
        return f"run {_short(left.run_id)} has ended"
    if instance.all_logs(left.run_id, of_type=DagsterEventType.STEP_FAILURE):
        return f"run {_short(left.run_id)} failed"
    return _died(instance, run, left.planned_at)


def _died(instance: DagsterInstance, run: DagsterRun, after: datetime | None = None) -> str:
    last_event = _last_sign_of_life(instance, run.run_id)
    beat = last_seen(run)
    last_beat = datetime.fromtimestamp(beat, UTC) if beat else last_event
    at = max(last_event, last_beat, after or last_event)
    return f"run {_short(run.run_id)} ({where(run)}) died at {at:%H:%M} UTC"


def _taken_up(contract: TableContract, left: LeftOver, asked: set[CellKey]) -> str:
    if not left.cells:
        return "it had planned nothing yet"
    taken = sum(cell in asked for cell in left.cells)
    if taken == len(left.cells):
        return f"its {taken:,} cells are taken up again"
    again = f"{taken:,} of its {len(left.cells):,} cells are taken up again"
    return f"{again}, the others by: bqh sync {contract.id}"


def _waiting(left: LeftOver) -> str:
    if left.held_until is None:
        return ""
    return f", once its lease has expired at {left.held_until:%T} UTC"


def _last_sign_of_life(instance: DagsterInstance, run_id: str) -> datetime:
    """Gives the time of the newest event that the run's own process has written."""
    newest_first = instance.event_log_storage.get_logs_for_run(
        run_id, limit=_LAST_EVENTS, ascending=False
    )
    own = (
        entry
        for entry in newest_first
        if entry.dagster_event is None or entry.dagster_event.event_type not in FROM_OUTSIDE
    )
    entry = next(own, newest_first[-1] if newest_first else None)
    moment = entry.timestamp if entry else datetime.now(UTC).timestamp()
    return datetime.fromtimestamp(moment, UTC)


def _short(run_id: str) -> str:
    return run_id[:_SHOWN_OF_ID]

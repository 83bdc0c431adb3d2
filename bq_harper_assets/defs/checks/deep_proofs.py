"""The deep proof takes a share of the history each night, and all of it within the scrub period.

Whose turn it is goes by when each day's windows were last proved, and not by the calendar: what a
night could not look at comes first in the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from dagster import (
    Config,
    Failure,
    JobDefinition,
    OpExecutionContext,
    ResourceParam,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    job,
    op,
    schedule,
)
from pydantic import Field

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.evaluations import file_verdicts
from bq_harper_assets.defs.checks.validation_run import validate_cells
from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.runs.early_end import require_going_on, stoppable
from bq_harper_assets.instants import EPOCH
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.verbs.audit import AuditEntry, Note
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.errors import RunStopped
from bq_harper_assets.validation.audit import record_validation
from bq_harper_assets.validation.proof import cell_proof, presence, table_proof
from bq_harper_assets.validation.verdict import ProofStatus, Verdict, overall

_DAY = timedelta(days=1)
NIGHTLY = "30 3 * * *"
DEEP_PROOF_KIND = "deep_proof"  # of the ledger's notes: one for each day that had its turn
IN_VAIN = "in_vain"
UNJUDGED = (ProofStatus.CHECK_FAILED, ProofStatus.MOVING)


@dataclass(frozen=True)
class DayProof:
    """Says when a day's windows were last proved deeply, or synced if they never were."""

    at: datetime
    in_vain: datetime | None = None  # its last turn since, in which it could not be judged


class TurnConfig(Config):
    """A run of the job proves the cells of one day, or of the days whose turn it is."""

    day: str | None = Field(
        None,
        description="Prove the windows of this day, such as 2026-11-16, in UTC; left out: those "
        "of the days whose last deep proof is the longest ago.",
    )


def build_deep_proof_job(contract: TableContract) -> JobDefinition:
    """Proves a night's share of the table's cells from what Harper stores of each row."""

    @op(name=f"prove_deeply_{contract.id}")
    def prove_deeply(
        context: OpExecutionContext,
        config: TurnConfig,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> None:
        with bigquery_to_harper.ledger.open() as opened:
            cells = closed_cells_by_day(opened, contract)
            turn = whose_turn(contract, last_looks(opened, contract, cells), opened.now())
        if config.day:
            turn = [date.fromisoformat(config.day)]
        verdicts: list[Verdict] = []
        crashed: dict[str, Exception] = {}
        for day in turn:
            of_day = [cell for cell, _ in cells.get(day, ())]
            try:
                found = validate_cells(
                    context,
                    contract,
                    of_day,
                    bigquery_to_harper,
                    checks=[cell_proof.PROOF_CHECK],
                    deep=True,
                )
            except Exception as error:  # without a note the same days would come first each night
                require_going_on(context)
                context.log.exception(f"{contract.id}: the deep proof of {day} crashed")
                crashed[day.isoformat()] = error
                in_vain = True
            else:
                verdicts += found.verdicts
                in_vain = any(each.status in UNJUDGED for each in found.proofs)
            if of_day:
                outcome = IN_VAIN if in_vain else found.overall.value
                with bigquery_to_harper.ledger.open() as opened:
                    note = Note(DEEP_PROOF_KIND, day.isoformat(), outcome, {"cells": len(of_day)})
                    opened.record_audit(opened.find_route(contract.id), note)
        require_going_on(context)
        if present := look_for_lost_rows(context, contract, bigquery_to_harper):
            verdicts.append(present)
        if crashed:
            first = next(iter(crashed.values()))
            raise Failure(_told(contract, crashed), allow_retries=False) from first
        proved = sum(len(cells.get(day, ())) for day in turn)
        context.add_output_metadata({"status": overall(verdicts).value, "cells": proved})

    @job(
        name=f"deep_proof_{contract.id}",
        description=f"Proves a part of {contract.target.table}, all of it in {contract.scrub}.",
    )
    def deep_proof() -> None:
        prove_deeply()

    return deep_proof


def look_for_lost_rows(
    context: OpExecutionContext, contract: TableContract, resources: BigQueryToHarperResource
) -> Verdict | None:
    """Reads the id of every row once in a scrub period, and each night while rows are lost.

    Where it finds some, they are the table's proof, for no proof of a cell can see them.
    """
    harper = resources.harper
    retry = harper.retry().within(contract.sync.give_up_after)
    with (
        WAITS.listen(context.log.info),
        resources.ledger.open() as opened,
        HarperClient(harper.connection(), retry=retry) as client,
    ):
        table = opened.find_route(contract.id)
        last = opened.audit(table, 1, kind=presence.PRESENCE_CHECK) if table else ()
        is_mended = table is None or presence.newest_loss(opened, table) is None
        if last and is_mended and opened.now() - last[0].at < contract.scrub - _DAY / 2:
            return None
        try:
            found = stoppable(
                context, lambda stop: presence.check_presence(client, opened, contract, stop)
            )
        except RunStopped as error:
            raise Failure(f"{error}. A proof writes nothing", allow_retries=False) from error
        if table is None or found is None:
            return None
        context.log.info(f"{contract.id}: {found.message}")
        presence.note_presence(opened, table, found)
        if warning := record_validation(opened, client, table, [found]):
            context.log.warning(warning)
        told = []
        if not found.passed:
            told = [replace(found, check=cell_proof.PROOF_CHECK)]
        elif not is_mended:  # by the proofs of this night, which came before, it is still lost
            told = [table_proof.check_table(opened, table, ())]
    file_verdicts(context, target_key(contract), (), told)
    return found


def _told(contract: TableContract, crashed: Mapping[str, Exception]) -> str:
    first = next(iter(crashed.values()))
    return (
        f"{contract.id} has no deep proof of {', '.join(crashed)}: it comes again in the next"
        " nights, and the other days of this one were looked at. A proof writes nothing. The first"
        f" error: {str(first) or type(first).__name__}"
    )


def build_deep_proof_schedule(
    contract: TableContract, deep_proof: JobDefinition
) -> ScheduleDefinition:
    """Starts the deep proof once each night."""

    @schedule(
        name=f"{contract.id}_deep_proof",
        cron_schedule=NIGHTLY,
        job=deep_proof,
        description=f"Proves all of {contract.target.table} within {contract.scrub}.",
    )
    def nightly(context: ScheduleEvaluationContext) -> RunRequest:
        day = context.scheduled_execution_time.astimezone(UTC).date().isoformat()
        return RunRequest(run_key=day)

    return nightly


def whose_turn(
    contract: TableContract, looks: Mapping[date, DayProof], now: datetime
) -> list[date]:
    """Chooses the days that were not proved for the longest time: so many that all have their turn.

    After nights that failed it is up to twice as many, until none is late: a schedule that was off
    for long must not prove all of the history in one night. Days that could not be judged take
    turns, besides the share of the others: one that never can be takes no other day's place.
    """
    share = -(-len(looks) // (contract.scrub // _DAY))
    # Half a day, because nights do not begin on the minute: tomorrow's turn is not late yet.
    late = sum(now - look.at > contract.scrub - _DAY / 2 for look in looks.values())
    longest_ago = sorted(looks, key=lambda day: (looks[day].at, day))
    # By their last turn: a day that is never judged stays the one proved the longest ago.
    tried = [(look.in_vain, look.at, day) for day, look in looks.items() if look.in_vain]
    again = [day for *_, day in sorted(tried)[:share]]
    others = [day for day in longest_ago if not looks[day].in_vain]
    total = share + min(share, max(len(again), late - share))
    return sorted(again + others[: total - len(again)])


def last_looks(
    ledger: Ledger, contract: TableContract, cells: Mapping[date, list[tuple[Cell, datetime]]]
) -> dict[date, DayProof]:
    """Finds, for each day, when it was last proved and whether its last turn was in vain."""
    table = ledger.find_route(contract.id)
    # A round leaves at most two notes of each day; one that is not found makes a day come early.
    notes = (
        ledger.audit(table, 4 * (len(cells) + contract.scrub // _DAY), kind=DEEP_PROOF_KIND)
        if table
        else ()
    )
    proved: dict[str, datetime] = {}
    newest: dict[str, AuditEntry] = {}
    for note in notes:  # the newest comes first
        newest.setdefault(note.subject, note)
        if note.outcome != IN_VAIN:
            proved.setdefault(note.subject, note.at)
    looks = {}
    for day, of_day in cells.items():
        at = proved.get(day.isoformat(), min(t for _, t in of_day))
        last = newest.get(day.isoformat())
        looks[day] = DayProof(at, last.at if last and last.outcome == IN_VAIN else None)
    return looks


def closed_cells_by_day(
    ledger: Ledger, contract: TableContract
) -> dict[date, list[tuple[Cell, datetime]]]:
    """Groups the closed cells by the day of their window, each with the instant of its commit."""
    table = ledger.find_route(contract.id)
    records = ledger.cells(table, EPOCH, ledger.now()) if table else ()
    days: dict[date, list[tuple[Cell, datetime]]] = {}
    for record in records:
        if record.commit and record.commit.is_closed:
            start, end = record.cell.window_start, record.cell.window_end
            cell = Cell(Window(start, end), record.cell.slice)
            days.setdefault(start.date(), []).append((cell, record.commit.t))
    return days

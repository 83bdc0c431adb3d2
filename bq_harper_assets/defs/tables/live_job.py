"""A live table has a job that follows the open window, and a sensor that keeps one run going."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dagster import (
    Config,
    Failure,
    JobDefinition,
    OpExecutionContext,
    ResourceParam,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    job,
    op,
    sensor,
)
from pydantic import BaseModel, ConfigDict, Field

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.validation_run import validate_cells
from bq_harper_assets.defs.names import live_job
from bq_harper_assets.defs.resources import BigQueryToHarperResource, LedgerResource
from bq_harper_assets.defs.runs.active_runs import job_is_running, last_failure
from bq_harper_assets.defs.runs.dead_runs import clear_the_way, end_dead_runs
from bq_harper_assets.defs.runs.early_end import stoppable
from bq_harper_assets.defs.tables.first_window import find_start
from bq_harper_assets.defs.tables.materialisations import record_done
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.checkpoints import mirror_checkpoints
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.lease.keeper import lease_times
from bq_harper_assets.sync.ledger_facts import cell_key, refused_declaration
from bq_harper_assets.sync.revisit.open_window import Live, left_open, open_window
from bq_harper_assets.sync.revisit.pace import ASK_AGAIN_AFTER, LIVE_RUN, tick_seconds
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn

LIVE = "bqh/live"


class LiveConfig(Config):
    """One run follows its window for so long."""

    seconds: float = Field(
        LIVE_RUN.total_seconds(),
        gt=0,
        description="It ends after this time, or when its window has closed.",
    )


class LiveCursor(BaseModel):
    """The cursor names the run that was asked for last."""

    model_config = ConfigDict(extra="ignore")

    window: str = ""
    run: int = 0


def build_live_job(contract: TableContract) -> JobDefinition:
    """Builds the job, which polls the open window and takes no slot that a backfill waits for."""

    @op(name=f"follow_{contract.id}")
    def follow_open_window(
        context: OpExecutionContext,
        config: LiveConfig,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> None:

        def follow(stop: Stop) -> TurnReport | None:
            with bigquery_to_harper.ledger.open() as opened:
                find_start(bigquery_to_harper.bigquery.connection(), contract, opened)
                window = open_window(contract, opened.now())
                windows = (*left_open(opened, contract, window), window)
                cells = [Cell(each, n) for each in windows for n in range(contract.slices)]
                run_id = context.run.run_id
                for line in clear_the_way(context.instance, opened, contract, cells, run_id):
                    context.log.info(line)
                session = bigquery_to_harper.spark.spark_session
                run = Turn(
                    route=bigquery_to_harper.route(opened, contract),
                    spark=session,
                    run_id=run_id,
                    times=lease_times(session.conf.get("spark.master", "") or ""),
                    retry=bigquery_to_harper.harper.retry(),
                    say=context.log.info,
                    stop=stop,
                )
                lasts = timedelta(seconds=config.seconds)
                return _follow(context, run, bigquery_to_harper, lasts)

        followed = stoppable(context, follow)
        cells = [each.cell for each in followed.cells] if followed else []
        closed = [each.cell for each in followed.cells if not each.is_open] if followed else []
        # An open window proves nothing.
        validate_cells(context, contract, cells, bigquery_to_harper, prove=closed)

    @job(
        name=live_job(contract),
        tags={LIVE: contract.id},  # by which dagster.yaml leaves room for other runs
        description=f"Follows the open window of {contract.target.table} for a while.",
    )
    def live() -> None:
        follow_open_window()

    return live


def _follow(
    context: OpExecutionContext,
    run: Turn,
    resources: BigQueryToHarperResource,
    lasts: timedelta,
) -> TurnReport | None:
    """Follows the window; files what all polls did as one materialisation of each cell."""
    contract, ledger = run.contract, run.route.ledger

    with HarperClient(resources.harper.connection(), retry=run.retry) as harper:

        def after_look(report: TurnReport) -> None:
            context.log.info(f"{report.rows:,} rows at {report.t:%F %T}, {report.phase}")
            if warning := mirror_checkpoints(ledger, harper, contract):
                context.log.warning(warning)

        def poll(cells: Sequence[Cell]) -> TurnReport:
            # Rows of all windows are asked for doubled keys once, not at every poll.
            known = bool(live.reports)
            # Asked for at each poll: a new one, should Spark's Java process be gone.
            return replace(run, spark=resources.spark.spark_session, key_is_known=known).sync(cells)

        live = Live(
            sync=poll,
            contract=contract,
            ledger=ledger,
            after_look=after_look,
            say=context.log.info,
            sleep=run.stop.sleep,
        )
        try:
            closed = live.follow(ledger.now() + lasts)
        except BqhError as error:
            if run.stop.is_asked:
                raise Failure(_stopped(contract), allow_retries=False) from error
            raise Failure(str(error), allow_retries=False) from error
        finally:
            if total := live.total():
                record_done(context, contract, total, _rows(ledger, contract, total))
    if total and total.waiting:  # once, not at every poll
        context.log.info(f"{contract.id} went on with the columns it has: {total.not_synced}")
    ended = "its window has closed" if closed else "its time is over"
    context.log.info(f"{contract.id}: {live.polls} polls; ended because {ended}")
    return total


def _stopped(contract: TableContract) -> str:
    return (
        f"stopped: what the polls of {contract.id} have committed stays; the rest is taken up by"
        f" the next live run, or by: bqh sync {contract.id}"
    )


def build_live_sensor(contract: TableContract) -> SensorDefinition:
    """Builds the sensor, which starts the next run, keyed by window and number, if none runs."""

    @sensor(
        name=live_job(contract),
        job_name=live_job(contract),
        minimum_interval_seconds=tick_seconds(contract.sync),
        description=f"Keeps the open window of {contract.target.table} topped up.",
    )
    def keep_following(
        context: SensorEvaluationContext, ledger: LedgerResource
    ) -> SensorResult | SkipReason:
        end_dead_runs(context.instance)
        if job_is_running(context.instance, live_job(contract)):
            return SkipReason("a live run goes on")
        with ledger.open() as opened:
            now = opened.now()
            if refused := refused_declaration(opened, contract):
                return SkipReason(str(refused))
            window = open_window(contract, now)
            if _is_refused(opened, contract, window, now):
                return SkipReason(
                    f"{window.key} was refused by the delete guard: look at it with bqh status; if "
                    f"the rows are really gone, type: bqh sync {contract.id} "
                    f"--from {window.start:%Y-%m-%dT%H:%M} --allow-deletes"
                )
        failed = last_failure(context.instance, live_job(contract))
        if failed and now - failed < ASK_AGAIN_AFTER:
            return SkipReason(f"the last run failed; the next is asked for in {ASK_AGAIN_AFTER}")
        cursor = LiveCursor.model_validate_json(context.cursor or "{}")
        number = cursor.run + 1 if cursor.window == window.key else 1
        return SensorResult(
            run_requests=[RunRequest(run_key=f"{window.key}#{number}")],
            cursor=LiveCursor(window=window.key, run=number).model_dump_json(),
        )

    return keep_following


def _rows(ledger: Ledger, contract: TableContract, report: TurnReport) -> dict[Cell, int]:
    """Counts the rows that each cell holds, which its polls wrote a few at a time."""
    start = min((each.cell.window.start for each in report.cells), default=report.t)
    table = ledger.find_route(contract.id)
    records = ledger.cells(table, start, report.t) if table else ()
    held = {record.cell: record.commit.rows for record in records if record.commit}
    return {each.cell: held.get(cell_key(each.cell), 0) for each in report.cells}


def _is_refused(ledger: Ledger, contract: TableContract, window: Window, now: datetime) -> bool:
    table = ledger.find_route(contract.id)
    records = ledger.cells(table, window.start, window.end) if table else ()
    return any(
        record.state is CellState.REFUSED
        and not (record.refusal and record.refusal.is_forgotten(now))
        for record in records
    )

"""Each contract becomes one asset: a Harper table, partitioned by time window and worker slice."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    BackfillPolicy,
    Config,
    Failure,
    OpExecutionContext,
    ResourceParam,
    asset,
)
from pydantic import Field

from bq_harper_assets.activity import doing
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.validation_run import validate_cells
from bq_harper_assets.defs.names import pool_of, target_key
from bq_harper_assets.defs.partitions import build_partitions, cells_of
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.runs.dead_runs import clear_the_way
from bq_harper_assets.defs.runs.early_end import stoppable, told_as_stopped
from bq_harper_assets.defs.runs.step_retries import retried
from bq_harper_assets.defs.tables.first_window import find_start
from bq_harper_assets.defs.tables.materialisations import cell_metadata, record_done, rows_held
from bq_harper_assets.defs.tables.source_assets import source_key
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.retries.retry import RetryPolicy as StoreRetries
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.checkpoints import mirror_checkpoints
from bq_harper_assets.stores.harper.mirror.schemas import mirror_schemas
from bq_harper_assets.stores.harper.mirror.tables import make_system_tables
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.errors import RunStopped, TurnFailed
from bq_harper_assets.sync.lease.keeper import LEASE_LASTS, lease_times
from bq_harper_assets.sync.ledger_facts import refused_declaration
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn

# A lease that was left to expire has expired by then; a live run holds one for a poll.
PATIENCE = LEASE_LASTS + timedelta(minutes=1)
ONCE = StoreRetries(max_retries=0)


class SyncConfig(Config):
    """A run may be allowed to do what others may not."""

    allow_deletes: bool = Field(
        False, description="Also delete more rows than the guard lets pass; look at them before."
    )
    deep: bool = Field(
        False,
        description="Compare all values of the rows that Harper holds; do not trust their hashes.",
    )


def build_table(contract: TableContract, start: datetime, remark: str = "") -> AssetsDefinition:
    """Builds the asset; to materialise a partition makes it equal to its source at one instant.

    A `remark`, such as why every run is refused, is what the asset's page says.
    """

    @asset(
        key=target_key(contract),
        deps=[source_key(contract)],
        partitions_def=build_partitions(contract, start),
        backfill_policy=BackfillPolicy.single_run(),
        pool=pool_of(contract),
        group_name="harper",
        kinds={"bigquery", "pyspark"},
        description=remark
        or f"{contract.target.table} in Harper, kept equal to its BigQuery source.",
    )
    def harper_table(
        context: AssetExecutionContext,
        config: SyncConfig,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> None:
        cells = cells_of(contract, context.partition_keys)
        report = sync_cells(
            context,
            contract,
            cells,
            bigquery_to_harper,
            allow_deletes=config.allow_deletes,
            deep=config.deep,
        )
        with bigquery_to_harper.ledger.open() as opened:
            rows = rows_held(opened, contract, report)
        for cell in report.cells:
            metadata = cell_metadata(contract, report, cell, rows[cell.cell])
            context.add_asset_metadata(metadata, partition_key=cell.cell.key)

    return harper_table


def sync_cells(
    context: AssetExecutionContext | OpExecutionContext,
    contract: TableContract,
    cells: Sequence[Cell],
    resources: BigQueryToHarperResource,
    *,
    allow_deletes: bool = False,
    deep: bool = False,
) -> TurnReport:
    """Tries to sync until it succeeds, cannot succeed, or is stopped; shows what is done."""

    harper = resources.harper

    def do(stop: Stop) -> TurnReport:
        bigquery = resources.bigquery.connection()
        with resources.ledger.open() as opened:
            if refused := refused_declaration(opened, contract, bigquery.project):
                # Before Spark is started, and before anything is asked for.
                raise Failure(str(refused), allow_retries=False)
            find_start(bigquery, contract, opened)  # on record from the first sync on
            run_id = context.run.run_id
            for line in clear_the_way(context.instance, opened, contract, cells, run_id):
                context.log.info(line)
            since = opened.now()

            def once() -> TurnReport:
                session = resources.spark.spark_session
                run = Turn(
                    route=resources.route(opened, contract),
                    spark=session,
                    run_id=context.run.run_id,
                    times=lease_times(session.conf.get("spark.master", "") or "", PATIENCE),
                    retry=harper.retry(),
                    say=context.log.info,
                    allow_deletes=allow_deletes,
                    deep=deep,
                    stop=stop,
                )
                try:
                    report = run.sync(cells)
                except TurnFailed as error:
                    _keep(error.report, opened, stop)
                    may_heal = error.report.is_transient
                    raise Failure(str(error), allow_retries=may_heal) from error
                except BqhError as error:
                    raise Failure(
                        str(error), allow_retries=isinstance(error, TransientError)
                    ) from error
                _show_in_harper(context, contract, opened, harper, report)
                return report

            try:
                return retried(context, stop, once, contract.sync.give_up_after)
            except (RunStopped, Failure) as error:
                if not stop.is_asked:
                    raise
                said = told_as_stopped(opened, contract, cells, context.run.run_id, since)
                raise Failure(said, allow_retries=False) from error

    def _keep(report: TurnReport, opened: Ledger, stop: Stop) -> None:
        """Records and proves what a run that failed has done all the same."""
        done = [each.cell for each in report.cells if not each.problem]
        record_done(context, contract, report, rows_held(opened, contract, report))
        _show_in_harper(context, contract, opened, harper, report)
        # Else the next try proves them.
        if done and not report.is_transient and not stop.is_asked:
            # The checks of a run that fails are left out.
            with suppress(Failure):
                step = _step_of(context)
                validate_cells(step, contract, done, resources)

    with doing(f"at work on {len(cells):,} cells"):
        return stoppable(context, do)


def _step_of(context: AssetExecutionContext | OpExecutionContext) -> OpExecutionContext:
    return context if isinstance(context, OpExecutionContext) else context.op_execution_context


def _show_in_harper(
    context: AssetExecutionContext | OpExecutionContext,
    contract: TableContract,
    ledger: Ledger,
    harper: HarperResource,
    report: TurnReport,
) -> None:
    """Writes copies for readers of Harper; without them the run is as good."""
    try:
        with HarperClient(harper.connection(), retry=ONCE) as client:
            warnings = [mirror_checkpoints(ledger, client, contract)]
            if report.schema_is_new:
                warnings.append(mirror_schemas(ledger, client, contract))
                warnings += make_system_tables(client)
    except BqhError as error:
        warnings = [str(error)]
    for warning in filter(None, warnings):
        context.log.warning(warning)

"""Each contract becomes one asset: a Harper table, partitioned by time window and worker slice."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    BackfillPolicy,
    Backoff,
    Config,
    Failure,
    Jitter,
    OpExecutionContext,
    RetryPolicy,
    asset,
)
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.keys import pool_of, target_key
from bq_harper_assets.defs.materialisations import cell_metadata, record_done, rows_held
from bq_harper_assets.defs.partitions import build_partitions, cells_of
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.sources import source_key
from bq_harper_assets.defs.validating import validate_cells
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.stores.retry import RetryPolicy as StoreRetries
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.checkpoint_mirror import mirror_checkpoints
from bq_harper_assets.sync.keeper import lease_times
from bq_harper_assets.sync.report import RunFailed, RunReport
from bq_harper_assets.sync.run import Run
from bq_harper_assets.sync.scene import Stores
from bq_harper_assets.sync.schema_mirror import mirror_schemas
from bq_harper_assets.sync.system_tables import make_system_tables
from bq_harper_assets.sync.transient import TRANSIENT

# A lease that was left to expire does so within three minutes; a live run holds one for a poll.
PATIENCE = timedelta(minutes=4)
RETRIES = RetryPolicy(max_retries=3, delay=60, backoff=Backoff.LINEAR, jitter=Jitter.PLUS_MINUS)
ONCE = StoreRetries(max_retries=0)


class SyncConfig(Config):
    """What one run may do that others may not."""

    allow_deletes: bool = Field(
        False, description="Also delete more rows than the guard lets pass; look at them before."
    )
    deep: bool = Field(
        False,
        description="Compare all values of the rows that Harper holds; do not trust their hashes.",
    )


def build_table(contract: TableContract, start: datetime) -> AssetsDefinition:
    """Materialising a partition makes it equal to its source at one instant."""

    @asset(
        key=target_key(contract),
        deps=[source_key(contract)],
        partitions_def=build_partitions(contract, start),
        backfill_policy=BackfillPolicy.single_run(),
        pool=pool_of(contract),
        retry_policy=RETRIES,
        group_name="harper",
        kinds={"bigquery", "pyspark"},
        description=f"{contract.target_table} in Harper, kept equal to its BigQuery source.",
    )
    def harper_table(
        context: AssetExecutionContext,
        config: SyncConfig,
        bigquery: BigQueryConnectionResource,
        harper: HarperResource,
        ledger: LedgerResource,
        spark: LazyPySparkResource,
    ) -> None:
        cells = cells_of(contract, context.partition_keys)
        report = sync_cells(
            context,
            contract,
            cells,
            bigquery,
            harper,
            ledger,
            spark,
            allow_deletes=config.allow_deletes,
            deep=config.deep,
        )
        with ledger.open() as opened:
            rows = rows_held(opened, contract, report)
        for cell in report.cells:
            metadata = cell_metadata(contract, report, cell, rows[cell.cell])
            context.add_asset_metadata(metadata, partition_key=cell.cell.key)

    return harper_table


def sync_cells(
    context: AssetExecutionContext | OpExecutionContext,
    contract: TableContract,
    cells: Sequence[Cell],
    bigquery: BigQueryConnectionResource,
    harper: HarperResource,
    ledger: LedgerResource,
    spark: LazyPySparkResource,
    *,
    allow_deletes: bool = False,
    deep: bool = False,
) -> RunReport:
    """One run; its failure says whether to try again, and what is done is kept in Dagster too."""
    with ledger.open() as opened:
        run = Run(
            Stores(bigquery.connection(), harper.connection(), opened),
            contract,
            spark.spark_session,
            context.run.run_id,
            lease_times(spark.spark_session.conf.get("spark.master", "") or "", PATIENCE),
            retry=harper.retry(),
            say=context.log.info,
            allow_deletes=allow_deletes,
            deep=deep,
        )
        try:
            report = run.sync(cells)
        except RunFailed as error:
            done = [each.cell for each in error.report.cells if not each.problem]
            record_done(context, contract, error.report, rows_held(opened, contract, error.report))
            _show_in_harper(context, contract, opened, harper, error.report)
            if done and not error.report.is_transient:  # else the next try proves them
                # The checks of a run that fails are left out.
                with suppress(Failure):
                    step = _step_of(context)
                    validate_cells(step, contract, done, bigquery, harper, ledger, spark)
            raise Failure(str(error), allow_retries=error.report.is_transient) from error
        except BqhError as error:
            raise Failure(str(error), allow_retries=isinstance(error, TRANSIENT)) from error
        _show_in_harper(context, contract, opened, harper, report)
        return report


def _step_of(context: AssetExecutionContext | OpExecutionContext) -> OpExecutionContext:
    return context if isinstance(context, OpExecutionContext) else context.op_execution_context


def _show_in_harper(
    context: AssetExecutionContext | OpExecutionContext,
    contract: TableContract,
    ledger: Ledger,
    harper: HarperResource,
    report: RunReport,
) -> None:
    """Copies for readers of Harper; without them the run is as good."""
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

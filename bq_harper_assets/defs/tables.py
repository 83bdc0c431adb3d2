"""Each contract becomes one asset: a Harper table, partitioned by time window and worker slice."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    BackfillPolicy,
    Backoff,
    Failure,
    Jitter,
    OpExecutionContext,
    RetryPolicy,
    asset,
)
from dagster_pyspark import LazyPySparkResource

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import build_partitions, cells_of
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.sources import source_key
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LeaseHeld, LeaseLost, LedgerUnavailable
from bq_harper_assets.stores.bigquery.client import BigQueryUnavailable
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.breaker import CircuitOpen
from bq_harper_assets.stores.harper.errors import HarperUnavailable
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.keeper import lease_times
from bq_harper_assets.sync.report import CellReport, RunFailed, RunReport
from bq_harper_assets.sync.run import Run, Stores

TRANSIENT = (
    BigQueryUnavailable,
    CircuitOpen,
    HarperUnavailable,
    LeaseHeld,
    LeaseLost,
    LedgerUnavailable,
)
# A lease that was left to expire does so within three minutes.
RETRIES = RetryPolicy(max_retries=3, delay=60, backoff=Backoff.LINEAR, jitter=Jitter.PLUS_MINUS)


def target_key(contract: TableContract) -> AssetKey:
    """`harper/<target>`."""
    return AssetKey(["harper", contract.target_table])


def pool_of(contract: TableContract) -> str:
    """Two runs of one table would only wait for each other's lease."""
    return f"harper/{contract.target_table}"


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
        bigquery: BigQueryConnectionResource,
        harper: HarperResource,
        ledger: LedgerResource,
        spark: LazyPySparkResource,
    ) -> None:
        cells = cells_of(contract, context.partition_keys)
        report = sync_cells(context, contract, cells, bigquery, harper, ledger, spark)
        for cell in report.cells:
            context.add_asset_metadata(_metadata(report, cell), partition_key=cell.cell.key)

    return harper_table


def sync_cells(
    context: AssetExecutionContext | OpExecutionContext,
    contract: TableContract,
    cells: Sequence[Cell],
    bigquery: BigQueryConnectionResource,
    harper: HarperResource,
    ledger: LedgerResource,
    spark: LazyPySparkResource,
) -> RunReport:
    """One run; its failure says whether to try again, and what is done is kept in Dagster too."""
    with ledger.open() as opened:
        run = Run(
            Stores(bigquery.connection(), harper.connection(), opened),
            contract,
            spark.spark_session,
            context.run.run_id,
            lease_times(spark.spark_session.conf.get("spark.master", "") or ""),
            retry=harper.retry(),
            say=context.log.info,
        )
        try:
            return run.sync(cells)
        except RunFailed as error:
            record_done(context, contract, error.report)
            raise Failure(str(error), allow_retries=error.report.is_transient) from error
        except BqhError as error:
            raise Failure(str(error), allow_retries=isinstance(error, TRANSIENT)) from error


def record_done(
    context: AssetExecutionContext | OpExecutionContext, contract: TableContract, report: RunReport
) -> None:
    """The finished partitions, where Dagster would call all of them failed or knows of none."""
    for cell in report.cells:
        if not cell.problem:
            context.log_event(
                AssetMaterialization(
                    asset_key=target_key(contract),
                    partition=cell.cell.key,
                    metadata=_metadata(report, cell),
                )
            )


def _metadata(report: RunReport, cell: CellReport) -> dict[str, Any]:
    result = cell.result
    return {
        "dagster/partition_row_count": result.written,
        "rows_read": result.read,
        "rows_written": result.written,
        "rows_quarantined": result.quarantined,
        "bytes_sent": result.bytes,
        "seconds_of_run": round(report.seconds, 3),
        "snapshot": report.t.isoformat(),
        "digest": result.digest,
        "mode": cell.mode.value,
        "batch": cell.batch,
        "phase": report.phase.value,
        "table_action": report.table_action.value,
        "schema_version": report.schema_version,
        "requests_of_run": report.requests,
        "retries_of_run": report.retries,
    }

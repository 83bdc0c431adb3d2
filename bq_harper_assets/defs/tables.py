"""Each contract becomes one asset: a Harper table, partitioned by time window and worker slice."""

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
    RetryPolicy,
    asset,
)
from dagster_pyspark import LazyPySparkResource

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import build_partitions, cells_of
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.sources import source_key
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LeaseHeld, LedgerUnavailable
from bq_harper_assets.stores.bigquery.client import BigQueryUnavailable
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.errors import HarperUnavailable
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.run import CellReport, Run, RunFailed, RunReport, Stores

TRANSIENT = (BigQueryUnavailable, HarperUnavailable, LedgerUnavailable, LeaseHeld)
# A lease that was left to expire does so within three minutes.
RETRIES = RetryPolicy(max_retries=3, delay=60, backoff=Backoff.LINEAR, jitter=Jitter.PLUS_MINUS)


def target_key(contract: TableContract) -> AssetKey:
    """`harper/<target>`."""
    return AssetKey(["harper", contract.target_table])


def build_table(contract: TableContract, start: datetime) -> AssetsDefinition:
    """Materialising a partition makes it equal to its source at one instant."""

    @asset(
        key=target_key(contract),
        deps=[source_key(contract)],
        partitions_def=build_partitions(contract, start),
        backfill_policy=BackfillPolicy.single_run(),
        pool=f"harper/{contract.target_table}",
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
        with ledger.open() as opened:
            run = Run(
                Stores(bigquery.connection(), harper.connection(), opened),
                contract,
                spark.spark_session,
                context.run_id,
                retry=harper.retry(),
                say=context.log.info,
            )
            try:
                _show(context, run.sync(cells_of(contract, context.partition_keys)))
            except RunFailed as error:
                _keep(context, error.report)
                raise Failure(str(error), allow_retries=error.report.is_transient) from error
            except BqhError as error:
                raise Failure(str(error), allow_retries=isinstance(error, TRANSIENT)) from error

    return harper_table


def _show(context: AssetExecutionContext, report: RunReport) -> None:
    for cell in report.cells:
        context.add_asset_metadata(_metadata(report, cell), partition_key=cell.cell.key)


def _keep(context: AssetExecutionContext, report: RunReport) -> None:
    """Dagster calls every partition of a failed run failed; those that are done are not."""
    for cell in report.cells:
        if not cell.problem:
            context.log_event(
                AssetMaterialization(
                    asset_key=context.asset_key,
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

"""Four checks per table, run after each sync: of each partition, and of them all."""

from collections.abc import Iterator
from datetime import datetime

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSpec,
    multi_asset_check,
)
from dagster_pyspark import LazyPySparkResource

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.keys import target_key
from bq_harper_assets.defs.partitions import build_partitions, cells_of
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.validating import validate_cells
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.validation import cell_proof, progress, smoke, spot_verdict

DESCRIPTIONS = {
    progress.CHECK: "The sync keeps up: Harper has every row that is due.",
    smoke.CHECK: "A user's query finds the rows of the partition, or the newest ones.",
    spot_verdict.CHECK: "Rows picked at random are the same in both stores.",
    cell_proof.CHECK: "Every row of the partition is the same in both stores.",
}


def build_checks(contract: TableContract, start: datetime) -> AssetChecksDefinition:
    """One step for all of them; none blocks, for what was synced stays as it is."""
    key, partitions = target_key(contract), build_partitions(contract, start)

    @multi_asset_check(
        name=f"check_{contract.id}",
        specs=[
            AssetCheckSpec(name, asset=key, description=told, partitions_def=partitions)
            for name, told in DESCRIPTIONS.items()
        ],
        # Results are filed by partition, which a step's own outputs cannot be.
        can_subset=True,
    )
    def check_table(
        context: AssetCheckExecutionContext,
        bigquery: BigQueryConnectionResource,
        harper: HarperResource,
        ledger: LedgerResource,
        spark: LazyPySparkResource,
    ) -> Iterator[AssetCheckResult]:
        step = context.op_execution_context
        validate_cells(
            step,
            contract,
            cells_of(contract, step.partition_keys),
            bigquery,
            harper,
            ledger,
            spark,
            checks=[each.name for each in context.selected_asset_check_keys],
        )
        yield from ()  # all results are filed already

    return check_table

"""Each sync is followed by four checks of the table and the proof of each partition."""

from collections.abc import Iterator
from datetime import UTC, datetime

from dagster import (
    AssetCheckExecutionContext,
    AssetChecksDefinition,
    AssetCheckSpec,
    Output,
    ResourceParam,
    multi_asset_check,
)

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.evaluations import PER_PARTITION, file_sum
from bq_harper_assets.defs.checks.validation_jobs import WINDOWS_PROVED, newest_cells
from bq_harper_assets.defs.checks.validation_run import validate_cells
from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.partitions import build_partitions, cells_of
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.validation import smoke
from bq_harper_assets.validation.progress import progress_check
from bq_harper_assets.validation.proof import cell_proof
from bq_harper_assets.validation.proof.proof_records import verdict_of
from bq_harper_assets.validation.spot import spot_verdict

OF_TABLE = {
    progress_check.PROGRESS_CHECK: "The sync keeps up: Harper has every row that is due.",
    smoke.SMOKE_CHECK: "A user's query finds the newest rows.",
    spot_verdict.SPOT_CHECK: "Rows picked at random are the same in both stores.",
    cell_proof.PROOF_CHECK: "Every row of the table is the same in both stores. Executed by itself,"
    f" it proves the newest {WINDOWS_PROVED} closed windows.",
}
OF_PARTITION = (
    "Every row of the partition is the same in both stores. Dagster executes no check with"
    " partitions by itself: execute proof, or launch the job validate_{table}."
)


def build_checks(contract: TableContract, start: datetime) -> AssetChecksDefinition:
    """Builds one step for all checks; none blocks, for what was synced stays as it is."""
    key, partitions = target_key(contract), build_partitions(contract, start)
    of_partition = OF_PARTITION.format(table=contract.id)

    @multi_asset_check(
        name=f"check_{contract.id}",
        specs=[
            *(AssetCheckSpec(name, asset=key, description=told) for name, told in OF_TABLE.items()),
            AssetCheckSpec(
                PER_PARTITION, asset=key, description=of_partition, partitions_def=partitions
            ),
        ],
        can_subset=True,
    )
    def check_table(
        context: AssetCheckExecutionContext,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> Iterator[Output[None]]:
        step = context.op_execution_context
        asked = {each.name for each in context.selected_asset_check_keys}
        if PER_PARTITION in asked:
            asked.add(cell_proof.PROOF_CHECK)
        # The checks page starts a run without partitions.
        has_partitions = step.has_partition_key or step.has_partition_key_range
        cells = (
            cells_of(contract, step.partition_keys)
            if has_partitions
            else newest_cells(
                bigquery_to_harper.ledger, contract, WINDOWS_PROVED, datetime.now(UTC)
            )
        )
        found = validate_cells(step, contract, cells, bigquery_to_harper, checks=sorted(asked))
        if not has_partitions and PER_PARTITION in asked:
            file_sum(step, key, verdict_of(found.proofs))
        # The results are filed already: as outputs, Dagster cannot have them of many partitions,
        # and without a partition it fails to find what they have looked at.
        yield from (Output(None, name) for name in step.selected_output_names)

    return check_table

"""One job syncs all tables without partitions, of which Dagster gives a run only one set."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dagster import Config, JobDefinition, OpDefinition, OpExecutionContext, ResourceParam, job, op
from pydantic import Field

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.validation_run import validate_cells
from bq_harper_assets.defs.names import ALL_TABLES_JOB
from bq_harper_assets.defs.partitions import newest_closed
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.tables.asset import sync_cells
from bq_harper_assets.defs.tables.first_window import find_start
from bq_harper_assets.defs.tables.materialisations import record_done, rows_held
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between


class NewestConfig(Config):
    """A run syncs so much of each table."""

    windows: int = Field(1, ge=1, description="So many closed windows, up to the newest.")


def build_all_tables_job(
    tables: Sequence[TableContract], starts: Mapping[str, datetime]
) -> JobDefinition:
    """Builds the job, which syncs each table's newest windows; one that fails stops no other."""
    steps = [_step(contract, starts[contract.id]) for contract in tables]

    @job(
        name=ALL_TABLES_JOB,
        description="Syncs the newest closed windows of every table, all slices.",
    )
    def sync_all_tables() -> None:
        for step in steps:
            step()

    return sync_all_tables


def _step(contract: TableContract, start: datetime) -> OpDefinition:
    # No pool: a run has its place in all pools of its steps, and would wait for all tables.
    @op(name=f"sync_newest_{contract.id}")
    def sync_newest(
        context: OpExecutionContext,
        config: NewestConfig,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> None:
        newest = newest_closed(contract, datetime.now(UTC))
        with (
            bigquery_to_harper.ledger.open() as opened
        ):  # what was known at the load may be older than this
            begin = find_start(bigquery_to_harper.bigquery.connection(), contract, opened) or start
        first = max(begin, newest.end - config.windows * contract.window)
        cells = [
            Cell(window, number)
            for window in windows_between(first, newest.end, contract.window)
            for number in range(contract.slices)
        ]
        if not cells:
            context.log.info(f"no window of {contract.id} has closed yet")
            return
        report = sync_cells(context, contract, cells, bigquery_to_harper)
        with bigquery_to_harper.ledger.open() as opened:
            record_done(context, contract, report, rows_held(opened, contract, report))
        validate_cells(context, contract, cells, bigquery_to_harper)

    return sync_newest

"""The deep proof goes round: a part of the history each day, all of it within the scrub period."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from dagster import (
    Config,
    JobDefinition,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    job,
    op,
    schedule,
)
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.validating import validate_cells
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.status import CellRecord
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.windows import EPOCH, Window
from bq_harper_assets.validation import cell_proof
from bq_harper_assets.validation.verdict import Verdict, overall

DAY = timedelta(days=1)
NIGHTLY = "30 3 * * *"


class TurnConfig(Config):
    """Whose turn it is."""

    day: str | None = Field(
        None, description="The turn of this day, such as 2026-11-16; left out: today's, in UTC."
    )


def build_deep_proof_job(contract: TableContract) -> JobDefinition:
    """Proves a day's share of the table's cells from what Harper stores of each row."""

    @op(name=f"prove_deeply_{contract.id}")
    def prove_deeply(
        context: OpExecutionContext,
        config: TurnConfig,
        bigquery: BigQueryConnectionResource,
        harper: HarperResource,
        ledger: LedgerResource,
        spark: LazyPySparkResource,
    ) -> None:
        day = date.fromisoformat(config.day) if config.day else datetime.now(UTC).date()
        with ledger.open() as opened:
            stretches = due_on(contract, _closed_cells(opened, contract), day)
        verdicts: list[Verdict] = []
        for cells in stretches:
            found = validate_cells(
                context,
                contract,
                cells,
                bigquery,
                harper,
                ledger,
                spark,
                checks=[cell_proof.CHECK],
                deep=True,
            )
            verdicts += found.verdicts
        proved = sum(len(cells) for cells in stretches)
        context.add_output_metadata({"status": overall(verdicts).value, "cells": proved})

    @job(
        name=f"deep_proof_{contract.id}",
        description=f"Proves a part of {contract.target_table}, all of it in {contract.scrub}.",
    )
    def deep_proof() -> None:
        prove_deeply()

    return deep_proof


def build_deep_proof_schedule(
    contract: TableContract, deep_proof: JobDefinition
) -> ScheduleDefinition:
    """Each night, the turn of that day."""

    @schedule(
        name=f"{contract.id}_deep_proof",
        cron_schedule=NIGHTLY,
        job=deep_proof,
        description=f"Proves all of {contract.target_table} within {contract.scrub}.",
    )
    def nightly(context: ScheduleEvaluationContext) -> RunRequest:
        day = context.scheduled_execution_time.astimezone(UTC).date().isoformat()
        config = {"ops": {f"prove_deeply_{contract.id}": {"config": {"day": day}}}}
        return RunRequest(run_key=day, run_config=config)

    return nightly


def due_on(contract: TableContract, cells: Iterable[Cell], day: date) -> list[list[Cell]]:
    """The cells whose turn it is, in stretches without a gap: each is one read of the source.

    Turns go by the day of a window, so that a turn is made of whole days.
    """
    turns = contract.scrub // DAY
    stretches: list[list[Cell]] = []
    for cell in sorted(cells):
        if (cell.window.start.date().toordinal() - day.toordinal()) % turns:
            continue
        if stretches and stretches[-1][-1].window.end >= cell.window.start:
            stretches[-1].append(cell)
        else:
            stretches.append([cell])
    return stretches


def _closed_cells(ledger: Ledger, contract: TableContract) -> list[Cell]:
    table = ledger.find_table(contract.id)
    records = ledger.cells(table, EPOCH, ledger.now()) if table else ()
    return [_cell(record) for record in records if record.commit and record.commit.is_closed]


def _cell(record: CellRecord) -> Cell:
    return Cell(Window(record.cell.window_start, record.cell.window_end), record.cell.slice)

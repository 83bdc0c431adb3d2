"""These jobs check what is synced of a table's partitions, or of all tables, and write no row."""

from collections.abc import Sequence
from datetime import UTC, datetime

from dagster import (
    Config,
    Failure,
    JobDefinition,
    OpDefinition,
    OpExecutionContext,
    ResourceParam,
    job,
    op,
)
from pydantic import Field

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.validation_run import validate_cells
from bq_harper_assets.defs.partitions import newest_closed
from bq_harper_assets.defs.resources import BigQueryToHarperResource, LedgerResource
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window, windows_between

WINDOWS_PROVED = 24  # that are proved where nobody says which


class ValidationConfig(Config):
    """A validation says how closely the checks look, and at what."""

    deep: bool = Field(
        False, description="Compute each row's hash again from what Harper stores of it."
    )
    windows: int = Field(
        WINDOWS_PROVED, ge=1, description="So many closed windows, up to the newest."
    )
    first: str | None = Field(
        None, description="Instead: this partition, such as 2026-11-16T07:00|s00."
    )
    last: str | None = Field(
        None, description="With first: all partitions of the windows and slices between the two."
    )


def build_validation_jobs(tables: Sequence[TableContract]) -> list[JobDefinition]:
    """Builds one job per table, and one for all of them."""
    # Dagster wants a step of one name to be one object in all jobs.
    steps = [_step(contract) for contract in tables]

    @job(description="Checks the newest closed windows of every table and changes no row.")
    def validate_all() -> None:
        for step in steps:
            step()

    of_tables = [_job(contract, step) for contract, step in zip(tables, steps, strict=True)]
    return [*of_tables, validate_all]


def _job(contract: TableContract, step: OpDefinition) -> JobDefinition:
    @job(
        name=f"validate_{contract.id}",
        description=f"Checks {contract.target.table}, proves the newest {WINDOWS_PROVED} closed"
        " windows or the partitions of its config, and changes no row.",
    )
    def validate() -> None:
        step()

    return validate


def _step(contract: TableContract) -> OpDefinition:
    @op(name=f"check_cells_of_{contract.id}")
    def check_cells(
        context: OpExecutionContext,
        config: ValidationConfig,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> None:
        try:
            cells = named_cells(contract, config.first, config.last)
        except ValueError as error:
            raise Failure(f"{contract.id}: {error}", allow_retries=False) from error
        if cells is None:
            cells = newest_cells(
                bigquery_to_harper.ledger, contract, config.windows, datetime.now(UTC)
            )
        found = validate_cells(context, contract, cells, bigquery_to_harper, deep=config.deep)
        words = {verdict.check: verdict.status.value for verdict in found.verdicts}
        context.add_output_metadata(
            {"status": found.overall.value, "cells": len(cells), "checks": words}
        )

    return check_cells


def named_cells(contract: TableContract, first: str | None, last: str | None) -> list[Cell] | None:
    """Lists the cells of one partition, or of the rectangle between two; None if none is named."""
    if first is None:
        if last is not None:
            raise ValueError(f"last is {last}, and there is no first")
        return None
    last = last or first
    begin, end = (Cell.parse(key, contract.window) for key in (first, last))
    return [
        Cell(window, number)
        for window in windows_between(begin.window.start, end.window.end, contract.window)
        for number in range(begin.slice, end.slice + 1)
    ]


def newest_cells(
    ledger: LedgerResource, contract: TableContract, windows: int, now: datetime
) -> list[Cell]:
    """Lists the synced cells of so many closed windows, up to the newest."""
    newest = newest_closed(contract, now)
    with ledger.open() as opened:
        table = opened.find_route(contract.id)
        first = newest.end - windows * contract.window
        records = opened.cells(table, first, newest.end) if table else ()
    return [
        Cell(Window(record.cell.window_start, record.cell.window_end), record.cell.slice)
        for record in records
        if record.commit
    ]

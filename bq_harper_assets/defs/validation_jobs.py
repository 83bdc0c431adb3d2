"""Jobs that check what is synced and move nothing: any partitions of a table, or all tables."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dagster import Config, Failure, JobDefinition, OpDefinition, OpExecutionContext, job, op
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START, build_partitions
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.schedules import newest_closed
from bq_harper_assets.defs.validating import validate_cells
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.windows import windows_between

PARTITION = "dagster/partition"


class ValidationConfig(Config):
    """How closely the checks look, and at what where the run names no partition."""

    deep: bool = Field(
        False, description="Compute each row's hash again from what Harper stores of it."
    )
    windows: int = Field(
        24, ge=1, description="Without a partition: so many closed windows, up to the newest."
    )


def build_validation_jobs(
    tables: Sequence[TableContract], starts: Mapping[str, datetime]
) -> list[JobDefinition]:
    """One per table, and one for all of them."""
    # Dagster wants a step of one name to be one object in all jobs.
    steps = [_step(contract, starts[contract.id]) for contract in tables]

    @job(description="Checks the newest closed windows of every table and moves nothing.")
    def validate_all() -> None:
        for step in steps:
            step()

    of_tables = [
        _job(contract, starts[contract.id], step)
        for contract, step in zip(tables, steps, strict=True)
    ]
    return [*of_tables, validate_all]


def _job(contract: TableContract, start: datetime, step: OpDefinition) -> JobDefinition:
    @job(
        name=f"validate_{contract.id}",
        partitions_def=build_partitions(contract, start),
        description=f"Checks partitions of {contract.target_table} and moves nothing.",
    )
    def validate() -> None:
        step()

    return validate


def _step(contract: TableContract, start: datetime) -> OpDefinition:
    @op(name=f"check_cells_of_{contract.id}")
    def check_cells(
        context: OpExecutionContext,
        config: ValidationConfig,
        bigquery: BigQueryConnectionResource,
        harper: HarperResource,
        ledger: LedgerResource,
        spark: LazyPySparkResource,
    ) -> None:
        try:
            cells = named_cells(contract, context.run.tags)
        except ValueError as error:
            raise Failure(f"{contract.id}: {error}", allow_retries=False) from error
        if cells is None:
            cells = newest_cells(contract, start, config.windows, datetime.now(UTC))
        found = validate_cells(
            context, contract, cells, bigquery, harper, ledger, spark, deep=config.deep
        )
        words = {verdict.check: verdict.status.value for verdict in found.verdicts}
        context.add_output_metadata(
            {"status": found.overall.value, "cells": len(cells), "checks": words}
        )

    return check_cells


def named_cells(contract: TableContract, tags: Mapping[str, str]) -> list[Cell] | None:
    """The run's partition or its rectangle of them; None if its tags name none."""
    first = tags.get(PARTITION) or tags.get(RANGE_START)
    last = tags.get(PARTITION) or tags.get(RANGE_END)
    if first is None or last is None:
        return None
    begin, end = (Cell.parse(key, contract.window) for key in (first, last))
    return [
        Cell(window, number)
        for window in windows_between(begin.window.start, end.window.end, contract.window)
        for number in range(begin.slice, end.slice + 1)
    ]


def newest_cells(
    contract: TableContract, start: datetime, windows: int, now: datetime
) -> list[Cell]:
    """All slices of so many closed windows, up to the newest."""
    newest = newest_closed(contract, now)
    first = max(start, newest.end - windows * contract.window)
    return [
        Cell(window, number)
        for window in windows_between(first, newest.end, contract.window)
        for number in range(contract.slices)
    ]

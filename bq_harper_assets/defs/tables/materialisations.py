"""Dagster keeps a materialisation of each cell that a run has synced."""

from collections.abc import Mapping, Sequence
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    OpExecutionContext,
    TableColumn,
    TableSchema,
)

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.names import NOT_SYNCED, target_key
from bq_harper_assets.instants import instant_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.schema.version import VersionColumn
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.ledger_facts import recorded_cells
from bq_harper_assets.sync.phases import rows_per_request
from bq_harper_assets.sync.revisit.pace import WINDOWS_PER_RUN, poll_delay
from bq_harper_assets.sync.turn.report import CellReport, TurnReport


def record_done(
    context: AssetExecutionContext | OpExecutionContext,
    contract: TableContract,
    report: TurnReport,
    rows: Mapping[Cell, int],
) -> None:
    """Records the finished partitions where Dagster would call all of them failed or knows none."""
    for cell in report.cells:
        if not cell.problem:
            context.log_event(
                AssetMaterialization(
                    asset_key=target_key(contract),
                    partition=cell.cell.key,
                    metadata=cell_metadata(contract, report, cell, rows[cell.cell]),
                )
            )


def rows_held(ledger: Ledger, contract: TableContract, report: TurnReport) -> dict[Cell, int]:
    """Counts the rows that each cell holds now; a top-up has read only the newest of them."""
    held = {each.cell: each.result.written + each.result.unchanged for each in report.cells}
    topped_up = [each.cell for each in report.cells if each.mode is Mode.TOPUP]
    table = ledger.find_route(contract.id)
    if topped_up and table:
        for cell, record in recorded_cells(ledger, table, topped_up).items():
            if record.commit:
                held[cell] = record.commit.rows
    return held


def cell_metadata(
    contract: TableContract, report: TurnReport, cell: CellReport, rows: int
) -> dict[str, Any]:
    """Gives figures that Dagster plots over time; those of the run are equal in all its cells."""
    result = cell.result
    upto = instant_at(cell.upto).isoformat()
    return {
        "dagster/partition_row_count": rows,
        "dagster/column_schema": column_schema(report.columns),
        "rows_read": result.read,
        "rows_written": result.written,
        "rows_unchanged": result.unchanged,
        "rows_deleted": result.deleted,
        "rows_moved": result.moved,
        "rows_flagged": result.flagged,
        "rows_kept": result.kept,
        "rows_quarantined": result.quarantined,
        "window": f"open until {cell.cell.window.end.isoformat()}" if cell.is_open else "closed",
        "synced_upto": upto,
        "bytes_sent": result.bytes,
        "seconds_of_run": round(report.seconds, 3),
        "snapshot": report.t.isoformat(),
        "digest": result.digest,
        "mode": cell.mode.value,
        "batch": cell.batch,
        "phase": report.phase.value,
        "batch_size": rows_per_request(report.phase, contract.sync),
        "windows_per_run": WINDOWS_PER_RUN[report.phase],
        "next_poll_within_s": poll_delay(report.phase, contract.sync).total_seconds(),
        "table_action": report.table_action.value,
        "schema_version": report.schema_version,
        "requests_of_run": report.requests,
        "retries_of_run": report.retries,
        "bytes_read_of_run": report.bytes_read,
        "bytes_billed_of_run": report.bytes_billed,
        **({NOT_SYNCED: report.not_synced} if report.waiting else {}),
    }


def column_schema(columns: Sequence[VersionColumn]) -> TableSchema:
    """Lists the columns as the target stores them, with their types in the source."""
    return TableSchema(
        [
            TableColumn(
                column.name,
                column.target.type,
                f"ARRAY<{column.kind.value}>" if column.repeated else column.kind.value,
            )
            for column in columns
        ]
    )

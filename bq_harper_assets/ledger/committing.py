"""Commits: a moved cell becomes the ledger's word, or its batch is recorded as failed."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from bq_harper_assets.ledger import audit, leasing
from bq_harper_assets.ledger.columns import database_now
from bq_harper_assets.ledger.errors import ConservationBroken, LedgerConflict
from bq_harper_assets.ledger.records import (
    Batch,
    BatchState,
    CellResult,
    CellState,
    Leases,
    LogicalTable,
)
from bq_harper_assets.ledger.tables import BATCHES, QUARANTINE
from bq_harper_assets.ledger.transitions import change_cell, end_batch


def commit(
    connection: Connection, leases: Leases, done: Sequence[tuple[Batch, CellResult]]
) -> None:
    """All of them or none: leases live, batches planned under them, rows accounted for."""
    table = leases.table
    if not done:
        return
    for batch, result in done:
        _conserve(batch, result)
    slices = sorted({batch.cell.slice for batch, _ in done})
    _, now = leasing.lock_live(connection, leases, slices, "commit cells")
    recorded = _recorded(connection, leases, [batch for batch, _ in done])
    for (batch, result), planned in zip(done, recorded, strict=True):
        end_batch(
            connection,
            table,
            batch.seq,
            BatchState.APPLIED,
            ended_at=now,
            rows_read=result.read,
            rows_written=result.written,
            rows_unchanged=result.unchanged,
            rows_quarantined=result.quarantined,
            rows_deleted=result.deleted,
            bytes=result.bytes,
            seconds=result.seconds,
            digest=result.digest,
        )
        change_cell(
            connection,
            table,
            batch.cell,
            state=CellState.SYNCED,
            batch=batch.seq,
            snapshot=planned.snapshot,
            schema_version=planned.schema_version,
            rows=result.written + result.unchanged,
            digest=result.digest,
            fingerprint=planned.fingerprint,
            committed_at=now,
        )
    _replace_quarantine(connection, table, done, now)
    audit.record(connection, table, now, *(_note(batch, result) for batch, result in done))


def fail(connection: Connection, batch: Batch, error: str) -> None:
    """Needs no lease: a failed cell is trusted no more than a planned one, whoever says so."""
    table, now = batch.table, database_now(connection)
    end_batch(connection, table, batch.seq, BatchState.FAILED, ended_at=now, error=error)
    change_cell(connection, table, batch.cell, state=CellState.FAILED)
    detail = {"batch": batch.seq, "error": error}
    audit.record(connection, table, now, audit.Note("commit", str(batch.cell), "failed", detail))


def _note(batch: Batch, result: CellResult) -> audit.Note:
    detail = {
        "batch": batch.seq,
        "mode": batch.mode,
        "read": result.read,
        "quarantined": result.quarantined,
    }
    return audit.Note("commit", str(batch.cell), "ok", detail)


def _recorded(
    connection: Connection, leases: Leases, batches: Sequence[Batch]
) -> Iterator[Row[Any]]:
    """Each batch as planned, which must be under this lease: others may have written since."""
    numbers = [batch.seq for batch in batches]
    query = select(BATCHES).where(
        BATCHES.c.table_id == leases.table.id, BATCHES.c.seq.between(min(numbers), max(numbers))
    )
    planned = {row.seq: row for row in connection.execute(query)}
    for batch in batches:
        row, epoch = planned.get(batch.seq), leases.epochs[batch.cell.slice]
        place = (batch.table, batch.cell.slice, batch.cell.window_start, epoch)
        if not row or place != (leases.table, row.slice, row.window_start, row.epoch):
            raise LedgerConflict(
                f"batch {batch.seq} of {batch.table.name}, cell {batch.cell}, was not planned under"
                f" the lease that {leases.owner} holds (epoch {epoch}). Nothing was committed. Do"
                f" the cell again: bqh sync {batch.table.name}"
            )
        yield row


def _conserve(batch: Batch, result: CellResult) -> None:
    counts = (result.read, result.written, result.unchanged, result.quarantined, result.deleted)
    if result.read != result.written + result.unchanged + result.quarantined or min(counts) < 0:
        sums = (
            f"{result.read} rows read are not {result.written} written + {result.unchanged}"
            f" unchanged + {result.quarantined} quarantined"
        )
        raise ConservationBroken(batch.table.name, str(batch.cell), sums)
    if result.quarantined != len(result.rejections):
        sums = f"{result.quarantined} rows quarantined, but {len(result.rejections)} handed over"
        raise ConservationBroken(batch.table.name, str(batch.cell), sums)


def _replace_quarantine(
    connection: Connection,
    table: LogicalTable,
    done: Sequence[tuple[Batch, CellResult]],
    now: datetime,
) -> None:
    connection.execute(
        delete(QUARANTINE).where(
            QUARANTINE.c.table_id == table.id,
            QUARANTINE.c.slice == bindparam("of_slice"),
            QUARANTINE.c.window_start == bindparam("of_start"),
        ),
        [{"of_slice": batch.cell.slice, "of_start": batch.cell.window_start} for batch, _ in done],
    )
    rows = [
        {
            "table_id": table.id,
            "slice": batch.cell.slice,
            "window_start": batch.cell.window_start,
            "number": number,
            "batch": batch.seq,
            "row_id": rejection.row_id,
            "reason": rejection.reason,
            "payload": rejection.payload,
            "at": now,
        }
        for batch, result in done
        for number, rejection in enumerate(result.rejections)
    ]
    if rows:
        connection.execute(insert(QUARANTINE), rows)

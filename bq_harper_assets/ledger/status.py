"""Questions to the ledger: where each table stands. None of them locks or changes anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from bq_harper_assets.ledger.columns import database_now
from bq_harper_assets.ledger.records import (
    BatchState,
    CellKey,
    CellState,
    LogicalTable,
    Mode,
    Rejection,
)
from bq_harper_assets.ledger.tables import BATCHES, CELLS, LEASES, QUARANTINE


@dataclass(frozen=True)
class CellCommit:
    """What a cell's newest commit recorded."""

    batch: int
    t: datetime
    schema_version: int
    rows: int
    digest: str
    fingerprint: str
    committed_at: datetime


@dataclass(frozen=True)
class CellRecord:
    """A cell that some batch has named."""

    cell: CellKey
    state: CellState
    commit: CellCommit | None  # holds in the target only while the state is synced


@dataclass(frozen=True)
class BatchRecord:
    """A batch as the ledger remembers it; counts are None unless it was applied."""

    seq: int
    cell: CellKey
    mode: Mode
    state: BatchState
    t: datetime
    schema_version: int
    owner: str
    epoch: int
    run_id: str
    planned_at: datetime
    ended_at: datetime | None
    rows_read: int | None
    rows_written: int | None
    rows_unchanged: int | None
    rows_quarantined: int | None
    rows_deleted: int | None
    bytes: int | None
    seconds: float | None
    digest: str | None
    error: str | None


@dataclass(frozen=True)
class Progress:
    """What lag and phase are computed from."""

    synced_until: datetime  # every cell from the start up to here was committed
    newest_t: datetime | None
    cells: dict[CellState, int]
    rows: int
    quarantined: int


@dataclass(frozen=True)
class LeaseRecord:
    """A slice's lease as it is now."""

    slice: int
    owner: str | None
    epoch: int
    acquired_at: datetime | None
    expires_at: datetime | None
    is_live: bool
    t: datetime | None
    schema_version: int | None


@dataclass(frozen=True)
class QuarantinedRow:
    """A row that the newest commit of its cell could not write."""

    cell: CellKey
    batch: int
    rejection: Rejection
    at: datetime


def cells(
    connection: Connection,
    table: LogicalTable,
    start: datetime,
    end: datetime,
    slices: Sequence[int] | None,
) -> tuple[CellRecord, ...]:
    """Cells whose window starts in [start, end), by window and slice; none if never planned."""
    query = (
        select(CELLS)
        .where(
            CELLS.c.table_id == table.id,
            CELLS.c.window_start >= start,
            CELLS.c.window_start < end,
        )
        .order_by(CELLS.c.window_start, CELLS.c.slice)
    )
    if slices is not None:
        query = query.where(CELLS.c.slice.in_(slices))
    return tuple(
        CellRecord(
            CellKey(row.window_start, row.window_end, row.slice),
            CellState(row.state),
            None
            if row.batch is None
            else CellCommit(
                row.batch,
                row.snapshot,
                row.schema_version,
                row.rows,
                row.digest,
                row.fingerprint,
                row.committed_at,
            ),
        )
        for row in connection.execute(query)
    )


def progress(connection: Connection, table: LogicalTable, start: datetime) -> Progress:
    """Of the cells from `start` on, which is the start of the first window."""
    mine = (CELLS.c.table_id == table.id, CELLS.c.window_start >= start)
    states = connection.execute(
        select(CELLS.c.state, func.count(), func.max(CELLS.c.snapshot), func.sum(CELLS.c.rows))
        .where(*mine)
        .group_by(CELLS.c.state)
    ).all()
    quarantined = connection.execute(
        select(func.count()).where(
            QUARANTINE.c.table_id == table.id, QUARANTINE.c.window_start >= start
        )
    ).scalar_one()
    return Progress(
        synced_until=_synced_until(connection, table, start),
        newest_t=max((t for _, _, t, _ in states if t is not None), default=None),
        cells={CellState(state): count for state, count, _, _ in states},
        rows=sum(int(rows or 0) for _, _, _, rows in states),
        quarantined=quarantined,
    )


def _synced_until(connection: Connection, table: LogicalTable, start: datetime) -> datetime:
    """A cell that is being moved again still counts: repairing an old window is no lag."""
    complete = (
        select(CELLS.c.window_start, CELLS.c.window_end)
        .where(
            CELLS.c.table_id == table.id,
            CELLS.c.window_start >= start,
            CELLS.c.batch.is_not(None),
        )
        .group_by(CELLS.c.window_start, CELLS.c.window_end)
        .having(func.count() == table.facts.slices)
    ).cte("complete")
    after = complete.alias("after")
    has_first = select(complete.c.window_start).where(complete.c.window_start == start)
    if connection.execute(has_first).first() is None:
        return start
    ends: datetime = connection.execute(
        select(func.min(complete.c.window_end))
        .select_from(complete.outerjoin(after, after.c.window_start == complete.c.window_end))
        .where(after.c.window_start.is_(None))
    ).scalar_one()
    return ends


def history(
    connection: Connection, table: LogicalTable, cell: CellKey | None, limit: int
) -> tuple[BatchRecord, ...]:
    """The newest batches of the table or of one cell, newest first."""
    query = (
        select(BATCHES, CELLS.c.window_end)
        .join(CELLS)
        .where(BATCHES.c.table_id == table.id)
        .order_by(BATCHES.c.seq.desc())
        .limit(limit)
    )
    if cell is not None:
        query = query.where(
            BATCHES.c.slice == cell.slice, BATCHES.c.window_start == cell.window_start
        )
    return tuple(_batch(dict(row)) for row in connection.execute(query).mappings())


def _batch(row: dict[str, Any]) -> BatchRecord:
    cell = CellKey(row.pop("window_start"), row.pop("window_end"), row.pop("slice"))
    for unshown in ("table_id", "fingerprint"):
        row.pop(unshown)
    row["t"] = row.pop("snapshot")
    row["mode"], row["state"] = Mode(row["mode"]), BatchState(row["state"])
    return BatchRecord(cell=cell, **row)


def leases(connection: Connection, table: LogicalTable) -> tuple[LeaseRecord, ...]:
    """One per slice; live means not released and not expired by the database's clock."""
    now = database_now(connection)
    query = select(LEASES).where(LEASES.c.table_id == table.id).order_by(LEASES.c.slice)
    return tuple(
        LeaseRecord(
            row.slice,
            row.owner,
            row.epoch,
            row.acquired_at,
            row.expires_at,
            row.owner is not None and row.expires_at > now,
            row.snapshot,
            row.schema_version,
        )
        for row in connection.execute(query)
    )


def quarantined(
    connection: Connection, table: LogicalTable, cell: CellKey | None, limit: int
) -> tuple[QuarantinedRow, ...]:
    """Rows now in quarantine, of the table or of one cell."""
    query = (
        select(QUARANTINE, CELLS.c.window_end)
        .join(CELLS)
        .where(QUARANTINE.c.table_id == table.id)
        .order_by(QUARANTINE.c.window_start, QUARANTINE.c.slice, QUARANTINE.c.number)
        .limit(limit)
    )
    if cell is not None:
        query = query.where(
            QUARANTINE.c.slice == cell.slice, QUARANTINE.c.window_start == cell.window_start
        )
    return tuple(
        QuarantinedRow(
            CellKey(row.window_start, row.window_end, row.slice),
            row.batch,
            Rejection(row.row_id, row.reason, row.payload),
            row.at,
        )
        for row in connection.execute(query)
    )

"""Says in which state each table's cells, batches and leases are; nothing is locked or changed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.records import (
    BatchState,
    CellKey,
    CellState,
    LedgerRoute,
    Mode,
    Rejection,
)
from bq_harper_assets.ledger.store.cell_keys import among, cell_of, marks_of_cell, slice_and_start
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import BATCHES, CELLS, LEASES, QUARANTINE


@dataclass(frozen=True, kw_only=True)
class CellCommit:
    """A cell commit is what a cell's newest commit recorded."""

    batch: int
    t: datetime
    schema_version: int
    rows: int
    digest: str
    fingerprint: str  # counts the window up to `upto`, at T
    committed_at: datetime
    upto: datetime
    is_closed: bool  # whether it reaches the range's end
    rebased_to: int | None = None  # the later schema version that the fingerprint is computed under

    @property
    def fingerprint_version(self) -> int:
        """Gives the schema version whose columns the fingerprint counts."""
        return self.schema_version if self.rebased_to is None else self.rebased_to


@dataclass(frozen=True)
class GuardRefusal:
    """A refusal keeps what the source held when the delete guard stopped a cell's newest batch."""

    t: datetime
    schema_version: int
    fingerprint: str  # counts the window up to where the batch would have covered it, at T
    until: datetime | None = None  # when the refusal ends by itself; None if a person decides

    def is_forgotten(self, now: datetime) -> bool:
        """Says whether the guard may decide anew now, though the source is the same."""
        return self.until is not None and self.until <= now


@dataclass(frozen=True, kw_only=True)
class CellRecord:
    """A cell record describes a cell that some batch or mark has named."""

    cell: CellKey
    state: CellState
    commit: CellCommit | None  # true of the target only while the cell is clean
    marks: int
    refusal: GuardRefusal | None = None  # set while the cell is refused

    @property
    def is_clean(self) -> bool:
        """Says whether the target surely holds exactly what the cell held at its commit."""
        return self.state is CellState.SYNCED and self.marks == 0


@dataclass(frozen=True, kw_only=True)
class BatchRecord:
    """A batch record describes a batch as the ledger remembers it.

    Counts are set when the batch is applied; `deletes_intended` and `rows_held` may be set earlier.
    """

    seq: int
    cell: CellKey
    mode: Mode
    state: BatchState
    t: datetime  # when its source was pinned
    position_kind: str
    position: str
    rank: int
    upto: datetime
    since: datetime | None
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
    rows_moved: int | None
    rows_flagged: int | None
    rows_kept: int | None
    deletes_intended: int | None
    rows_held: int | None
    deletes_allowed: bool | None
    bytes: int | None
    seconds: float | None
    digest: str | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class LeaseRecord:
    """A lease record describes a slice's lease as it is now."""

    slice: int
    owner: str | None
    epoch: int
    acquired_at: datetime | None
    expires_at: datetime | None
    is_live: bool
    t: datetime | None
    schema_version: int | None


@dataclass(frozen=True, kw_only=True)
class QuarantinedRow:
    """A quarantined row is a row that the newest commit of its cell could not write."""

    cell: CellKey
    batch: int
    rejection: Rejection
    at: datetime
    number: int  # within its cell


def cells(
    connection: Connection,
    route: LedgerRoute,
    start: datetime | int,
    end: datetime | int,
    slices: Sequence[int] | None = None,
) -> tuple[CellRecord, ...]:
    """Lists the recorded cells whose range starts in [start, end), by range and slice.

    Of windows the two are instants, of key ranges their numbers.
    """
    query = (
        select(CELLS, marks_of_cell().label("marks"))
        .where(
            CELLS.c.route_id == route.id,
            CELLS.c.range_start >= start,
            CELLS.c.range_start < end,
        )
        .order_by(CELLS.c.range_start, CELLS.c.slice)
    )
    if slices is not None:
        query = query.where(CELLS.c.slice.in_(slices))
    rows = connection.execute(query).all()
    refused = [cell_of(row) for row in rows if row.state == CellState.REFUSED]
    refusals = _refusals(connection, route, refused)
    return tuple(
        CellRecord(
            cell=cell_of(row),
            state=CellState(row.state),
            commit=None
            if row.batch is None
            else CellCommit(
                batch=row.batch,
                t=row.snapshot,
                schema_version=row.schema_version,
                rows=row.rows,
                digest=row.digest,
                fingerprint=row.fingerprint,
                committed_at=row.committed_at,
                upto=row.upto,
                is_closed=micros_at(row.upto) == row.range_end,
                rebased_to=row.fingerprint_version,
            ),
            marks=row.marks,
            refusal=refusals.get(slice_and_start(row)) if row.state == CellState.REFUSED else None,
        )
        for row in rows
    )


def _refusals(
    connection: Connection, route: LedgerRoute, cells: Sequence[CellKey]
) -> dict[tuple[int, int], GuardRefusal]:
    """Gives the newest refusal of each cell, by slice and start."""
    if not cells:
        return {}
    query = (
        select(BATCHES)
        .where(among(BATCHES, route, cells), BATCHES.c.state == BatchState.REFUSED)
        .order_by(BATCHES.c.seq)
    )
    return {
        slice_and_start(row): GuardRefusal(
            row.snapshot, row.schema_version, row.fingerprint, row.refused_until
        )
        for row in connection.execute(query)
    }


def slices_committed_at_other_positions(
    connection: Connection, route: LedgerRoute, rank: int
) -> frozenset[int]:
    """Finds slices with a cell that was last committed at a position of another rank.

    Only in these can a write of this rank take a row out of a cell that does not know of it.
    """
    query = (
        select(CELLS.c.slice).where(CELLS.c.route_id == route.id, CELLS.c.rank != rank).distinct()
    )
    return frozenset(connection.execute(query).scalars())


def batch_history(
    connection: Connection, route: LedgerRoute, cell: CellKey | None = None, limit: int = 100
) -> tuple[BatchRecord, ...]:
    """Lists the newest batches of the table or of one cell, newest first."""
    query = (
        select(BATCHES)
        .where(BATCHES.c.route_id == route.id)
        .order_by(BATCHES.c.seq.desc())
        .limit(limit)
    )
    if cell is not None:
        query = query.where(BATCHES.c.slice == cell.slice, BATCHES.c.range_start == cell.start)
    return tuple(_batch(dict(row)) for row in connection.execute(query).mappings())


def _batch(row: dict[str, Any]) -> BatchRecord:
    cell = CellKey(row.pop("range_start"), row.pop("range_end"), row.pop("slice"))
    for unshown in ("route_id", "fingerprint", "refused_until"):
        row.pop(unshown)
    row["t"] = row.pop("snapshot")
    row["mode"], row["state"] = Mode(row["mode"]), BatchState(row["state"])
    return BatchRecord(cell=cell, **row)


def schema_versions_of_batches(
    connection: Connection, route: LedgerRoute, seqs: Collection[int]
) -> dict[int, int]:
    """Gives the schema version that each batch wrote under; unknown batches are left out."""
    query = select(BATCHES.c.seq, BATCHES.c.schema_version).where(
        BATCHES.c.route_id == route.id, BATCHES.c.seq.in_(seqs)
    )
    return {row.seq: row.schema_version for row in connection.execute(query)}


def leases(connection: Connection, route: LedgerRoute) -> tuple[LeaseRecord, ...]:
    """Says who has which slice; a live lease is neither released nor expired (database's clock)."""
    now = database_now(connection)
    query = select(LEASES).where(LEASES.c.route_id == route.id).order_by(LEASES.c.slice)
    return tuple(
        LeaseRecord(
            slice=row.slice,
            owner=row.owner,
            epoch=row.epoch,
            acquired_at=row.acquired_at,
            expires_at=row.expires_at,
            is_live=row.owner is not None and row.expires_at > now,
            t=row.snapshot,
            schema_version=row.schema_version,
        )
        for row in connection.execute(query)
    )


def quarantined(
    connection: Connection, route: LedgerRoute, cell: CellKey | None = None, limit: int = 1000
) -> tuple[QuarantinedRow, ...]:
    """Lists the rows that are in quarantine now, of the table or of one cell."""
    query = (
        select(QUARANTINE, CELLS.c.range_end)
        .join(CELLS)
        .where(QUARANTINE.c.route_id == route.id)
        .order_by(QUARANTINE.c.range_start, QUARANTINE.c.slice, QUARANTINE.c.number)
        .limit(limit)
    )
    if cell is not None:
        query = query.where(
            QUARANTINE.c.slice == cell.slice, QUARANTINE.c.range_start == cell.start
        )
    return tuple(
        QuarantinedRow(
            cell=cell_of(row),
            batch=row.batch,
            rejection=Rejection(row.row_id, row.reason, row.payload),
            at=row.at,
            number=row.number,
        )
        for row in connection.execute(query)
    )

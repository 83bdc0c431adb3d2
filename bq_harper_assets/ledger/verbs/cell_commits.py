"""Commits cells that were written, or records that their batches failed or were refused."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from bq_harper_assets.ledger.errors import ConservationBroken, LedgerConflict, UnknownBatches
from bq_harper_assets.ledger.records import (
    AppliedBatch,
    Batch,
    BatchState,
    CellKey,
    CellResult,
    CellState,
    Leases,
    LedgerRoute,
    Mode,
)
from bq_harper_assets.ledger.store.cell_keys import among, cell_of, slice_and_start
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import BATCHES, CELLS
from bq_harper_assets.ledger.verbs import audit, cell_marks, quarantine, slice_leases
from bq_harper_assets.ledger.verbs.transitions import change_cell, end_batch


def commit(
    connection: Connection,
    leases: Leases,
    done: Sequence[tuple[Batch, CellResult]],
    *,
    deletes_allowed: bool = False,
) -> None:
    """Commits all these cells or none.

    Leases must be live, batches planned under them, and rows accounted for. If someone allowed the
    deletes, they are not counted against later turns.
    """
    if not done:
        return
    for batch, result in done:
        _conserve(batch, result)
    slices = {batch.cell.slice for batch, _ in done}
    _, now = slice_leases.lock_live(connection, leases, slices, "commit cells")
    recorded = list(_recorded(connection, leases, [batch for batch, _ in done]))
    _commit(
        connection, leases.route, done, recorded, now, deletes_allowed=[deletes_allowed] * len(done)
    )


def recognise(
    connection: Connection, leases: Leases, applied: Sequence[AppliedBatch]
) -> tuple[int, ...]:
    """Commits batches that a transactional target has taken and their run did not record.

    The target itself says so, so it does not matter under whose lease they were planned. Batches
    that are not planned any more are left alone, as are those of slices that are not leased; the
    numbers of those committed are returned. UnknownBatches if any was planned otherwise here.
    """
    route = leases.route
    rows = _rows_of(connection, route, [batch.seq for batch in applied])
    if others := [each.seq for each in applied if not _is_planned_so(each, rows.get(each.seq))]:
        raise UnknownBatches(route.name, others)
    results = {each.seq: each.result for each in applied}
    planned = [
        row
        for row in rows.values()
        if row.seq in results and row.state == BatchState.PLANNED and row.slice in leases.slices
    ]
    if not planned:
        return ()
    slices = {row.slice for row in planned}
    _, now = slice_leases.lock_live(connection, leases, slices, "recognise batches")
    done = [(_planned_batch(route, row), results[row.seq]) for row in planned]
    for batch, result in done:
        _conserve(batch, result)
    # Whether someone allowed the deletes was recorded before they were staged.
    allowed = [bool(row.deletes_allowed) for row in planned]
    _commit(connection, route, done, planned, now, deletes_allowed=allowed)
    return tuple(row.seq for row in planned)


def fail(connection: Connection, batch: Batch, error: str) -> None:
    """Ends a batch without a commit; its cell may hold some of its rows.

    This needs no lease: a failed cell is trusted no more than a planned one, whoever reports it.
    """
    _give_up(connection, batch, BatchState.FAILED, CellState.FAILED, error)


def refuse(
    connection: Connection, batch: Batch, reason: str, until: datetime | None = None
) -> None:
    """Ends a batch that the guard stopped; its cell waits for a person, or for the time `until`."""
    _give_up(connection, batch, BatchState.REFUSED, CellState.REFUSED, reason, refused_until=until)


def _commit(
    connection: Connection,
    route: LedgerRoute,
    done: Sequence[tuple[Batch, CellResult]],
    recorded: Sequence[Row[Any]],  # each batch as it was planned
    now: datetime,
    *,
    deletes_allowed: Sequence[bool],
) -> None:
    batches = [batch for batch, _ in done]
    held = _held_rows(connection, route, [one.cell for one in batches if one.mode is Mode.TOPUP])
    for (batch, result), planned, allowed in zip(done, recorded, deletes_allowed, strict=True):
        end_batch(
            connection,
            route,
            batch.seq,
            BatchState.APPLIED,
            ended_at=now,
            rows_read=result.read,
            rows_written=result.written,
            rows_unchanged=result.unchanged,
            rows_quarantined=result.quarantined,
            rows_deleted=result.deleted,
            rows_moved=result.moved,
            rows_flagged=result.flagged,
            rows_kept=result.kept,
            rows_held=result.held,
            deletes_allowed=allowed,
            bytes=result.bytes,
            seconds=result.seconds,
            digest=result.digest,
        )
        change_cell(
            connection,
            route,
            batch.cell,
            state=CellState.SYNCED,
            batch=batch.seq,
            snapshot=planned.snapshot,
            rank=planned.rank,
            upto=planned.upto,
            schema_version=planned.schema_version,
            rows=held.get(batch.cell, 0) + result.written + result.unchanged,
            digest=result.digest,
            fingerprint=planned.fingerprint,
            fingerprint_version=None,
            committed_at=now,
        )
    cell_marks.clear(connection, route, batches)
    quarantine.record_rejections(connection, route, done, now)
    audit.record(connection, route, now, *(_note(batch, result) for batch, result in done))


def _rows_of(
    connection: Connection, route: LedgerRoute, numbers: Sequence[int]
) -> dict[int, Row[Any]]:
    """Reads what is recorded of these batches, and perhaps of some between them, by number."""
    if not numbers:
        return {}
    query = select(BATCHES).where(
        BATCHES.c.route_id == route.id, BATCHES.c.seq.between(min(numbers), max(numbers))
    )
    return {row.seq: row for row in connection.execute(query)}


def _is_planned_so(batch: AppliedBatch, row: Row[Any] | None) -> bool:
    return row is not None and (cell_of(row), row.snapshot, row.epoch, row.run_id) == (
        batch.cell,
        batch.t,
        batch.epoch,
        batch.run_id,
    )


def _planned_batch(route: LedgerRoute, row: Row[Any]) -> Batch:
    return Batch(
        route=route,
        seq=row.seq,
        cell=cell_of(row),
        mode=Mode(row.mode),
        t=row.snapshot,
        rank=row.rank,
        schema_version=row.schema_version,
        epoch=row.epoch,
        upto=row.upto,
        since=row.since,
    )


def _give_up(
    connection: Connection,
    batch: Batch,
    ending: BatchState,
    state: CellState,
    why: str,
    **values: Any,
) -> None:
    route, now = batch.route, database_now(connection)
    end_batch(connection, route, batch.seq, ending, ended_at=now, error=why, **values)
    change_cell(connection, route, batch.cell, state=state)
    detail = {"batch": batch.seq, "error": why}
    audit.record(connection, route, now, audit.Note("commit", str(batch.cell), ending, detail))


def _held_rows(
    connection: Connection, route: LedgerRoute, cells: Sequence[CellKey]
) -> dict[CellKey, int]:
    """Counts the rows of the cells before a top-up, which adds to them."""
    if not cells:
        return {}
    query = select(CELLS.c.slice, CELLS.c.range_start, CELLS.c.rows).where(
        among(CELLS, route, cells)
    )
    rows = {slice_and_start(row): row.rows for row in connection.execute(query)}
    return {cell: rows[slice_and_start(cell)] for cell in cells}


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
    """Reads each batch as it was planned; LedgerConflict if that was not under this lease.

    Under another lease others may have written the cell since.
    """
    planned = _rows_of(connection, leases.route, [batch.seq for batch in batches])
    for batch in batches:
        row, epoch = planned.get(batch.seq), leases.epochs[batch.cell.slice]
        as_planned = (
            batch.route,
            *slice_and_start(batch.cell),
            batch.mode,
            batch.t,
            batch.rank,
            batch.upto,
            epoch,
        )
        if not row or as_planned != (
            leases.route,
            *slice_and_start(row),
            row.mode,
            row.snapshot,
            row.rank,
            row.upto,
            row.epoch,
        ):
            raise LedgerConflict(
                f"batch {batch.seq} of {batch.route.name}, cell {batch.cell}, was not planned under"
                f" the lease that {leases.owner} holds (epoch {epoch}). Nothing was committed. Do"
                f" the cell again: bqh sync {batch.route.name}"
            )
        yield row


def _conserve(batch: Batch, result: CellResult) -> None:
    counts = (
        *(result.read, result.written, result.unchanged, result.quarantined),
        *(result.deleted, result.moved, result.flagged, result.kept, result.held),
    )
    if result.read != result.written + result.unchanged + result.quarantined or min(counts) < 0:
        sums = (
            f"{result.read} rows read are not {result.written} written + {result.unchanged}"
            f" unchanged + {result.quarantined} quarantined"
        )
        raise ConservationBroken(batch.route.name, str(batch.cell), sums)
    if result.quarantined != len(result.rejections):
        sums = f"{result.quarantined} rows quarantined, but {len(result.rejections)} handed over"
        raise ConservationBroken(batch.route.name, str(batch.cell), sums)

"""Plans batches: one transaction decides, before any write, what each cell's batch will do."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.errors import PlanRefused
from bq_harper_assets.ledger.position import InstantPosition, Position
from bq_harper_assets.ledger.records import (
    Batch,
    BatchState,
    CellKey,
    CellState,
    Leases,
    LedgerRoute,
    Mode,
    Wanted,
)
from bq_harper_assets.ledger.store.cell_keys import among, marks_of_cell, misplaced, slice_and_start
from bq_harper_assets.ledger.store.tables import BATCHES, CELLS, ROUTES
from bq_harper_assets.ledger.verbs import audit, positions, schema_versions, slice_leases
from bq_harper_assets.ledger.verbs.transitions import change_cell, end_batch


def plan(
    connection: Connection,
    leases: Leases,
    t: datetime,
    schema_version: int,
    wanted: Sequence[Wanted],
    run_id: str,
    position: Position | None = None,
) -> tuple[Batch, ...]:
    """Plans a batch for each cell, with the mode it may have; PlanRefused if nothing is planned.

    It must be called before the first write is sent. The batches come in the order of `wanted`.
    Without a position of its own the source is at `t`, the instant at which it was pinned.
    """
    route, position = leases.route, position or InstantPosition(t)
    if refusals := list(_unfit(connection, leases, wanted)):
        raise PlanRefused(route.name, "; ".join(refusals))
    slices = sorted({want.cell.slice for want in wanted})
    rows, now = slice_leases.lock_live(connection, leases, slices, "plan batches")
    if schema_versions.find(connection, route, schema_version) is None:
        raise PlanRefused(route.name, f"there is no schema version {schema_version}")
    rank = positions.rank_of(connection, route, position, rows)
    if refusals := list(_backward(connection, route, rows, position, rank, schema_version)):
        raise PlanRefused(route.name, "; ".join(refusals))
    cells = [want.cell for want in wanted]
    known = _known(connection, route, cells)
    if refusals := list(_shrinking(known, wanted)):
        raise PlanRefused(route.name, "; ".join(refusals))
    for row in rows:
        slice_leases.remember(connection, route, row, t, position, rank, schema_version)
    numbers = _next_batches(connection, route, len(wanted))
    _supersede(connection, route, cells, numbers, now)
    _claim(connection, route, cells, known)
    batches = []
    for seq, want in zip(numbers, wanted, strict=True):
        mode, epoch = _mode(want, known.get(want.cell)), leases.epochs[want.cell.slice]
        since = want.since if mode is Mode.TOPUP else None
        batches.append(
            Batch(
                route=route,
                seq=seq,
                cell=want.cell,
                mode=mode,
                t=t,
                rank=rank,
                schema_version=schema_version,
                epoch=epoch,
                upto=want.end,
                since=since,
            )
        )
    connection.execute(
        insert(BATCHES),
        [
            {
                "route_id": route.id,
                "seq": batch.seq,
                "slice": batch.cell.slice,
                "range_start": batch.cell.start,
                "range_end": batch.cell.end,
                "snapshot": t,
                "position_kind": position.kind,
                "position": position.text,
                "rank": rank,
                "upto": batch.upto,
                "since": batch.since,
                "schema_version": schema_version,
                "owner": leases.owner,
                "epoch": batch.epoch,
                "run_id": run_id,
                "mode": batch.mode,
                "state": BatchState.PLANNED,
                "fingerprint": want.fingerprint,
                "planned_at": now,
            }
            for batch, want in zip(batches, wanted, strict=True)
        ],
    )
    subject = f"batches {batches[0].seq} to {batches[-1].seq}"
    detail = {"owner": leases.owner, "run_id": run_id, "t": t.isoformat(), "slices": slices}
    audit.record(connection, route, now, audit.Note("plan", subject, "planned", detail))
    return tuple(batches)


def _unfit(connection: Connection, leases: Leases, wanted: Sequence[Wanted]) -> Iterator[str]:
    if not wanted:
        yield "no cells were named"
    named = Counter(want.cell for want in wanted)
    for cell, times in named.items():
        if times > 1:
            yield f"cell {cell} is named {times} times"
    yield from misplaced(connection, leases, named)
    for want in wanted:
        # A key range has no point inside: it is moved whole.
        if not want.cell.start < micros_at(want.end) <= want.cell.end:
            yield f"{want.end} is not a point of cell {want.cell} up to which it can be moved"


def _known(
    connection: Connection, route: LedgerRoute, cells: Sequence[CellKey]
) -> dict[CellKey, Row[Any]]:
    """Finds the cells that an earlier batch or mark named, in whatever state."""
    query = select(CELLS, marks_of_cell().label("marks")).where(among(CELLS, route, cells))
    rows = {slice_and_start(row): row for row in connection.execute(query)}
    return {cell: rows[slice_and_start(cell)] for cell in cells if slice_and_start(cell) in rows}


def _shrinking(known: Mapping[CellKey, Row[Any]], wanted: Sequence[Wanted]) -> Iterator[str]:
    for want in wanted:
        row = known.get(want.cell)
        if row is not None and row.upto is not None and row.upto > want.end:
            yield f"cell {want.cell} was committed up to {row.upto} before, not {want.end}"


def _mode(want: Wanted, row: Row[Any] | None) -> Mode:
    if row is None:
        return Mode.RECONCILE if want.mode is Mode.TOPUP else want.mode
    if (
        want.mode is Mode.TOPUP
        and row.state == CellState.SYNCED
        and row.marks == 0
        and row.upto == want.since
        and micros_at(want.end) < row.range_end  # a window that closes is always reconciled
    ):
        return Mode.TOPUP
    return Mode.RECONCILE


def _backward(
    connection: Connection,
    route: LedgerRoute,
    rows: Sequence[Row[Any]],
    position: Position,
    rank: int,
    schema_version: int,
) -> Iterator[str]:
    for row in rows:
        if row.rank is None:
            continue
        before = f"slice {row.slice} was planned before"
        newest = row.position or row.snapshot
        if rank < row.rank:
            yield f"{before} at the later position {newest}, not {position.text}"
        if schema_version < row.schema_version:
            yield f"{before} under schema version {row.schema_version}, not {schema_version}"
        if rank != row.rank and (count := _open_batches(connection, route, row)):
            yield (
                f"{before} by this very lease at {newest}, and {count} of those batches are"
                " still being moved; commit or fail them before the next position"
            )


def _open_batches(connection: Connection, route: LedgerRoute, lease: Row[Any]) -> int:
    query = select(func.count()).where(
        BATCHES.c.route_id == route.id,
        BATCHES.c.slice == lease.slice,
        BATCHES.c.epoch == lease.epoch,
        BATCHES.c.state == BatchState.PLANNED,
    )
    return connection.execute(query).scalar_one()


def _next_batches(connection: Connection, route: LedgerRoute, count: int) -> range:
    mine = ROUTES.c.id == route.id
    last_batch = ROUTES.c.last_batch
    connection.execute(update(ROUTES).where(mine).values(last_batch=last_batch + count))
    last = connection.execute(select(last_batch).where(mine)).scalar_one()
    return range(last - count + 1, last + 1)


def _supersede(
    connection: Connection,
    route: LedgerRoute,
    cells: Sequence[CellKey],
    numbers: Sequence[int],
    now: datetime,
) -> None:
    """Fails batches that a dead run, or this one, left planned in these cells: none can commit."""
    successors = dict(zip(cells, numbers, strict=True))
    by_slice_and_start = {slice_and_start(cell): cell for cell in cells}
    left = select(BATCHES).where(
        among(BATCHES, route, cells), BATCHES.c.state == BatchState.PLANNED
    )
    for row in connection.execute(left).all():
        cell = by_slice_and_start.get(slice_and_start(row))
        if cell is not None:
            heir = f"batch {successors[cell]} took its cell"
            error = f"left planned by {row.owner} (epoch {row.epoch}); {heir}"
            end_batch(connection, route, row.seq, BatchState.FAILED, ended_at=now, error=error)


def _claim(
    connection: Connection,
    route: LedgerRoute,
    cells: Sequence[CellKey],
    known: Mapping[CellKey, Row[Any]],
) -> None:
    for cell in sorted(known):
        change_cell(connection, route, cell, state=CellState.PLANNED)
    if fresh := [cell for cell in cells if cell not in known]:
        rows = [
            {
                "route_id": route.id,
                "slice": cell.slice,
                "range_start": cell.start,
                "range_end": cell.end,
                "state": CellState.PLANNED,
            }
            for cell in fresh
        ]
        connection.execute(insert(CELLS), rows)

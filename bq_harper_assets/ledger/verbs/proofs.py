"""Records what the newest proof of each cell found, and counts this for the whole table.

A finding counts while the batch that was compared is the cell's newest commit and the cell is
clean: a cell that is synced again or marked has to be proved again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, case, delete, func, insert, select

from bq_harper_assets.ledger.records import CellKey, CellState, LedgerRoute
from bq_harper_assets.ledger.store.cell_keys import cell_of, marks_of_cell, slice_and_start
from bq_harper_assets.ledger.store.columns import Instant, database_now
from bq_harper_assets.ledger.store.tables import CELLS, PROOFS
from bq_harper_assets.ledger.verbs import registry

_DELETE = delete(PROOFS).where(
    PROOFS.c.route_id == bindparam("of_route"),
    PROOFS.c.slice == bindparam("of_slice"),
    PROOFS.c.range_start == bindparam("of_start"),
)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A judgement is what a proof found in one cell."""

    cell: CellKey
    batch: int  # the batch whose rows were compared
    status: str
    deep: bool  # whether all values were compared, not stored hashes
    source_changed: bool  # whether the source changed since the snapshot of the batch


@dataclass(frozen=True, kw_only=True)
class ProvedCells:
    """Proved cells are a number of committed cells of which the same is known."""

    cells: int
    is_clean: bool
    is_closed: bool
    status: str | None  # None if they were not proved since their sync
    deep: bool
    source_changed: bool
    oldest: datetime  # the oldest snapshot of their commits
    newest: datetime


def record_proofs(connection: Connection, route: LedgerRoute, judged: Sequence[Judged]) -> None:
    """Records what proofs found, which counts until their cells are synced again.

    The newest proof counts; a quick proof that agrees with a deep one of the same batch adds
    nothing. The route's row is locked, so that two proofs of one cell are not recorded at once.
    """
    if not judged:
        return
    registry.lock_route(connection, route)
    now = database_now(connection)
    known = {slice_and_start(row): row for row in connection.execute(_around(route, judged))}
    rows = []
    for each in judged:
        before = known.get(slice_and_start(each.cell))
        was_deep = before is not None and before.deep
        agrees = before is not None and (before.batch, before.status) == (each.batch, each.status)
        rows.append(
            {
                "route_id": route.id,
                "slice": each.cell.slice,
                "range_start": each.cell.start,
                "batch": each.batch,
                "status": each.status,
                "deep": each.deep or (agrees and was_deep),
                "source_changed": each.source_changed,
                "at": now,
            }
        )
    places = [
        {"of_route": route.id, "of_slice": row["slice"], "of_start": row["range_start"]}
        for row in rows
    ]
    connection.execute(_DELETE, places)
    connection.execute(insert(PROOFS), rows)


def _around(route: LedgerRoute, judged: Sequence[Judged]) -> Select[Any]:
    starts = [each.cell.start for each in judged]
    return select(PROOFS).where(
        PROOFS.c.route_id == route.id, PROOFS.c.range_start.between(min(starts), max(starts))
    )


def counted(connection: Connection, route: LedgerRoute) -> tuple[ProvedCells, ...]:
    """Counts all committed cells of the table by what their newest proofs found, in one query."""
    alike = _current(route).subquery()
    kinds = [alike.c[name] for name in ("clean", "closed", "status", "deep", "source_changed")]
    query = select(
        func.count().label("cells"),
        *kinds,
        func.min(alike.c.snapshot, type_=Instant).label("oldest"),
        func.max(alike.c.snapshot, type_=Instant).label("newest"),
    ).group_by(*kinds)
    return tuple(
        ProvedCells(
            cells=row.cells,
            is_clean=bool(row.clean),
            is_closed=bool(row.closed),
            status=row.status,
            deep=bool(row.deep),
            source_changed=bool(row.source_changed),
            oldest=row.oldest,
            newest=row.newest,
        )
        for row in connection.execute(query)
    )


def cells_with(
    connection: Connection, route: LedgerRoute, statuses: Collection[str], limit: int
) -> tuple[CellKey, ...]:
    """Lists the first clean cells whose newest proof found one of these statuses."""
    found = _current(route).subquery()
    query = (
        select(found.c.range_start, found.c.range_end, found.c.slice)
        .where(found.c.clean == 1, found.c.status.in_(statuses))
        .order_by(found.c.range_start, found.c.slice)
        .limit(limit)
    )
    return tuple(map(cell_of, connection.execute(query)))


def _current(route: LedgerRoute) -> Select[Any]:
    """Selects each committed cell with the finding that counts; NULL where there is none."""
    is_clean = and_(CELLS.c.state == CellState.SYNCED, marks_of_cell() == 0)
    here = and_(
        PROOFS.c.route_id == CELLS.c.route_id,
        PROOFS.c.slice == CELLS.c.slice,
        PROOFS.c.range_start == CELLS.c.range_start,
        PROOFS.c.batch == CELLS.c.batch,
    )
    return (
        select(
            *(CELLS.c.range_start, CELLS.c.range_end, CELLS.c.slice, CELLS.c.snapshot),
            case((is_clean, 1), else_=0).label("clean"),
            case((CELLS.c.upto == CELLS.c.range_end, 1), else_=0).label("closed"),
            *(PROOFS.c.status, PROOFS.c.deep, PROOFS.c.source_changed),
        )
        .outerjoin(PROOFS, here)
        .where(CELLS.c.route_id == route.id, CELLS.c.batch.is_not(None))
    )

"""Changes the number of slices: rows change their cells, so that all cells are reconciled."""

from datetime import datetime

from sqlalchemy import Connection, delete, insert, literal, select, update

from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.records import BatchState, CellState, LedgerRoute
from bq_harper_assets.ledger.store.tables import BATCHES, CELLS, MARKS, QUARANTINE, ROUTES
from bq_harper_assets.ledger.verbs import audit, registry, slice_leases

NO_COMMIT = dict.fromkeys(
    (
        *("batch", "snapshot", "rank", "upto", "schema_version", "rows", "digest"),
        *("fingerprint", "committed_at", "fingerprint_version"),
    )
)


def change_slices(connection: Connection, route: LedgerRoute, slices: int) -> LedgerRoute:
    """Gives the table that many slices, and leaves all its cells to be reconciled.

    LeaseHeld while anyone may be writing one of its cells.
    """
    if slices < 1:
        raise LedgerConflict(
            f"{route.name} cannot have {slices} slices. Nothing was changed. Give it at least one:"
            f" bqh slices set {route.name} 1"
        )
    rows, now = slice_leases.lock_all(
        connection, route, then=f"bqh slices set {route.name} {slices}"
    )
    if len(rows) == slices:
        return registry.load_route(connection, route.id)
    error = "left planned; then the table was given another number of slices"
    end_batches(connection, route, now, error)
    connection.execute(delete(MARKS).where(MARKS.c.route_id == route.id))
    _remake_cells(connection, route, slices)
    slice_leases.remake(connection, route, rows, slices)
    connection.execute(update(ROUTES).where(ROUTES.c.id == route.id).values(slices=slices))
    note = audit.Note("slices", f"{len(rows)} to {slices}", "changed", {})
    audit.record(connection, route, now, note)
    return registry.load_route(connection, route.id)


def end_batches(connection: Connection, route: LedgerRoute, now: datetime, error: str) -> None:
    """Ends the batches that are still planned though their runs are over."""
    left = (BATCHES.c.route_id == route.id, BATCHES.c.state == BatchState.PLANNED)
    connection.execute(
        update(BATCHES).where(*left).values(state=BatchState.FAILED, ended_at=now, error=error)
    )


def _remake_cells(connection: Connection, route: LedgerRoute, slices: int) -> None:
    mine = CELLS.c.route_id == route.id
    # New cells are made before old ones are removed, so that every known range stays known.
    for number in range(slices):
        known = select(CELLS.c.range_start).where(mine, CELLS.c.slice == number)
        ranges = (
            select(
                CELLS.c.route_id,
                literal(number),
                CELLS.c.range_start,
                CELLS.c.range_end,
                literal(CellState.TOUCHED.value),
            )
            .where(mine, CELLS.c.range_start.not_in(known))
            .distinct()
        )
        columns = ["route_id", "slice", "range_start", "range_end", "state"]
        connection.execute(insert(CELLS).from_select(columns, ranges))
    connection.execute(update(CELLS).where(mine).values(state=CellState.TOUCHED, **NO_COMMIT))
    for rows in (QUARANTINE, CELLS):
        connection.execute(delete(rows).where(rows.c.route_id == route.id, rows.c.slice >= slices))

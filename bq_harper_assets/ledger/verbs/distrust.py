"""Distrusts all that was recorded of a table's cells, so that each is compared again."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, select, update

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.records import CellState, LedgerRoute
from bq_harper_assets.ledger.store.database import insert_into
from bq_harper_assets.ledger.store.tables import CELLS, MARKS, ROUTES
from bq_harper_assets.ledger.verbs import audit, positions, slice_leases
from bq_harper_assets.ledger.verbs.slice_counts import NO_COMMIT, end_batches

_AT_ONCE = 5_000


def distrust(
    connection: Connection,
    route: LedgerRoute,
    starts: Sequence[datetime],
    *,
    epoch: int,
    batch: int,
) -> None:
    """Makes all known cells, and those of windows that begin at `starts`, ones that may hold rows.

    The next turn may be at any position of the source.

    Epochs and batches continue after `epoch` and `batch`, which others may have used. LeaseHeld
    while anyone may be writing a cell.
    """
    rows, now = slice_leases.lock_all(connection, route, then=f"bqh reconcile {route.name}")
    end_batches(connection, route, now, "left planned; then every cell was to be compared")
    connection.execute(delete(MARKS).where(MARKS.c.route_id == route.id))
    _touch(connection, route, starts)
    slice_leases.remake(connection, route, rows, route.facts.slices, beyond=epoch)
    positions.forget(connection, route)
    mine = ROUTES.c.id == route.id
    last = connection.execute(select(ROUTES.c.last_batch).where(mine)).scalar_one()
    connection.execute(update(ROUTES).where(mine).values(last_batch=max(int(last), batch)))
    detail = {"epoch": epoch, "batch": batch}
    audit.record(connection, route, now, audit.Note("reconcile", route.name, "asked for", detail))


def _touch(connection: Connection, route: LedgerRoute, starts: Sequence[datetime]) -> None:
    """Records all these cells as touched: only a cell without a record may be copied (rule 9)."""
    connection.execute(
        update(CELLS)
        .where(CELLS.c.route_id == route.id)
        .values(state=CellState.TOUCHED, **NO_COMMIT)
    )
    fresh = [
        {
            "route_id": route.id,
            "slice": number,
            "range_start": start,
            "range_end": start + route.facts.step,
            "state": CellState.TOUCHED,
        }
        for start in map(micros_at, starts)
        for number in range(route.facts.slices)
    ]
    statement = insert_into(connection, CELLS).on_conflict_do_nothing()
    for first in range(0, len(fresh), _AT_ONCE):
        connection.execute(statement, fresh[first : first + _AT_ONCE])

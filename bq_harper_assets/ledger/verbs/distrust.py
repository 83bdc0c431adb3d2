"""Distrusts all that was recorded of a table's cells, so that each is compared again."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, select, update

from bq_harper_assets.ledger.records import CellState, LogicalTable
from bq_harper_assets.ledger.store.database import insert_into
from bq_harper_assets.ledger.store.tables import CELLS, LOGICAL_TABLES, MARKS
from bq_harper_assets.ledger.verbs import audit, positions, slice_leases
from bq_harper_assets.ledger.verbs.slice_counts import NO_COMMIT, end_batches

_AT_ONCE = 5_000


def distrust(
    connection: Connection,
    table: LogicalTable,
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
    rows, now = slice_leases.lock_all(connection, table, then=f"bqh reconcile {table.name}")
    end_batches(connection, table, now, "left planned; then every cell was to be compared")
    connection.execute(delete(MARKS).where(MARKS.c.table_id == table.id))
    _touch(connection, table, starts)
    slice_leases.remake(connection, table, rows, table.facts.slices, beyond=epoch)
    positions.forget(connection, table)
    mine = LOGICAL_TABLES.c.id == table.id
    last = connection.execute(select(LOGICAL_TABLES.c.last_batch).where(mine)).scalar_one()
    connection.execute(update(LOGICAL_TABLES).where(mine).values(last_batch=max(int(last), batch)))
    detail = {"epoch": epoch, "batch": batch}
    audit.record(connection, table, now, audit.Note("reconcile", table.name, "asked for", detail))


def _touch(connection: Connection, table: LogicalTable, starts: Sequence[datetime]) -> None:
    """Records all these cells as touched: only a cell without a record may be copied (rule 9)."""
    connection.execute(
        update(CELLS)
        .where(CELLS.c.table_id == table.id)
        .values(state=CellState.TOUCHED, **NO_COMMIT)
    )
    fresh = [
        {
            "table_id": table.id,
            "slice": number,
            "window_start": start,
            "window_end": start + table.facts.window,
            "state": CellState.TOUCHED,
        }
        for start in starts
        for number in range(table.facts.slices)
    ]
    statement = insert_into(connection, CELLS).on_conflict_do_nothing()
    for first in range(0, len(fresh), _AT_ONCE):
        connection.execute(statement, fresh[first : first + _AT_ONCE])

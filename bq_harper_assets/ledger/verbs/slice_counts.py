"""Changes the number of slices: rows change their cells, so that all cells are reconciled."""

from datetime import datetime

from sqlalchemy import Connection, delete, insert, literal, select, update

from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.records import BatchState, CellState, LogicalTable
from bq_harper_assets.ledger.store.tables import BATCHES, CELLS, LOGICAL_TABLES, MARKS, QUARANTINE
from bq_harper_assets.ledger.verbs import audit, registry, slice_leases

NO_COMMIT = dict.fromkeys(
    (
        *("batch", "snapshot", "rank", "upto", "schema_version", "rows", "digest"),
        *("fingerprint", "committed_at", "fingerprint_version"),
    )
)


def change_slices(connection: Connection, table: LogicalTable, slices: int) -> LogicalTable:
    """Gives the table that many slices, and leaves all its cells to be reconciled.

    LeaseHeld while anyone may be writing one of its cells.
    """
    if slices < 1:
        raise LedgerConflict(
            f"{table.name} cannot have {slices} slices. Nothing was changed. Give it at least one:"
            f" bqh slices set {table.name} 1"
        )
    rows, now = slice_leases.lock_all(
        connection, table, then=f"bqh slices set {table.name} {slices}"
    )
    if len(rows) == slices:
        return registry.load_table(connection, table.id)
    error = "left planned; then the table was given another number of slices"
    end_batches(connection, table, now, error)
    connection.execute(delete(MARKS).where(MARKS.c.table_id == table.id))
    _remake_cells(connection, table, slices)
    slice_leases.remake(connection, table, rows, slices)
    connection.execute(
        update(LOGICAL_TABLES).where(LOGICAL_TABLES.c.id == table.id).values(slices=slices)
    )
    note = audit.Note("slices", f"{len(rows)} to {slices}", "changed", {})
    audit.record(connection, table, now, note)
    return registry.load_table(connection, table.id)


def end_batches(connection: Connection, table: LogicalTable, now: datetime, error: str) -> None:
    """Ends the batches that are still planned though their runs are over."""
    left = (BATCHES.c.table_id == table.id, BATCHES.c.state == BatchState.PLANNED)
    connection.execute(
        update(BATCHES).where(*left).values(state=BatchState.FAILED, ended_at=now, error=error)
    )


def _remake_cells(connection: Connection, table: LogicalTable, slices: int) -> None:
    mine = CELLS.c.table_id == table.id
    # New cells are made before old ones are removed, so that every known window stays known.
    for number in range(slices):
        known = select(CELLS.c.window_start).where(mine, CELLS.c.slice == number)
        windows = (
            select(
                CELLS.c.table_id,
                literal(number),
                CELLS.c.window_start,
                CELLS.c.window_end,
                literal(CellState.TOUCHED.value),
            )
            .where(mine, CELLS.c.window_start.not_in(known))
            .distinct()
        )
        columns = ["table_id", "slice", "window_start", "window_end", "state"]
        connection.execute(insert(CELLS).from_select(columns, windows))
    connection.execute(update(CELLS).where(mine).values(state=CellState.TOUCHED, **NO_COMMIT))
    for rows in (QUARANTINE, CELLS):
        connection.execute(delete(rows).where(rows.c.table_id == table.id, rows.c.slice >= slices))

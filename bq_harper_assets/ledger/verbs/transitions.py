"""Changes a batch or its cell by compare-and-set: each step checks that it changed one row."""

from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.records import BatchState, CellKey, LedgerRoute
from bq_harper_assets.ledger.store.tables import BATCHES, CELLS

# The statements are made once: for many cells, making them would cost more than running them.
_THIS_BATCH = (
    BATCHES.c.route_id == bindparam("of_route"),
    BATCHES.c.seq == bindparam("of_seq"),
)
_CHANGE_BATCH = update(BATCHES).where(*_THIS_BATCH, BATCHES.c.state == BatchState.PLANNED)
_CHANGE_CELL = update(CELLS).where(
    CELLS.c.route_id == bindparam("of_route"),
    CELLS.c.slice == bindparam("of_slice"),
    CELLS.c.range_start == bindparam("of_start"),
)


def end_batch(
    connection: Connection, route: LedgerRoute, seq: int, state: BatchState, **values: Any
) -> None:
    """Takes a batch from planned to its last state, once."""
    change_batch(connection, route, seq, state=state, **values)


def change_batch(connection: Connection, route: LedgerRoute, seq: int, **values: Any) -> None:
    """Changes a batch that is still planned."""
    batch = {"of_route": route.id, "of_seq": seq}
    changed = connection.execute(_CHANGE_BATCH, {**batch, **values})
    if changed.rowcount != 1:
        found = connection.execute(select(BATCHES).where(*_THIS_BATCH), batch).one_or_none()
        if found is None:
            what = "was never planned"
        else:
            why = f": {found.error}" if found.error else ""
            what = f"of {found.owner} (epoch {found.epoch}) is {found.state} already{why}"
        raise LedgerConflict(
            f"batch {seq} of {route.name} {what}. Nothing was changed by this step. See where the"
            f" table stands with: bqh status {route.name}"
        )


def change_cell(connection: Connection, route: LedgerRoute, cell: CellKey, **values: Any) -> None:
    """Changes a cell that a plan has made."""
    key = {"of_route": route.id, "of_slice": cell.slice, "of_start": cell.start}
    changed = connection.execute(_CHANGE_CELL, {**key, **values})
    if changed.rowcount != 1:
        raise LedgerConflict(
            f"no batch of {route.name} was ever planned for cell {cell}. Nothing was changed by"
            f" this step. See where the table stands with: bqh status {route.name}"
        )

"""Gives the ledger's facts about a table that can be compared with Harper's own copies."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from bq_harper_assets.ledger.records import CellState, LedgerRoute
from bq_harper_assets.ledger.store.cell_keys import marks_of_cell
from bq_harper_assets.ledger.store.tables import CELLS, LEASES, ROUTES


@dataclass(frozen=True)
class Mirrored:
    """A mirrored lease is what Harper's copy of one slice's lease was last known to say."""

    slice: int
    epoch: int
    batch: int


@dataclass(frozen=True)
class Newest:
    """The newest epochs and batch say how far the ledger itself has come."""

    epochs: dict[int, int]  # the epoch of each slice
    batch: int  # the newest batch of the table
    has_cells: bool  # whether any batch or mark ever named a cell
    has_commits: bool


def copies_known(connection: Connection, route: LedgerRoute) -> tuple[Mirrored, ...]:
    """Gives what the target's copies of leases must say at least, for slices with a known copy."""
    query = select(LEASES).where(
        LEASES.c.route_id == route.id, LEASES.c.mirrored_epoch.is_not(None)
    )
    return tuple(
        Mirrored(row.slice, row.mirrored_epoch, row.mirrored_batch or 0)
        for row in connection.execute(query.order_by(LEASES.c.slice))
    )


def newest_of(connection: Connection, route: LedgerRoute) -> Newest:
    """Gives the most that the target's copies of leases can say."""
    epochs = select(LEASES.c.slice, LEASES.c.epoch).where(LEASES.c.route_id == route.id)
    batch = select(ROUTES.c.last_batch).where(ROUTES.c.id == route.id)
    mine = select(CELLS.c.slice).where(CELLS.c.route_id == route.id).limit(1)
    return Newest(
        {row.slice: row.epoch for row in connection.execute(epochs)},
        connection.execute(batch).scalar_one_or_none() or 0,
        connection.execute(mine).first() is not None,
        connection.execute(mine.where(CELLS.c.batch.is_not(None))).first() is not None,
    )


def newest_commit_of(connection: Connection, route: LedgerRoute) -> int:
    """Gives the newest batch that a cell is committed by; 0 if none is committed."""
    query = select(func.max(CELLS.c.batch)).where(CELLS.c.route_id == route.id)
    return connection.execute(query).scalar_one() or 0


def rows_surely_held(connection: Connection, route: LedgerRoute) -> int:
    """Counts the rows that the target holds in synced cells without marks."""
    cells = (
        select(CELLS.c.rows, marks_of_cell().label("marks"))
        .where(CELLS.c.route_id == route.id, CELLS.c.state == CellState.SYNCED)
        .subquery()
    )
    query = select(func.coalesce(func.sum(cells.c.rows), 0)).where(cells.c.marks == 0)
    rows: int = connection.execute(query).scalar_one()
    return int(rows)

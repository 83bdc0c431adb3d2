"""Finds planned batches and leases of runs that may have ended without ending them."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from bq_harper_assets.ledger.records import BatchState, CellKey, LedgerRoute
from bq_harper_assets.ledger.store.cell_keys import cell_of
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import BATCHES, LEASES


@dataclass(frozen=True)
class LeftOver:
    """A left-over is what a run has of a table: cells planned and not ended, or a lease."""

    run_id: str
    cells: tuple[CellKey, ...]
    planned_at: datetime | None
    held_until: datetime | None  # None if it holds no lease


def left_over(connection: Connection, route: LedgerRoute) -> tuple[LeftOver, ...]:
    """Lists what each run has planned and not ended, or leases: it is at work, or it died."""
    planned = (
        select(BATCHES)
        .where(BATCHES.c.route_id == route.id, BATCHES.c.state == BatchState.PLANNED)
        .order_by(BATCHES.c.seq)
    )
    cells: dict[str, list[CellKey]] = defaultdict(list)
    planned_at: dict[str, datetime] = {}
    for row in connection.execute(planned):
        cells[row.run_id].append(cell_of(row))
        planned_at[row.run_id] = row.planned_at
    held = _held(connection, route)
    return tuple(
        LeftOver(run_id, tuple(cells[run_id]), planned_at.get(run_id), held.get(run_id))
        for run_id in dict.fromkeys([*planned_at, *held])
    )


def _held(connection: Connection, route: LedgerRoute) -> dict[str, datetime]:
    """Says until when each owner has a lease of the table that has not expired."""
    until = func.max(LEASES.c.expires_at)
    query = (
        select(LEASES.c.owner, until)
        .where(
            LEASES.c.route_id == route.id,
            LEASES.c.owner.is_not(None),
            LEASES.c.expires_at > database_now(connection),
        )
        .group_by(LEASES.c.owner)
    )
    return {owner: moment for owner, moment in connection.execute(query)}

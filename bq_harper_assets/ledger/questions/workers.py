"""Says which runs are at work on a table, and which were when their leases ran out."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, func, select

from bq_harper_assets.ledger.records import BatchState, LedgerRoute
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import BATCHES, LEASES


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker is a run that has not released its leases."""

    owner: str
    slices: tuple[int, ...]
    since: datetime
    until: datetime  # its leases end then, unless it renews them
    is_live: bool
    cells: int  # cells planned under these leases
    left: int  # of these cells, those neither committed nor failed


def workers(connection: Connection, route: LedgerRoute) -> tuple[Worker, ...]:
    """Lists the runs that hold leases or let them run out, with the cells planned under these.

    A live run's leases have not expired by the database's clock.
    """
    now = database_now(connection)
    of_lease = (
        (BATCHES.c.route_id == LEASES.c.route_id)
        & (BATCHES.c.slice == LEASES.c.slice)
        & (BATCHES.c.epoch == LEASES.c.epoch)
        & (BATCHES.c.owner == LEASES.c.owner)
    )
    is_left = case((BATCHES.c.state == BatchState.PLANNED, 1), else_=0)
    query = (
        select(
            LEASES.c.owner,
            LEASES.c.slice,
            LEASES.c.acquired_at,
            LEASES.c.expires_at,
            func.count(BATCHES.c.seq).label("cells"),
            func.coalesce(func.sum(is_left), 0).label("left"),
        )
        .select_from(LEASES.outerjoin(BATCHES, of_lease))
        .where(LEASES.c.route_id == route.id, LEASES.c.owner.is_not(None))
        .group_by(LEASES.c.owner, LEASES.c.slice, LEASES.c.acquired_at, LEASES.c.expires_at)
        .order_by(LEASES.c.owner, LEASES.c.slice)
    )
    by_owner: dict[tuple[str, bool], list[tuple[int, datetime, datetime, int, int]]] = {}
    for row in connection.execute(query):
        found = (row.slice, row.acquired_at, row.expires_at, row.cells, int(row.left))
        by_owner.setdefault((row.owner, bool(row.expires_at > now)), []).append(found)
    return tuple(
        Worker(
            owner=owner,
            slices=tuple(each[0] for each in held),
            since=min(each[1] for each in held),
            until=max(each[2] for each in held),
            is_live=is_live,
            cells=sum(each[3] for each in held),
            left=sum(each[4] for each in held),
        )
        for (owner, is_live), held in by_owner.items()
    )

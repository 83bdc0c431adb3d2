"""Ranks positions: whatever must not go back is ordered by rank, in Python and in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select, update

from bq_harper_assets.ledger.errors import PlanRefused, PositionsNotComparable
from bq_harper_assets.ledger.position import Position, PositionOrder
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.store.tables import LEASES, ROUTES
from bq_harper_assets.ledger.verbs import registry


def rank_of(
    connection: Connection, route: LedgerRoute, position: Position, leases: Sequence[Row[Any]]
) -> int:
    """Ranks a position among those of the route, and keeps it if it is the newest.

    A position whose order is known beforehand brings its rank. Any other is compared with the
    newest of the route, unless it is the one that these locked leases were planned at. One before
    the newest is refused, and PositionsNotComparable stops one that is neither.
    """
    if position.rank is None and (known := _rank_of_leases(position, leases)) is not None:
        return known
    # Turns on different slices are ranked one after the other.
    registry.lock_route(connection, route)
    mine = ROUTES.c.id == route.id
    newest = connection.execute(select(ROUTES).where(mine)).one()
    if newest.position_kind not in (None, position.kind):
        raise _not_comparable(route, newest, position)
    rank = _next_rank(route, newest, position) if position.rank is None else position.rank
    if newest.rank is None or rank > newest.rank:
        values = {"position_kind": position.kind, "position": position.text, "rank": rank}
        connection.execute(update(ROUTES).where(mine).values(values))
    return rank


def forget(connection: Connection, route: LedgerRoute) -> None:
    """Lets the next turn be at any position; it is ranked above all earlier ones."""
    for kept, mine in (
        (ROUTES, ROUTES.c.id == route.id),
        (LEASES, LEASES.c.route_id == route.id),
    ):
        connection.execute(update(kept).where(mine).values(position_kind=None, position=None))


def _rank_of_leases(position: Position, leases: Sequence[Row[Any]]) -> int | None:
    """Finds the rank of a position that these slices were planned at.

    Another turn of the route, on other slices, may have been planned at a newer one since.
    """
    for row in leases:
        if row.position_kind != position.kind:
            continue
        if position.compared_with(row.position) is PositionOrder.EQUAL:
            rank: int = row.rank
            return rank
    return None


def _next_rank(route: LedgerRoute, newest: Row[Any], position: Position) -> int:
    rank: int = newest.rank or 0
    if newest.position is None:
        return rank + 1
    order = position.compared_with(newest.position)
    if order is PositionOrder.EQUAL:
        return rank
    if order is PositionOrder.AFTER:
        return rank + 1
    if order is PositionOrder.BEFORE:
        why = (
            f"it was planned before at the later position {newest.position}, not {position.text}"
            f" ({position.kind})"
        )
        raise PlanRefused(route.name, why)
    raise _not_comparable(route, newest, position)


def _not_comparable(
    route: LedgerRoute, newest: Row[Any], position: Position
) -> PositionsNotComparable:
    return PositionsNotComparable(
        route.name,
        f"{newest.position} ({newest.position_kind})",
        f"{position.text} ({position.kind})",
    )

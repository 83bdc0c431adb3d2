"""Records the ranges of a route that is cut by key, once: its cells are known by their numbers."""

from collections.abc import Sequence
from itertools import pairwise

from sqlalchemy import Connection, insert, select

from bq_harper_assets.ledger.errors import LedgerConflict, TableChanged
from bq_harper_assets.ledger.records import CutBy, KeyRangeRecord, LedgerRoute
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import KEY_RANGES
from bq_harper_assets.ledger.verbs import audit, registry


def cut_by_key(
    connection: Connection, route: LedgerRoute, bounds: Sequence[str]
) -> tuple[KeyRangeRecord, ...]:
    """Records the ranges that these bounds divide all keys into, and gives them in order.

    The bounds ascend in the order that the source has for its keys; without any there is one range.
    Once recorded they stay, and other bounds are refused: a row would change its cell.
    """
    if route.facts.cut is not CutBy.KEY:
        raise LedgerConflict(
            f"{route.name} is cut by time and has no key ranges. Nothing was changed. See where it"
            f" stands with: bqh status {route.name}"
        )
    if len(set(bounds)) < len(bounds):
        raise LedgerConflict(
            f"the key ranges of {route.name} name a bound twice. Nothing was changed. Do it again:"
            f" bqh sync {route.name}"
        )
    edges = [None, *bounds, None]
    given = tuple(KeyRangeRecord(number, *edge) for number, edge in enumerate(pairwise(edges)))
    registry.lock_route(connection, route)
    known = key_ranges(connection, route)
    if known and known != given:
        raise TableChanged(
            f"{route.name} was cut into {len(known)} key ranges and is to be cut into {len(given)}"
            " others, so that rows would change their cells. Nothing was changed. Go on with the"
            " ranges on record, or give the declaration an id and a targetTable of its own, which"
            " are then synced from the start"
        )
    if not known:
        rows = [
            {"route_id": route.id, "number": each.number, "low": each.low, "high": each.high}
            for each in given
        ]
        connection.execute(insert(KEY_RANGES), rows)
        note = audit.Note("ranges", f"{len(given)} key ranges", "recorded", {})
        audit.record(connection, route, database_now(connection), note)
    return given


def key_ranges(connection: Connection, route: LedgerRoute) -> tuple[KeyRangeRecord, ...]:
    """Lists the key ranges of the route in order; none before they were recorded."""
    query = select(KEY_RANGES).where(KEY_RANGES.c.route_id == route.id)
    rows = connection.execute(query.order_by(KEY_RANGES.c.number))
    return tuple(KeyRangeRecord(row.number, row.low, row.high) for row in rows)

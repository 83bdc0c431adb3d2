"""Registers the routes that the ledger knows, and what about them must not change."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from bq_harper_assets.contract.fields.quantities import window_text
from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.records import LedgerRoute, RouteFacts
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.database import insert_if_absent
from bq_harper_assets.ledger.store.tables import (
    CELLS,
    KEY_RANGES,
    LEASES,
    LOGICAL_TABLES,
    ROUTES,
    SCHEMA_VERSIONS,
    STARTS,
)
from bq_harper_assets.ledger.verbs import audit, slice_leases

_ROUTES = select(ROUTES, LOGICAL_TABLES.c.name.label("table_name")).join(LOGICAL_TABLES)


def register_route(connection: Connection, facts: RouteFacts) -> LedgerRoute:
    """Finds the route by its name, or makes it; TableChanged if its cells would change meaning.

    A new route of a logical table that others have registered shares its schema versions.
    """
    now = database_now(connection)
    is_new = insert_if_absent(
        connection,
        ROUTES,
        table_id=_table_id(connection, facts.table),
        name=facts.name,
        **_columns(facts),
        last_batch=0,
        registered_at=now,
    )
    known = find_route(connection, facts.name)
    if known is None:
        raise _target_taken(connection, facts)
    if known.facts != facts:
        if refused := refused_change(connection, facts):
            raise refused
        known = _declare_anew(connection, known, facts)
    if is_new:
        rows = [
            {"route_id": known.id, "slice": number, "epoch": 0} for number in range(facts.slices)
        ]
        connection.execute(insert(LEASES), rows)
        note = audit.Note("register", facts.target, "ok", {"source": facts.source})
        audit.record(connection, known, now, note)
    return known


def refused_change(connection: Connection, facts: RouteFacts) -> TableChanged | None:
    """Says why the route cannot be declared so; None if it can.

    Before its first batch it always can: until then no row is in a window or under an id by the old
    declaration.
    """
    known = find_route(connection, facts.name)
    other = select(ROUTES.c.name).where(
        ROUTES.c.target == facts.target, ROUTES.c.name != facts.name
    )
    if connection.execute(other).first() is not None:
        return _target_taken(connection, facts)
    if known is None or known.facts == facts or not _has_cells(connection, known):
        return None
    if replace(known.facts, slices=facts.slices) == facts:
        return TableChanged(
            f"{facts.name} is declared with {facts.slices} slices and was synced with"
            f" {known.facts.slices}. Nothing was changed. Put the old number back, or let all its"
            f" cells be compared again under the new one: bqh slices set {facts.name}"
            f" {facts.slices}"
        )
    changes = "; ".join(_changes(known.facts, facts))
    slices = (
        ""
        if known.facts.slices == facts.slices
        else f". slices alone can be changed, by: bqh slices set {facts.name} {facts.slices}"
    )
    return TableChanged(
        f"{facts.name} is not declared as it was first synced: {changes}. Nothing was changed. Put"
        " the old values back, or give the new declaration an id and a targetTable of its own,"
        f" which are then synced from the start{slices}"
    )


def find_route(connection: Connection, name: str) -> LedgerRoute | None:
    """Finds a route by its name; None if it was never registered."""
    row = connection.execute(_ROUTES.where(ROUTES.c.name == name)).one_or_none()
    return None if row is None else _route(row)


def load_route(connection: Connection, route_id: int) -> LedgerRoute:
    """Reads the route as it is registered now."""
    return _route(connection.execute(_ROUTES.where(ROUTES.c.id == route_id)).one())


def lock_route(connection: Connection, route: LedgerRoute) -> None:
    """Locks the route until the transaction ends; on SQLite the transaction itself is the lock."""
    connection.execute(select(ROUTES.c.id).where(ROUTES.c.id == route.id).with_for_update())


def start_of(connection: Connection, name: str) -> datetime | None:
    """Says where the table's first window begins; None if it was never recorded."""
    start: datetime | None = connection.execute(
        select(STARTS.c.start).where(STARTS.c.name == name)
    ).scalar_one_or_none()
    return start


def all_starts(connection: Connection) -> dict[str, datetime]:
    """Gives every start that was recorded, by the name of the logical table."""
    rows = connection.execute(select(STARTS.c.name, STARTS.c.start))
    return {row.name: row.start for row in rows}


def record_start(connection: Connection, name: str, start: datetime) -> datetime:
    """Records a start and gives the one that counts: the first that was recorded."""
    insert_if_absent(connection, STARTS, name=name, start=start)
    known = start_of(connection, name)
    assert known is not None
    return known


def begin_earlier(connection: Connection, name: str, start: datetime) -> datetime:
    """Records a start, and gives the one that counts: the earlier of it and the one on record."""
    known = record_start(connection, name, start)
    if start < known:
        connection.execute(update(STARTS).where(STARTS.c.name == name).values(start=start))
    return min(start, known)


def all_routes(connection: Connection) -> tuple[LedgerRoute, ...]:
    """Lists all routes by name."""
    return tuple(map(_route, connection.execute(_ROUTES.order_by(ROUTES.c.name))))


def _table_id(connection: Connection, name: str) -> int:
    """Finds the logical table of this name, or makes it."""
    insert_if_absent(connection, LOGICAL_TABLES, name=name)
    query = select(LOGICAL_TABLES.c.id).where(LOGICAL_TABLES.c.name == name)
    table_id: int = connection.execute(query).scalar_one()
    return table_id


def _has_cells(connection: Connection, route: LedgerRoute) -> bool:
    cell = select(CELLS.c.slice).where(CELLS.c.route_id == route.id).limit(1)
    return connection.execute(cell).first() is not None


def _is_shared(connection: Connection, route: LedgerRoute) -> bool:
    """Says whether the logical table has other routes, which go by its schema versions too."""
    others = select(ROUTES.c.id).where(ROUTES.c.table_id == route.table_id, ROUTES.c.id != route.id)
    return connection.execute(others).first() is not None


def _declare_anew(connection: Connection, route: LedgerRoute, facts: RouteFacts) -> LedgerRoute:
    """Changes a route of which no cell was ever planned; LeaseHeld while a run may plan one."""
    rows, now = slice_leases.lock_all(connection, route, then=f"bqh sync {route.name}")
    slice_leases.remake(connection, route, rows, facts.slices)
    connection.execute(delete(KEY_RANGES).where(KEY_RANGES.c.route_id == route.id))
    if not _is_shared(connection, route):
        mine = SCHEMA_VERSIONS.c.table_id == route.table_id
        # They name the old ids and the old key.
        connection.execute(delete(SCHEMA_VERSIONS).where(mine))
        if route.facts.timestamp_column != facts.timestamp_column:
            connection.execute(delete(STARTS).where(STARTS.c.name == route.facts.table))
    table_id = _table_id(connection, facts.table)
    mine = ROUTES.c.id == route.id
    connection.execute(update(ROUTES).where(mine).values(table_id=table_id, **_columns(facts)))
    note = audit.Note("register", facts.target, "declared anew", {"source": facts.source})
    audit.record(connection, route, now, note)
    return load_route(connection, route.id)


def _columns(facts: RouteFacts) -> dict[str, Any]:
    return {
        "source": facts.source,
        "target": facts.target,
        "timestamp_column": facts.timestamp_column,
        "key_columns": json.dumps(facts.key),
        "cut": facts.cut,
        "window_us": None if facts.window is None else facts.step,
        "slices": facts.slices,
    }


# The names and texts are those of config/tables.yaml.
_WRITTEN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "name": ("id", str),
    "table": ("the logical table", str),
    "source": ("the source", str),
    "target": ("targetTable", str),
    "timestamp_column": ("timestampColumn", str),
    "key": ("key", lambda key: ", ".join(key) or "the whole row"),
    "window": ("window", lambda window: window_text(window) if window else "none (cut by key)"),
    "slices": ("slices", str),
}


def _changes(old: RouteFacts, new: RouteFacts) -> Iterator[str]:
    for field in fields(RouteFacts):
        was, given = getattr(old, field.name), getattr(new, field.name)
        if was != given:
            name, written = _WRITTEN[field.name]
            yield f"{name} was {written(was)} and is {written(given)}"


def _target_taken(connection: Connection, facts: RouteFacts) -> TableChanged:
    other = connection.execute(
        select(ROUTES.c.name).where(ROUTES.c.target == facts.target)
    ).scalar_one()
    return TableChanged(
        f"{facts.name} names the target {facts.target}, which holds the rows of {other}. Nothing"
        " was changed. Give it a targetTable of its own"
    )


def _route(row: Row[Any]) -> LedgerRoute:
    facts = RouteFacts(
        name=row.name,
        table=row.table_name,
        source=row.source,
        target=row.target,
        timestamp_column=row.timestamp_column,
        key=tuple(json.loads(row.key_columns)),
        window=None if row.window_us is None else timedelta(microseconds=row.window_us),
        slices=row.slices,
    )
    return LedgerRoute(row.id, row.table_id, facts)

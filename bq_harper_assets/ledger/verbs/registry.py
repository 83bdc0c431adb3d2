"""Registers the tables that the ledger knows, and what about them must not change."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from bq_harper_assets.contract.fields.quantities import window_text
from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.records import LogicalTable, TableFacts
from bq_harper_assets.ledger.store.columns import database_now, duration_micros
from bq_harper_assets.ledger.store.database import insert_if_absent
from bq_harper_assets.ledger.store.tables import (
    CELLS,
    LEASES,
    LOGICAL_TABLES,
    SCHEMA_VERSIONS,
    STARTS,
)
from bq_harper_assets.ledger.verbs import audit, slice_leases


def register_table(connection: Connection, facts: TableFacts) -> LogicalTable:
    """Finds the table by its name, or makes it; TableChanged if its cells would change meaning."""
    now = database_now(connection)
    is_new = insert_if_absent(
        connection,
        LOGICAL_TABLES,
        name=facts.name,
        **_columns(facts),
        last_batch=0,
        registered_at=now,
    )
    known = find_table(connection, facts.name)
    if known is None:
        raise _target_taken(connection, facts)
    if known.facts != facts:
        if refused := refused_change(connection, facts):
            raise refused
        known = _declare_anew(connection, known, facts)
    if is_new:
        rows = [
            {"table_id": known.id, "slice": number, "epoch": 0} for number in range(facts.slices)
        ]
        connection.execute(insert(LEASES), rows)
        note = audit.Note("register", facts.target, "ok", {"source": facts.source})
        audit.record(connection, known, now, note)
    return known


def refused_change(connection: Connection, facts: TableFacts) -> TableChanged | None:
    """Says why the table cannot be declared so; None if it can.

    Before its first batch it always can: until then no row is in a window or under an id by the old
    declaration.
    """
    known = find_table(connection, facts.name)
    other = select(LOGICAL_TABLES.c.name).where(
        LOGICAL_TABLES.c.target == facts.target, LOGICAL_TABLES.c.name != facts.name
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


def find_table(connection: Connection, name: str) -> LogicalTable | None:
    """Finds a table by its name; None if it was never registered."""
    row = connection.execute(
        select(LOGICAL_TABLES).where(LOGICAL_TABLES.c.name == name)
    ).one_or_none()
    return None if row is None else _table(row)


def load_table(connection: Connection, table_id: int) -> LogicalTable:
    """Reads the table as it is registered now."""
    query = select(LOGICAL_TABLES).where(LOGICAL_TABLES.c.id == table_id)
    return _table(connection.execute(query).one())


def lock_table(connection: Connection, table: LogicalTable) -> None:
    """Locks the table until the transaction ends; on SQLite the transaction itself is the lock."""
    connection.execute(
        select(LOGICAL_TABLES.c.id).where(LOGICAL_TABLES.c.id == table.id).with_for_update()
    )


def start_of(connection: Connection, name: str) -> datetime | None:
    """Says where the contract's first window begins; None if it was never recorded."""
    start: datetime | None = connection.execute(
        select(STARTS.c.start).where(STARTS.c.name == name)
    ).scalar_one_or_none()
    return start


def all_starts(connection: Connection) -> dict[str, datetime]:
    """Gives every start that was recorded, by the contract's name."""
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


def all_tables(connection: Connection) -> tuple[LogicalTable, ...]:
    """Lists all tables by name."""
    rows = connection.execute(select(LOGICAL_TABLES).order_by(LOGICAL_TABLES.c.name))
    return tuple(_table(row) for row in rows)


def _has_cells(connection: Connection, table: LogicalTable) -> bool:
    cell = select(CELLS.c.slice).where(CELLS.c.table_id == table.id).limit(1)
    return connection.execute(cell).first() is not None


def _declare_anew(connection: Connection, table: LogicalTable, facts: TableFacts) -> LogicalTable:
    """Changes a table of which no cell was ever planned; LeaseHeld while a run may plan one."""
    rows, now = slice_leases.lock_all(connection, table, then=f"bqh sync {table.name}")
    slice_leases.remake(connection, table, rows, facts.slices)
    mine = SCHEMA_VERSIONS.c.table_id == table.id
    connection.execute(delete(SCHEMA_VERSIONS).where(mine))  # they name the old ids and the old key
    if table.facts.timestamp_column != facts.timestamp_column:
        connection.execute(delete(STARTS).where(STARTS.c.name == table.name))
    connection.execute(
        update(LOGICAL_TABLES).where(LOGICAL_TABLES.c.id == table.id).values(**_columns(facts))
    )
    note = audit.Note("register", facts.target, "declared anew", {"source": facts.source})
    audit.record(connection, table, now, note)
    return load_table(connection, table.id)


def _columns(facts: TableFacts) -> dict[str, Any]:
    return {
        "source": facts.source,
        "target": facts.target,
        "timestamp_column": facts.timestamp_column,
        "key_columns": json.dumps(facts.key),
        "window_us": duration_micros(facts.window),
        "slices": facts.slices,
    }


# The names and texts are those of config/tables.yaml.
_WRITTEN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "name": ("id", str),
    "source": ("the source", str),
    "target": ("targetTable", str),
    "timestamp_column": ("timestampColumn", str),
    "key": ("key", lambda key: ", ".join(key) or "the whole row"),
    "window": ("window", window_text),
    "slices": ("slices", str),
}


def _changes(old: TableFacts, new: TableFacts) -> Iterator[str]:
    for field in fields(TableFacts):
        was, given = getattr(old, field.name), getattr(new, field.name)
        if was != given:
            name, written = _WRITTEN[field.name]
            yield f"{name} was {written(was)} and is {written(given)}"


def _target_taken(connection: Connection, facts: TableFacts) -> TableChanged:
    other = connection.execute(
        select(LOGICAL_TABLES.c.name).where(LOGICAL_TABLES.c.target == facts.target)
    ).scalar_one()
    return TableChanged(
        f"{facts.name} names the target {facts.target}, which holds the rows of {other}. Nothing"
        " was changed. Give it a targetTable of its own"
    )


def _table(row: Row[Any]) -> LogicalTable:
    facts = TableFacts(
        name=row.name,
        source=row.source,
        target=row.target,
        timestamp_column=row.timestamp_column,
        key=tuple(json.loads(row.key_columns)),
        window=timedelta(microseconds=row.window_us),
        slices=row.slices,
    )
    return LogicalTable(row.id, facts)

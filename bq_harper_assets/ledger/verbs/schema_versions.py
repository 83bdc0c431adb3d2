"""Records the numbered versions of a table's schema; each is written once and never changed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from bq_harper_assets.ledger.errors import SchemaMoved
from bq_harper_assets.ledger.records import LedgerRoute, NewestVersion, SchemaVersion
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import LOGICAL_TABLES, SCHEMA_VERSIONS
from bq_harper_assets.ledger.verbs import audit


def newest(connection: Connection, route: LedgerRoute) -> SchemaVersion | None:
    """Finds the newest version, before the source's columns are read; None before the first."""
    row = connection.execute(
        select(SCHEMA_VERSIONS)
        .where(SCHEMA_VERSIONS.c.table_id == route.table_id)
        .order_by(SCHEMA_VERSIONS.c.version.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else _schema(row)


def newest_of_all(connection: Connection) -> dict[str, NewestVersion]:
    """Finds the newest version of each table that has one, by the table's name, in one query."""
    number, at = func.max(SCHEMA_VERSIONS.c.version), func.max(SCHEMA_VERSIONS.c.recorded_at)
    rows = connection.execute(
        select(LOGICAL_TABLES.c.name, number, at)
        .join(LOGICAL_TABLES, LOGICAL_TABLES.c.id == SCHEMA_VERSIONS.c.table_id)
        .group_by(LOGICAL_TABLES.c.name)
    )
    return {name: NewestVersion(version, recorded_at) for name, version, recorded_at in rows}


def find(connection: Connection, route: LedgerRoute, version: int) -> SchemaVersion | None:
    """Finds a version by its number; None if there is none."""
    row = connection.execute(
        select(SCHEMA_VERSIONS).where(
            SCHEMA_VERSIONS.c.table_id == route.table_id, SCHEMA_VERSIONS.c.version == version
        )
    ).one_or_none()
    return None if row is None else _schema(row)


def history(connection: Connection, route: LedgerRoute) -> tuple[SchemaVersion, ...]:
    """Lists all versions, oldest first."""
    mine = select(SCHEMA_VERSIONS).where(SCHEMA_VERSIONS.c.table_id == route.table_id)
    rows = connection.execute(mine.order_by(SCHEMA_VERSIONS.c.version))
    return tuple(_schema(row) for row in rows)


def record_schema(
    connection: Connection,
    route: LedgerRoute,
    body: Mapping[str, Any],
    seen: int,
    by: str = "",
    cause: str = "",
    changes: Sequence[Mapping[str, Any]] | None = None,
    source_fingerprint: str | None = None,
) -> SchemaVersion:
    """Gives the newest version if its body is equal, else records the next one.

    `seen` is the newest number before the source was read (0 for none). SchemaMoved if another run
    has recorded a version since: `body` may be older than that one, and must not get the higher
    number.
    """
    _lock(connection, route)
    known = newest(connection, route)
    # The body is read back from JSON, so that a tuple here equals a list there.
    given = json.loads(_canonical(body))
    if known is not None and known.body == given:
        return known
    number = known.version if known else 0
    if number != seen:
        raise SchemaMoved(route.name, seen, number)
    changes_text = None if changes is None else _canonical(changes)
    made = SchemaVersion(
        version=number + 1,
        body=given,
        recorded_at=database_now(connection),
        by=by,
        cause=cause,
        changes=_changes(changes_text),
        source_fingerprint=source_fingerprint,
    )
    connection.execute(
        insert(SCHEMA_VERSIONS).values(
            table_id=route.table_id,
            version=made.version,
            body=_canonical(body),
            recorded_at=made.recorded_at,
            recorded_by=by,
            cause=cause,
            changes=changes_text,
            source_fingerprint=source_fingerprint,
        )
    )
    detail = {"by": by, "cause": cause}
    note = audit.Note("schema", f"version {made.version}", "recorded", detail)
    audit.record(connection, route, made.recorded_at, note)
    return made


def _canonical(body: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(body, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _lock(connection: Connection, route: LedgerRoute) -> None:
    # With key_share, others may still insert rows that refer to the table.
    row = select(LOGICAL_TABLES.c.id).where(LOGICAL_TABLES.c.id == route.table_id)
    connection.execute(row.with_for_update(key_share=True)).one()


def _schema(row: Row[Any]) -> SchemaVersion:
    return SchemaVersion(
        version=row.version,
        body=json.loads(row.body),
        recorded_at=row.recorded_at,
        by=row.recorded_by,
        cause=row.cause,
        changes=_changes(row.changes),
        source_fingerprint=row.source_fingerprint,
    )


def _changes(text: str | None) -> tuple[Mapping[str, Any], ...] | None:
    return None if text is None else tuple(json.loads(text))

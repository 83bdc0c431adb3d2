"""Records what happened, in order, in the transaction of the step that it describes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import AUDIT


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An audit entry describes one thing that happened."""

    id: int
    at: datetime
    kind: str
    subject: str
    outcome: str
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Note:
    """A note is what an audit entry is made of."""

    kind: str
    subject: str
    outcome: str
    detail: Mapping[str, Any]


def record(connection: Connection, route: LedgerRoute | None, at: datetime, *notes: Note) -> None:
    """Adds an entry for each note; `route` is None for what concerns the whole ledger."""
    rows = [
        {
            "at": at,
            "kind": note.kind,
            "route_id": route.id if route else None,
            "subject": note.subject,
            "outcome": note.outcome,
            "detail": json.dumps(note.detail, sort_keys=True),
        }
        for note in notes
    ]
    if rows:
        connection.execute(insert(AUDIT), rows)


def record_now(connection: Connection, route: LedgerRoute | None, *notes: Note) -> None:
    """Adds entries for what happens outside the ledger: checks, changes to the target, commands."""
    record(connection, route, database_now(connection), *notes)


def entries(
    connection: Connection,
    route: LedgerRoute | None = None,
    limit: int = 100,
    *,
    kind: str | None = None,
) -> tuple[AuditEntry, ...]:
    """Lists the newest `limit` entries, newest first, of one table or all, of one kind or all."""
    query = select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit)
    if route is not None:
        query = query.where(AUDIT.c.route_id == route.id)
    if kind is not None:
        query = query.where(AUDIT.c.kind == kind)
    return tuple(
        AuditEntry(
            id=row.id,
            at=row.at,
            kind=row.kind,
            subject=row.subject,
            outcome=row.outcome,
            detail=json.loads(row.detail),
        )
        for row in connection.execute(query)
    )

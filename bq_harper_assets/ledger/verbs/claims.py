"""A claim says who may do a thing that concerns no single table, such as comparing schemas.

As with leases, a step locks the row, reads the time, then decides.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, select, update

from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.database import insert_if_absent
from bq_harper_assets.ledger.store.tables import CLAIMS
from bq_harper_assets.ledger.verbs import audit


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim is the right to do what `name` says, until `expires_at` by the ledger's clock."""

    name: str
    owner: str
    epoch: int
    acquired_at: datetime
    expires_at: datetime
    note: str = ""  # the note of the owner before


@dataclass(frozen=True, kw_only=True)
class ClaimRecord:
    """A claim record describes a claim as it is now; without an owner it is free."""

    name: str
    owner: str | None
    epoch: int
    acquired_at: datetime | None
    expires_at: datetime | None
    is_live: bool
    note: str = ""


def claim(connection: Connection, name: str, owner: str, ttl: timedelta) -> Claim | ClaimRecord:
    """Takes the claim; if someone has it, gives the record of who has it and until when."""
    insert_if_absent(connection, CLAIMS, name=name, epoch=0, note="")
    row, now = _lock(connection, name)
    if row.owner is not None and row.expires_at >= now:
        return _record(row, now)
    taken = Claim(
        name=name,
        owner=owner,
        epoch=row.epoch + 1,
        acquired_at=now,
        expires_at=now + ttl,
        note=row.note,
    )
    _change(connection, name, owner=owner, epoch=taken.epoch, acquired_at=now, expires_at=now + ttl)
    detail = {"owner": owner, "epoch": taken.epoch, "taken_from": row.owner}
    _note(connection, name, now, "taken over" if row.owner else "taken", detail)
    return taken


def release_claim(connection: Connection, claim: Claim, note: str | None = None) -> bool:
    """Frees the claim; False if it is no longer this owner's, and stays with whoever has it now.

    The next owner gets the note; without a new one it gets the note of the owner before.
    """
    row, now = _lock(connection, claim.name)
    if (row.owner, row.epoch) != (claim.owner, claim.epoch):
        return False
    left = row.note if note is None else note
    _change(connection, claim.name, owner=None, acquired_at=None, expires_at=None, note=left)
    detail = {"owner": claim.owner, "epoch": claim.epoch}
    _note(connection, claim.name, now, "released", detail)
    return True


def all_claims(connection: Connection) -> tuple[ClaimRecord, ...]:
    """Lists all claims by name; a live one is not released, nor expired by the database's clock."""
    now = database_now(connection)
    rows = connection.execute(select(CLAIMS).order_by(CLAIMS.c.name))
    return tuple(_record(row, now) for row in rows)


def _lock(connection: Connection, name: str) -> tuple[Row[Any], datetime]:
    """Locks the claim, then reads the time, because waiting for the row may outlast a claim."""
    row = connection.execute(select(CLAIMS).where(CLAIMS.c.name == name).with_for_update()).one()
    return row, database_now(connection)


def _change(connection: Connection, name: str, **values: Any) -> None:
    connection.execute(update(CLAIMS).where(CLAIMS.c.name == name).values(**values))


def _note(
    connection: Connection, name: str, now: datetime, outcome: str, detail: dict[str, Any]
) -> None:
    audit.record(connection, None, now, audit.Note("claim", name, outcome, detail))


def _record(row: Row[Any], now: datetime) -> ClaimRecord:
    is_live = row.owner is not None and bool(row.expires_at >= now)
    return ClaimRecord(
        name=row.name,
        owner=row.owner,
        epoch=row.epoch,
        acquired_at=row.acquired_at,
        expires_at=row.expires_at,
        is_live=is_live,
        note=row.note,
    )

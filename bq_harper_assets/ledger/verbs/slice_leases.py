"""A lease says who may write a slice now; each step locks the rows, reads the time and decides."""

import socket
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from bq_harper_assets.ledger.errors import (
    Holder,
    LeaseHeld,
    LeaseLost,
    LedgerConflict,
    TableChanged,
)
from bq_harper_assets.ledger.position import Position
from bq_harper_assets.ledger.records import Lease, Leases, LedgerRoute
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import LEASES, ROUTES
from bq_harper_assets.ledger.verbs import audit

_LOOKED_AT = 500  # newest entries that are searched; a lease still held was taken not long ago


def acquire(
    connection: Connection,
    route: LedgerRoute,
    slices: Sequence[int],
    owner: str,
    ttl: timedelta,
    sent: float,
) -> Leases:
    """Takes all leases or none: each must be released, or expired by the database's clock."""
    rows, now = lock(connection, route, slices)
    _check_slices(connection, route)
    if held := [row for row in rows if not _is_free(row, now)]:
        raise LeaseHeld(route.name, _with_hosts(connection, route, held), asked_by=owner)
    leases = []
    for row in rows:
        lease = Lease(row.slice, row.epoch + 1, now + ttl, sent + ttl.total_seconds())
        _change(
            connection,
            route,
            row,
            owner=owner,
            epoch=lease.epoch,
            acquired_at=now,
            expires_at=lease.expires_at,
        )
        detail = {
            "owner": owner,
            "epoch": lease.epoch,
            "taken_from": row.owner,
            "host": socket.gethostname(),
        }
        outcome = "taken over" if row.owner else "taken"
        note = audit.Note("lease", f"slice {row.slice}", outcome, detail)
        audit.record(connection, route, now, note)
        leases.append(lease)
    return Leases(route, owner, tuple(leases))


def renew(connection: Connection, leases: Leases, ttl: timedelta, sent: float) -> Leases:
    """Extends the leases; LeaseLost once one of them has expired, even if nobody took it."""
    rows, now = lock_live(connection, leases, leases.slices, "renew the lease")
    renewed = []
    for row, lease in zip(rows, leases.held, strict=True):
        # A shorter TTL must not take away time that a task was already promised.
        expires_at = max(row.expires_at, now + ttl)
        _change(connection, leases.route, row, expires_at=expires_at)
        deadline = max(lease.deadline, sent + ttl.total_seconds())
        renewed.append(replace(lease, expires_at=expires_at, deadline=deadline))
    return replace(leases, held=tuple(renewed))


def release(connection: Connection, leases: Leases, mirrored_batch: int | None) -> LeaseLost | None:
    """Frees the leases that are still this owner's.

    Returns the error for the others, which the caller raises after the commit. If `mirrored_batch`
    is given, Harper's copies of the leases are known to name it and these epochs.
    """
    rows, now = lock(connection, leases.route, leases.slices)
    lost = []
    for row in rows:
        if not _is_owned(row, leases):
            lost.append(holder(row))
            continue
        known = (
            {}
            if mirrored_batch is None
            else {"mirrored_epoch": row.epoch, "mirrored_batch": mirrored_batch}
        )
        free = dict.fromkeys(("owner", "expires_at", "acquired_at"))
        _change(connection, leases.route, row, **free, **known)
        detail = {"owner": leases.owner, "epoch": row.epoch}
        note = audit.Note("lease", f"slice {row.slice}", "released", detail)
        audit.record(connection, leases.route, now, note)
    return LeaseLost(leases.route.name, "release the lease", lost, now) if lost else None


def note_mirrored(connection: Connection, leases: Leases, batch: int) -> None:
    """Records that Harper's copies of these leases name the batch; LeaseLost if one is not live."""
    rows, _ = lock_live(connection, leases, leases.slices, "note what Harper was told")
    for row in rows:
        _change(connection, leases.route, row, mirrored_epoch=row.epoch, mirrored_batch=batch)


def lock(
    connection: Connection, route: LedgerRoute, slices: Iterable[int]
) -> tuple[list[Row[Any]], datetime]:
    """Locks the lease rows until the transaction ends, and then reads the time.

    The rows are locked in ascending order, which keeps two owners of overlapping slices from
    waiting for each other. The time is read last, because waiting for a lock may outlast a lease.
    """
    wanted = sorted(set(slices))
    query = (
        select(LEASES)
        .where(LEASES.c.route_id == route.id, LEASES.c.slice.in_(wanted))
        .order_by(LEASES.c.slice)
        .with_for_update()
    )
    rows = list(connection.execute(query))
    if not wanted or len(rows) != len(wanted):
        _check_slices(connection, route)
        raise LedgerConflict(
            f"{route.name} has the slices 0 to {route.facts.slices - 1}, and {wanted} were"
            f" asked for. Nothing was changed. See them with: bqh status {route.name}"
        )
    return rows, database_now(connection)


def lock_live(
    connection: Connection, leases: Leases, slices: Iterable[int], step: str
) -> tuple[list[Row[Any]], datetime]:
    """Locks the rows; raises LeaseLost unless each is this owner's, in this epoch, and live."""
    rows, now = lock(connection, leases.route, slices)
    lost = [row for row in rows if not _is_owned(row, leases) or row.expires_at <= now]
    if lost:
        raise LeaseLost(leases.route.name, step, [holder(row) for row in lost], now)
    return rows, now


def lock_all(
    connection: Connection, route: LedgerRoute, then: str
) -> tuple[list[Row[Any]], datetime]:
    """Locks the rows of all slices; raises LeaseHeld if one is not free.

    The error tells the user to type the command `then`.
    """
    query = select(LEASES).where(LEASES.c.route_id == route.id).order_by(LEASES.c.slice)
    rows, now = list(connection.execute(query.with_for_update())), database_now(connection)
    if held := [holder(row) for row in rows if not _is_free(row, now)]:
        raise LeaseHeld(route.name, held, then)
    if len(rows) != _slices(connection, route):
        raise LedgerConflict(
            f"someone else has just changed the slices of {route.name}. Nothing was changed by this"
            f" step. See them with: bqh status {route.name}"
        )
    return rows, now


def remake(
    connection: Connection,
    route: LedgerRoute,
    rows: Sequence[Row[Any]],
    slices: int,
    *,
    beyond: int = 0,
) -> None:
    """Makes free leases for so many slices, each with the highest numbers of the old `rows`.

    A row may come from any old slice. So no new slice may go back to an older position, schema
    version or epoch, and its epoch must be above `beyond`, which another ledger has used.
    """
    ranked = [row for row in rows if row.rank is not None]
    newest = max(ranked, key=lambda row: row.rank, default=None)
    like_all = {
        "epoch": max(beyond, *(row.epoch for row in rows)) + 1,
        "snapshot": max((row.snapshot for row in rows if row.snapshot), default=None),
        "position_kind": newest and newest.position_kind,
        "position": newest and newest.position,
        "rank": newest and newest.rank,
        "schema_version": max(row.schema_version or 0 for row in rows) or None,
    }
    connection.execute(delete(LEASES).where(LEASES.c.route_id == route.id))
    fresh = [{"route_id": route.id, "slice": number, **like_all} for number in range(slices)]
    connection.execute(insert(LEASES), fresh)


def remember(
    connection: Connection,
    route: LedgerRoute,
    row: Row[Any],
    t: datetime,
    position: Position,
    rank: int,
    schema_version: int,
) -> None:
    """Records the newest position and schema version used in the slice, for every later owner."""
    _change(
        connection,
        route,
        row,
        snapshot=t,
        position_kind=position.kind,
        position=position.text,
        rank=rank,
        schema_version=schema_version,
    )


def holder(row: Row[Any]) -> Holder:
    """Says who has the lease."""
    return Holder(
        slice=row.slice,
        owner=row.owner,
        epoch=row.epoch,
        until=row.expires_at,
        since=row.acquired_at,
    )


def _with_hosts(
    connection: Connection, route: LedgerRoute, rows: Sequence[Row[Any]]
) -> list[Holder]:
    """Says who has the leases and on which host, by the audit entries of when they were taken."""
    taken = audit.entries(connection, route, _LOOKED_AT, kind="lease")
    hosts = {
        (note.detail.get("owner"), note.detail.get("epoch")): note.detail.get("host")
        for note in taken
    }
    return [replace(holder(row), host=hosts.get((row.owner, row.epoch))) for row in rows]


def _check_slices(connection: Connection, route: LedgerRoute) -> None:
    """Raises TableChanged if this run's number of slices is old: rows would go to wrong cells."""
    slices = _slices(connection, route)
    if slices != route.facts.slices:
        raise TableChanged(
            f"{route.name} has been given {slices} slices instead of {route.facts.slices} since"
            " this run looked. No lease was taken and nothing was changed. Do it again:"
            f" bqh sync {route.name}"
        )


def _slices(connection: Connection, route: LedgerRoute) -> int:
    query = select(ROUTES.c.slices).where(ROUTES.c.id == route.id)
    slices: int = connection.execute(query).scalar_one()
    return slices


def _is_free(row: Row[Any], now: datetime) -> bool:
    return row.owner is None or bool(row.expires_at < now)


def _is_owned(row: Row[Any], leases: Leases) -> bool:
    return bool(row.owner == leases.owner and row.epoch == leases.epochs.get(row.slice))


def _change(connection: Connection, route: LedgerRoute, seen: Row[Any], **values: Any) -> None:
    """Changes the lease only if its owner and epoch are still those that were read."""
    changed = connection.execute(
        update(LEASES)
        .where(
            LEASES.c.route_id == route.id,
            LEASES.c.slice == seen.slice,
            LEASES.c.epoch == seen.epoch,
            LEASES.c.owner.is_not_distinct_from(seen.owner),
        )
        .values(**values)
    )
    if changed.rowcount != 1:
        raise LedgerConflict(
            f"the lease of {route.name} changed under its lock ({holder(seen)}). Nothing was"
            f" changed. Try again: bqh sync {route.name}"
        )

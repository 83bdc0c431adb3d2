"""Puts a difference between two schema versions into words: what is done, and how grave it is."""

from dataclasses import replace
from datetime import datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.change import Change, ChangeKind, SchemaDifference
from bq_harper_assets.schema.schema_rules import policy_of
from bq_harper_assets.schema.version import VersionColumn

_NOTEWORTHY = {
    ChangeKind.RETURNED,
    ChangeKind.RETYPED,
    ChangeKind.SET_ASIDE,
    ChangeKind.INDEX,
    ChangeKind.NOT_SELECTED,
}


def change_in_words(difference: SchemaDifference, contract: TableContract) -> Change:
    """Describes the difference for a person, by what the contract says today."""
    before, after = difference.types
    return Change(
        kind=difference.kind,
        column=difference.column,
        before=before,
        after=after,
        action=_action(difference, contract),
        severity=_severity(difference, contract),
    )


def dated(change: Change, at: datetime) -> Change:
    """Adds to a removed column since when it is gone, because rows written later lack it."""
    if change.kind is not ChangeKind.REMOVED or change.severity != "warn":
        return change
    return replace(change, action=f"gone since {at:%F %T} UTC; {change.action}")


def _severity(difference: SchemaDifference, contract: TableContract) -> str:
    was = difference.was
    if difference.waits:
        return "error" if policy_of(contract, difference.column) == "freeze" else "warn"
    is_lost = difference.kind is ChangeKind.REMOVED and was is not None and was.written
    return "warn" if is_lost or difference.kind in _NOTEWORTHY else "info"


def _action(difference: SchemaDifference, contract: TableContract) -> str:
    was, now = difference.was, difference.now
    if now is None:
        return _action_without(difference.kind, was, contract.target.store)
    match difference.kind:
        case ChangeKind.RETYPED if was is not None:
            return _retyped(was, now, difference.waits, contract)
        case ChangeKind.RENAMED:
            return f"{contract.target.store} keeps it as {now.name}"
        case ChangeKind.INDEX:
            return _index(now, contract)
        case _ if difference.waits:
            return _waits(now, contract)
        case ChangeKind.RETURNED:
            return _returned(now, contract)
        case ChangeKind.WIDENED:
            if was is not None and (new := sorted(now.paths - was.paths)):
                return _synced(", ".join(new), contract)
            return f"recorded: {contract.target.store} stores both alike"
        case _:
            return _synced(now.name, contract)


def _action_without(kind: ChangeKind, was: VersionColumn | None, target: str) -> str:
    """Says what is done about a column that the version no longer has, or about the whole table."""
    match kind, was:
        case ChangeKind.REMOVED, None:
            return "it was not synced"
        case ChangeKind.REMOVED, VersionColumn(written=False):
            return "it was never synced"
        case ChangeKind.REMOVED, VersionColumn():
            return f"left out from now on; {target} keeps the values of {was.name}"
        case ChangeKind.NOT_SELECTED, None:
            return "not synced: the contract's columns do not name it"
        case ChangeKind.NOT_SELECTED, VersionColumn():
            return (
                "left out from now on: the contract's columns do not name it any more;"
                f" {target} keeps the values of {was.name}"
            )
        case ChangeKind.PRIMARY_KEY, _:
            return "recorded: rows keep the ids they have"
        case _:
            return "recorded"


def _waits(column: VersionColumn, contract: TableContract) -> str:
    command = f"bqh schema apply {contract.id}"
    if policy_of(contract, column.source.name) != "freeze":
        return f"waits for: {command}"
    # If it has come back, or a rollback stopped its sync, nothing in the source is to be undone.
    is_back = column.written and not column.is_live
    way = "to sync it again," if is_back else f"undo the change in {contract.source.store}, or"
    return f"not synced: the policy is freeze; {way} set the policy to approve and type: {command}"


def _synced(into: str, contract: TableContract) -> str:
    since = "; windows synced before are filled again" if contract.backfill else " from now on"
    return f"synced into {into}{since}"


def _retyped(was: VersionColumn, now: VersionColumn, waits: bool, contract: TableContract) -> str:
    parts = []
    if was.source.name != now.source.name:
        parts.append(f"renamed from {was.source.name}")
    # Fields are compared by the source's path. A column that is no object any more has lost none.
    had, has = (each.named(now.source.name).paths for each in (was, now))
    if now.fields and (lost := sorted(had - has)):
        parts.append(f"without {', '.join(lost)}")
    if waits:
        parts += [_waits(now, contract), f"{was.name} keeps its values and gets no new ones"]
    else:
        kept = f"{was.name} keeps the values it has, and is listed by"
        parts += [_synced(now.name, contract), f"{kept} bqh schema cleanup {contract.id}"]
    return "; ".join(parts)


def _returned(now: VersionColumn, contract: TableContract) -> str:
    if contract.backfill:
        return f"synced into {now.name} again, in earlier windows too"
    return (
        f"synced into {now.name} again: windows synced before it went follow"
        f" {contract.source.store} again, those synced while it was gone keep what they have"
    )


def _index(now: VersionColumn, contract: TableContract) -> str:
    if not now.indexed:
        return f"the index stays in {contract.target.store}"
    # Measured: an attribute declared without an index never gets one; one only found in rows does.
    action = (
        f"{contract.target.store} builds it at the next sync if the column came after the table was"
        " made; to an older one it adds none, and searches by it read the whole table"
    )
    if contract.target.is_adopted:
        action = f"{contract.target.store} has one only if the table is declared with it"
    return f"{action}. See: bqh schema indexes {contract.id}"

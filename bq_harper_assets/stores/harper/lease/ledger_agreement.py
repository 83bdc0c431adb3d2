"""Before anything is written, the ledger and Harper are checked for contradictions.

Either may have been restored from a backup, lost or replaced. Each run leaves its ledger's id, its
epoch and the newest batch in Harper's table SyncLease, and notes in the ledger what it left there.
So an older ledger finds copies that are newer than itself, and an older Harper has copies that are
older than the ledger's notes of them.

Harper is read between two reads of the ledger: what the ledger knew before must be in Harper, and
what is in Harper must be known to the ledger after, whatever other runs do meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.mirrored_facts import Mirrored, Newest
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.stores.harper.answers import TableDescription
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import (
    HarperNotFound,
    HarperRefused,
    HarperRowBroken,
    HarperUnauthorized,
)
from bq_harper_assets.stores.harper.lease.send_deadline import mirror_id
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.errors import OutOfStep

MOST_SLICES = 64  # the most that a contract may have


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A copy is the lease of one slice as Harper's table SyncLease shows it."""

    slice: int
    ledger: str
    epoch: int
    batch: int | None  # the table's newest; None: an earlier release wrote it
    deadline: float  # in seconds of its owner's clock


def copies_of(harper: HarperClient, table: LedgerRoute) -> list[Copy]:
    """Returns the copies in Harper, also those of slices that only another ledger has."""
    target = table.facts.target
    ids = {mirror_id(target, number): number for number in range(MOST_SLICES)}
    try:
        # No attributes are named: Harper answers 500 to one that an older release did not declare.
        rows = harper.search_by_id(MIRRORED_LEASES.name, list(ids))
    except HarperNotFound:
        return []
    return [_copy(ids[row["id"]], row) for row in rows]


def _copy(number: int, row: dict[str, Any]) -> Copy:
    return Copy(
        slice=number,
        ledger=row["ledger"],
        epoch=row["epoch"],
        batch=row.get("batch"),
        deadline=row.get("deadline") or 0.0,
    )


def require_in_step(
    ledger: Ledger, harper: HarperClient, table: LedgerRoute, *, adopted: bool
) -> None:
    """Raises OutOfStep if ledger and Harper contradict each other.

    The error says what happened, and the one command that repairs it.
    """
    target = table.facts.target
    mirrored, before = ledger.mirrored(table), ledger.newest(table)
    rows_before = ledger.rows_surely_held(table)
    copies = copies_of(harper, table)
    found = harper.describe_table(target)
    is_empty = found is None or not holds_a_row(harper, found)
    rows, after = ledger.rows_surely_held(table), ledger.newest(table)
    _require_this_ledger(table, str(ledger.identity()), copies)
    _require_same_age(table, mirrored, copies, after)
    if found is None:
        if before.has_commits and after.has_commits:
            raise OutOfStep(
                table, f"Harper has no table {target}, and the ledger says that it was synced"
            )
        return
    if is_empty and rows_before and rows:
        raise OutOfStep(
            table, f"Harper's table {target} holds no row, and the ledger says that it has {rows:,}"
        )
    if not is_empty and not after.has_cells and not adopted:
        raise OutOfStep(
            table,
            f"Harper's table {target} holds {_count(found)}rows that this ledger knows nothing of",
            f"If somebody else fills it, write manage: adopt and type: bqh adopt {table.name}. ",
        )


def holds_a_row(harper: HarperClient, found: TableDescription) -> bool:
    """Reads one row to find out, because the count in a description is only Harper's estimate."""
    key = found.primary_key
    try:
        return bool(harper.search_by_value(found.name, key, "*", (key,), limit=1))
    except HarperNotFound:
        return False
    except HarperUnauthorized:
        raise
    except (HarperRefused, HarperRowBroken):
        return True  # it has one that it cannot read


def _count(found: TableDescription) -> str:
    if not found.record_count:
        return ""
    return f"{'' if found.is_count_exact else 'about '}{found.record_count:,} "


def _require_this_ledger(table: LedgerRoute, own: str, copies: Sequence[Copy]) -> None:
    for copy in copies:
        if copy.ledger != own:
            raise OutOfStep(
                table,
                f"Harper's table {table.facts.target} is kept by the ledger {copy.ledger}, and "
                f"this is the ledger {own}",
                "If that ledger is still there, point ledger.url to it. If it is gone for good, "
                "this one can take the table over. ",
            )


def _require_same_age(
    table: LedgerRoute, before: Sequence[Mirrored], copies: Sequence[Copy], after: Newest
) -> None:
    # Other copies are of slices that the table does not have here.
    own = [copy for copy in copies if copy.slice in after.epochs]
    for copy in own:
        epoch = after.epochs[copy.slice]
        # Only the values that show it are named: a run without a plan has a new epoch, no batch.
        newer = [
            f"{what} is {theirs}, the ledger's {ours}"
            for what, theirs, ours in (
                ("Harper's newest batch", copy.batch or 0, after.batch),
                (f"the epoch of slice {copy.slice} in Harper", copy.epoch, epoch),
            )
            if theirs > ours
        ]
        if newer:
            raise OutOfStep(
                table,
                f"the ledger is older than Harper's table {table.facts.target}, as if it was "
                f"restored from a backup: {'; '.join(newer)}",
                "If there is a newer ledger, put that back. ",
            )
    there = {copy.slice: copy for copy in own}
    for known in before:
        copy = there.get(
            known.slice, Copy(slice=known.slice, ledger="", epoch=0, batch=0, deadline=0.0)
        )
        # Only the batch counts: a renewal that takes effect late writes an older epoch, no batch.
        if known.slice not in there or (copy.batch or 0) < known.batch:
            raise OutOfStep(
                table,
                f"Harper's table {table.facts.target} is older than the ledger, as if it was "
                f"restored from a backup: Harper's newest batch is {copy.batch or 0} (epoch "
                f"{copy.epoch}), and the ledger has seen {known.batch} there (epoch "
                f"{known.epoch})",
            )

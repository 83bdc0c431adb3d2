"""These errors say what can go wrong with the ledger.

LedgerError
├── LedgerUnavailable     the database cannot be reached or stays busy: trying again may help
├── LedgerRefused         the database or its contents forbid it: trying again cannot help
│   ├── LedgerTooNew      a newer release has migrated this ledger
│   └── LedgerNotWritable its disk is full, or its file or folder cannot be written
├── LeaseHeld             someone else may still write these slices
├── LeaseLost             the lease ended or went to someone else; nothing was recorded
├── LedgerConflict        a row is not in the state that the step expects
│   ├── TableChanged      a table is declared otherwise than it was first synced
│   ├── UnknownBatches    a target has taken batches that this ledger has not planned
│   └── SchemaMoved       another run has recorded a schema meanwhile
├── PlanRefused           the batches would break the order of positions, schemas or cells
├── PositionsNotComparable  nobody can say which of two positions of the source is the newer
└── ConservationBroken    rows read are not the rows accounted for
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bq_harper_assets.errors import BqhError, TransientError


class LedgerError(BqhError):
    """Every error of the ledger is one of these."""


class LedgerUnavailable(LedgerError, TransientError):
    """The database cannot be reached or stays busy."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(
            f"the ledger at {address} is not available: {why}. What it holds is safe, and a step"
            " that was cut off is done whole or not at all. Check that the database runs and that"
            " ledger.url in the profile is right, then type: bqh doctor"
        )
        self.address = address


class LedgerRefused(LedgerError):
    """The database, or what it holds, forbids the step."""


class LedgerTooNew(LedgerRefused):
    """A newer release has migrated this ledger."""

    def __init__(self, address: str, revision: str, release: str | None) -> None:
        needed = f"release {release} or a newer one" if release else "a newer release"
        super().__init__(
            f"the ledger at {address} has the layout {revision}, which this release does not know:"
            f" {needed} has opened it. Nothing was changed. Run {needed}, put back the copy of the"
            " ledger from before (docs/ledger.md says how), or set ledger.url in the profile to"
            " another ledger"
        )
        self.revision = revision
        self.release = release


class LedgerNotWritable(LedgerRefused):
    """The ledger's disk is full, or its file or folder is not writable: a person has to act."""

    def __init__(self, address: str, why: str, *, is_full: bool) -> None:
        what = "is on a disk that is full" if is_full else "cannot be written"
        cure = "Free some space" if is_full else "Make it writable (its rights, its mount)"
        super().__init__(
            f"the ledger at {address} {what}: {why}. What it holds is safe, and a step that was cut"
            f" off is done whole or not at all. {cure}, then type the same command again"
        )
        self.address = address


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A holder says who has a slice's lease; without an owner the lease is free."""

    slice: int
    owner: str | None
    epoch: int
    until: datetime | None
    since: datetime | None = None
    host: str | None = None  # the host of its process, if the ledger knows

    def __str__(self) -> str:
        if self.owner is None or self.until is None:
            return f"slice {self.slice} is free (epoch {self.epoch})"
        until = self.until.isoformat(timespec="milliseconds")
        where = f", on {self.host}" if self.host else ""
        return f"slice {self.slice}: {self.owner} until {until} (epoch {self.epoch}{where})"


def _list(holders: Sequence[Holder]) -> str:
    return "; ".join(str(holder) for holder in holders)


class LeaseHeld(LedgerError, TransientError):
    """Someone else, or an earlier try of the same run, may still write these slices."""

    def __init__(
        self,
        table: str,
        holders: Sequence[Holder],
        then: str | None = None,
        asked_by: str | None = None,
    ) -> None:
        self.is_own = {holder.owner for holder in holders} == {asked_by}
        if self.is_own:
            text = (
                f"{table} is still held by an earlier try of this run: {_list(holders)}. A request"
                " of that try may still take effect, so nothing is begun before the lease expires,"
                " and nothing was changed. If no further try is made, type then:"
            )
        else:
            text = (
                f"{table} is being moved by someone else: {_list(holders)}. No lease was taken and"
                " nothing was changed. Let that run end, or its lease expire, then type:"
            )
        super().__init__(f"{text} {then or f'bqh sync {table}'}")
        self.table = table
        self.holders = tuple(holders)

    @property
    def who(self) -> str:
        """Names each run that holds some of the slices once, with its host and since when."""
        first = {holder.owner: holder for holder in reversed(self.holders) if holder.owner}
        return " and ".join(
            f"run {owner}"
            + (f" on {holder.host}" if holder.host else "")
            + (f" since {holder.since:%F %T} UTC" if holder.since else "")
            for owner, holder in sorted(first.items())
        )

    @property
    def what(self) -> str:
        """Names the lease and who has it, with a clause for each run, for whoever waits for it."""
        by_run: dict[tuple[str | None, str | None], list[Holder]] = {}
        for holder in self.holders:
            by_run.setdefault((holder.owner, holder.host), []).append(holder)
        return f"the lease of {self.table}, held by " + " and by ".join(
            f"{'an earlier try of this run' if self.is_own else f'run {owner}'}"
            f"{f' on {host}' if host else ''}, which must renew it or lose it at"
            f" {max(each.until for each in held if each.until):%H:%M:%S} UTC"
            for (owner, host), held in by_run.items()
        )


class LeaseLost(LedgerError, TransientError):
    """The lease ended or went to someone else."""

    def __init__(self, table: str, step: str, holders: Sequence[Holder], now: datetime) -> None:
        super().__init__(
            f"cannot {step} for {table}: the lease is no longer this run's (it is"
            f" {now.isoformat(timespec='milliseconds')} in the ledger). Now {_list(holders)}."
            f" Cells committed before are safe; the others are done again by: bqh sync {table}"
        )
        self.table = table
        self.holders = tuple(holders)


class LedgerConflict(LedgerError):
    """A row is not in the state that the step expects."""


class TableChanged(LedgerConflict):
    """A table is declared differently from how it was first synced."""

    exit_code = 2  # what the user wrote is wrong, and nothing was started


class UnknownBatches(LedgerConflict):
    """A target has taken batches of which this ledger has none, or other ones of these numbers."""

    def __init__(self, table: str, numbers: Sequence[int]) -> None:
        several = len(numbers) > 1
        super().__init__(
            f"the target of {table} has taken {'batches' if several else 'batch'}"
            f" {', '.join(map(str, numbers))}, and this ledger has not planned"
            f" {'them' if several else 'it'} so, as if it was restored from a backup"
        )
        self.numbers = tuple(numbers)


class SchemaMoved(LedgerConflict, TransientError):
    """Another run has recorded a schema since this one read the newest version."""

    def __init__(self, table: str, seen: int, newest: int) -> None:
        super().__init__(
            f"another run has recorded schema version {newest} of {table}, and this one has read"
            f" the source's columns when {seen} was the newest. Nothing was recorded. Read them"
            f" again: bqh sync {table}"
        )
        self.newest = newest


class PlanRefused(LedgerError):
    """The batches would break the order of positions, schemas or cells."""

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f"cannot plan batches for {table}: {why}. Nothing was planned or changed. See where"
            f" the table stands with: bqh status {table}"
        )
        self.table = table


class PositionsNotComparable(LedgerError):
    """Nobody can say which of two positions of a table's source is the newer one."""

    def __init__(self, table: str, newest: str, given: str) -> None:
        super().__init__(
            f"{table} was last planned at the position {newest} of its source, which is at {given}"
            " now, and each may have what the other lacks: the source may have been restored or"
            " replaced. Nothing was planned or changed, and what is committed stays as it is. Go"
            " back to a source that goes on from the former position, or let every cell be compared"
            f" with the source as it is now: bqh reconcile {table}"
        )
        self.table = table
        self.newest = newest
        self.given = given


class ConservationBroken(LedgerError):
    """Rows read are not the rows accounted for."""

    def __init__(self, table: str, cell: str, sums: str) -> None:
        super().__init__(
            f"cell {cell} of {table} does not add up: {sums}. It was not committed, and none of"
            f" the cells sent with it. Do it again: bqh sync {table}"
        )
        self.table = table

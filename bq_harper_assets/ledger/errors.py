"""What can go wrong with the ledger.

LedgerError
├── LedgerUnavailable     the database cannot be reached or stays busy: trying again may help
├── LedgerRefused         the database or its contents forbid it: trying again cannot help
│   └── LedgerTooNew      a newer release has migrated this ledger
├── LeaseHeld             someone else may move these slices now
├── LeaseLost             the lease ended or went to someone else; nothing was recorded
├── LedgerConflict        a row is not in the state that the step expects
│   ├── TableChanged      a table is declared otherwise than it was first synced
│   └── SchemaMoved       another run has recorded a schema meanwhile
├── PlanRefused           the batches would break the order of snapshots, schemas or cells
└── ConservationBroken    rows read are not the rows accounted for
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bq_harper_assets.errors import BqhError


class LedgerError(BqhError):
    """Every error of the ledger."""


class LedgerUnavailable(LedgerError):
    """The database cannot be reached or stays busy."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"the ledger at {place} is not available: {why}. What it holds is safe, and a step that"
            " was cut off is done whole or not at all. Check that the database runs and that"
            " ledger.url in the profile is right, then type: bqh doctor"
        )
        self.place = place


class LedgerRefused(LedgerError):
    """The database, or what it holds, forbids the step."""


class LedgerTooNew(LedgerRefused):
    """A newer release has migrated this ledger."""

    def __init__(self, place: str, revision: str) -> None:
        super().__init__(
            f"the ledger at {place} has the layout {revision}, which this release does not know: a"
            " newer release has opened it. Nothing was changed. Run that release, or set ledger.url"
            " in the profile to another ledger"
        )
        self.revision = revision


@dataclass(frozen=True)
class Holder:
    """Who has a slice's lease; no owner means that it is free."""

    slice: int
    owner: str | None
    epoch: int
    until: datetime | None

    def __str__(self) -> str:
        if self.owner is None or self.until is None:
            return f"slice {self.slice} is free (epoch {self.epoch})"
        until = self.until.isoformat(timespec="milliseconds")
        return f"slice {self.slice}: {self.owner} until {until} (epoch {self.epoch})"


def _list(holders: Sequence[Holder]) -> str:
    return "; ".join(str(holder) for holder in holders)


class LeaseHeld(LedgerError):
    """Someone else may move these slices now."""

    def __init__(self, table: str, holders: Sequence[Holder], then: str | None = None) -> None:
        super().__init__(
            f"{table} is being moved by someone else: {_list(holders)}. No lease was taken and"
            " nothing was changed. Let that run end, or its lease expire, then type:"
            f" {then or f'bqh sync {table}'}"
        )
        self.table = table
        self.holders = tuple(holders)


class LeaseLost(LedgerError):
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
    """A table is declared otherwise than it was first synced."""


class SchemaMoved(LedgerConflict):
    """Another run has recorded a schema since this one looked."""

    def __init__(self, table: str, seen: int, newest: int) -> None:
        super().__init__(
            f"another run has recorded schema version {newest} of {table}, and this one has read"
            f" the source's columns when {seen} was the newest. Nothing was recorded. Read them"
            f" again: bqh sync {table}"
        )
        self.newest = newest


class PlanRefused(LedgerError):
    """The batches would break the order of snapshots, schemas or cells."""

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f"cannot plan batches for {table}: {why}. Nothing was planned or changed. See where"
            f" the table stands with: bqh status {table}"
        )
        self.table = table


class ConservationBroken(LedgerError):
    """Rows read are not the rows accounted for."""

    def __init__(self, table: str, cell: str, sums: str) -> None:
        super().__init__(
            f"cell {cell} of {table} does not add up: {sums}. It was not committed, and none of"
            f" the cells sent with it. Do it again: bqh sync {table}"
        )
        self.table = table

"""What goes into the ledger and what comes out: plain, frozen data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class Mode(StrEnum):
    """How a cell is moved."""

    COPY = "copy"  # never touched before
    NUMBER = "number"  # keyless with equal rows, which are numbered first
    RECONCILE = "reconcile"  # may hold rows: compared, and what differs is put right
    TOPUP = "topup"  # open and as it was committed: only what came since is written


class BatchState(StrEnum):
    """Where a batch is in its life."""

    PLANNED = "planned"  # rows may have been written
    APPLIED = "applied"
    FAILED = "failed"  # rows may have been written
    REFUSED = "refused"  # by the guard, before the first write


class CellState(StrEnum):
    """Only a synced cell without marks is known to hold what its newest commit says."""

    PLANNED = "planned"
    SYNCED = "synced"
    FAILED = "failed"
    REFUSED = "refused"
    TOUCHED = "touched"  # never planned as it is now, but it may hold rows


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """What must not change while a table's cells are to keep their meaning."""

    name: str
    source: str
    target: str
    timestamp_column: str
    key: tuple[str, ...]  # empty: the whole row
    window: timedelta
    slices: int


@dataclass(frozen=True)
class LogicalTable:
    """A registered table: how all other calls name it."""

    id: int
    facts: TableFacts

    @property
    def name(self) -> str:
        """The contract's id."""
        return self.facts.name


@dataclass(frozen=True, kw_only=True)
class SchemaVersion:
    """A table's columns under an immutable number, counted from 1."""

    version: int
    body: Mapping[str, Any]
    recorded_at: datetime
    by: str = ""
    cause: str = ""  # what led to it: a sync, drift, a command
    changes: tuple[Mapping[str, Any], ...] | None = None  # as told then; None: not kept
    source_fingerprint: str | None = None  # of the source's columns and layout; None: not kept


@dataclass(frozen=True)
class NewestVersion:
    """The number of a table's newest schema version, without its columns."""

    version: int
    recorded_at: datetime


@dataclass(frozen=True, order=True)
class CellKey:
    """One window of one slice."""

    window_start: datetime
    window_end: datetime
    slice: int

    def __str__(self) -> str:
        return f"{self.window_start:%Y-%m-%dT%H:%M}|s{self.slice:02d}"


@dataclass(frozen=True)
class Lease:
    """The right to move one slice, until `expires_at` by the ledger's clock."""

    slice: int
    epoch: int
    expires_at: datetime
    deadline: float  # on the owner's monotonic clock, counted from when it asked


@dataclass(frozen=True)
class Leases:
    """Leases taken together; `renew` gives new ones with later deadlines."""

    table: LogicalTable
    owner: str
    held: tuple[Lease, ...]

    @property
    def deadline(self) -> float:
        """Until when the owner may count on all of them, on its monotonic clock."""
        return min(lease.deadline for lease in self.held)

    @property
    def slices(self) -> tuple[int, ...]:
        """In ascending order."""
        return tuple(lease.slice for lease in self.held)

    @property
    def epochs(self) -> dict[int, int]:
        """Epoch by slice."""
        return {lease.slice: lease.epoch for lease in self.held}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A cell to move; what nobody ever named is moved in this mode, the rest is reconciled.

    A top-up is granted to a clean open cell that is held up to `since`.
    """

    cell: CellKey
    mode: Mode
    fingerprint: str  # of the window up to `upto`, at the plan's T
    upto: datetime | None = None  # None: the whole window
    since: datetime | None = None

    @property
    def end(self) -> datetime:
        """Up to where the batch covers its window."""
        return self.upto or self.cell.window_end


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One cell to be moved once, under the lease of one epoch."""

    table: LogicalTable
    seq: int
    cell: CellKey
    mode: Mode
    t: datetime
    schema_version: int
    epoch: int
    upto: datetime
    since: datetime | None = None  # of a top-up: up to where the cell is held already


@dataclass(frozen=True)
class Mark:
    """A cell that is about to lose or get a row by a write that is not its own."""

    cell: CellKey
    row_time: datetime  # the row's timestamp in this cell
    reason: str


@dataclass(frozen=True)
class Intent:
    """What a batch is about to take out of its cell."""

    batch: Batch
    rows: int  # that will be lost: net of those gained; 0 for a batch that replaces as many
    held: int  # by the target, before


@dataclass(frozen=True)
class Rejection:
    """A row the target refused; `payload` shows it, a replay reads the source again."""

    row_id: str | None
    reason: str
    payload: str


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What moving a cell did. `quarantined` and `rejections` come from different counters."""

    read: int
    written: int
    unchanged: int
    quarantined: int
    digest: str
    deleted: int = 0
    moved: int = 0  # left for another cell, and brought up to date there
    flagged: int = 0  # gone from the source, and shown as deleted
    kept: int = 0  # gone from the source, and left as they are
    held: int = 0  # by the target before, where that was looked at
    bytes: int = 0
    seconds: float = 0.0
    rejections: tuple[Rejection, ...] = field(default=())

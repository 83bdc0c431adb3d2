"""These records go into the ledger and come out of it: plain, frozen data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class Mode(StrEnum):
    """A mode says how a cell is written."""

    COPY = "copy"  # no batch or mark ever named the cell
    NUMBER = "number"  # keyless with equal rows, which are numbered before they are written
    RECONCILE = "reconcile"  # the cell may hold rows: they are compared, and corrected
    TOPUP = "topup"  # open and as it was committed: only rows that came since are written


class BatchState(StrEnum):
    """A batch state says where a batch is in its life."""

    PLANNED = "planned"  # rows may have been written
    APPLIED = "applied"
    FAILED = "failed"  # rows may have been written
    REFUSED = "refused"  # stopped by the delete guard, before the first write


class CellState(StrEnum):
    """A cell state says what happened to a cell last.

    Only a synced cell without marks is known to hold what its newest commit says.
    """

    PLANNED = "planned"
    SYNCED = "synced"
    FAILED = "failed"
    REFUSED = "refused"
    TOUCHED = "touched"  # not planned since it was made or distrusted, but it may hold rows


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """The table facts must not change, or a table's cells would mean something else."""

    name: str
    source: str
    target: str
    timestamp_column: str
    key: tuple[str, ...]  # empty if the whole row is the key
    window: timedelta
    slices: int


@dataclass(frozen=True)
class LogicalTable:
    """A logical table is a registered table; all other calls name it by this."""

    id: int
    facts: TableFacts

    @property
    def name(self) -> str:
        """Gives the contract's id."""
        return self.facts.name


@dataclass(frozen=True, kw_only=True)
class SchemaVersion:
    """A schema version has a table's columns under a number that never changes, counted from 1."""

    version: int
    body: Mapping[str, Any]
    recorded_at: datetime
    by: str = ""
    cause: str = ""  # why it was recorded: a sync, drift, a command
    changes: tuple[Mapping[str, Any], ...] | None = None  # as worded then; None if not kept
    source_fingerprint: str | None = None  # counts its columns and layout; None if not kept


@dataclass(frozen=True)
class NewestVersion:
    """The newest version of a table's schema is given by its number, without its columns."""

    version: int
    recorded_at: datetime


@dataclass(frozen=True, order=True)
class CellKey:
    """A cell key names one window of one slice."""

    window_start: datetime
    window_end: datetime
    slice: int

    def __str__(self) -> str:
        return f"{self.window_start:%Y-%m-%dT%H:%M}|s{self.slice:02d}"


@dataclass(frozen=True)
class Lease:
    """A lease is the right to write one slice, until `expires_at` by the ledger's clock."""

    slice: int
    epoch: int
    expires_at: datetime
    deadline: float  # on the owner's monotonic clock, counted from when it sent its request


@dataclass(frozen=True)
class Leases:
    """The leases were taken together; `renew` gives new ones with later deadlines."""

    table: LogicalTable
    owner: str
    held: tuple[Lease, ...]

    @property
    def deadline(self) -> float:
        """Says until when the owner may rely on all leases, on its monotonic clock."""
        return min(lease.deadline for lease in self.held)

    @property
    def slices(self) -> tuple[int, ...]:
        """Gives the slices in ascending order."""
        return tuple(lease.slice for lease in self.held)

    @property
    def epochs(self) -> dict[int, int]:
        """Gives the epoch of each slice's lease."""
        return {lease.slice: lease.epoch for lease in self.held}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A wanted cell is one that a turn asks to write, with the mode for an unknown cell.

    A cell that some batch or mark has named is reconciled instead. A top-up is granted to a clean
    open cell that is committed up to `since`.
    """

    cell: CellKey
    mode: Mode
    fingerprint: str  # of the window up to `upto`, at the plan's T
    upto: datetime | None = None  # None for the whole window
    since: datetime | None = None

    @property
    def end(self) -> datetime:
        """Says up to where the batch covers its window."""
        return self.upto or self.cell.window_end


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch writes one cell once, under the lease of one epoch."""

    table: LogicalTable
    seq: int
    cell: CellKey
    mode: Mode
    t: datetime  # when its source was pinned
    rank: int  # of its position
    schema_version: int
    epoch: int
    upto: datetime
    since: datetime | None = None  # where a top-up begins: the cell is committed up to here


@dataclass(frozen=True)
class Mark:
    """A mark names a cell that will lose or get a row by the write of another cell."""

    cell: CellKey
    row_time: datetime  # the row's timestamp in this cell
    reason: str


@dataclass(frozen=True)
class Intent:
    """An intent says what a batch is about to delete or flag in its cell."""

    batch: Batch
    rows: int  # rows that will be lost, less those gained; 0 for a batch that replaces as many
    held: int  # rows that the target held before


@dataclass(frozen=True)
class Rejection:
    """A rejection is a row that the target did not take; `payload` shows it to a person.

    A replay does not use the payload: it reads the source again.
    """

    row_id: str | None
    reason: str
    payload: str


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """A cell result counts what a batch did to its cell.

    `quarantined` and `rejections` come from different counters, so that they can be compared.
    """

    read: int
    written: int
    unchanged: int
    quarantined: int
    digest: str
    deleted: int = 0
    moved: int = 0  # rows that are in another cell now, and were written there
    flagged: int = 0  # gone from the source, and flagged as deleted
    kept: int = 0  # gone from the source, and left as they are in the target
    held: int = 0  # rows that the target held before, where they were counted
    bytes: int = 0
    seconds: float = 0.0
    rejections: tuple[Rejection, ...] = field(default=())

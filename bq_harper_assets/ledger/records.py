"""These records go into the ledger and come out of it: plain, frozen data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from bq_harper_assets.instants import MICROSECOND, instant_at, micros_at


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


class CutBy(StrEnum):
    """A route divides its rows by their time or by their key."""

    TIME = "time"  # into windows
    KEY = "key"  # into ranges, whose bounds are recorded once


@dataclass(frozen=True, kw_only=True)
class RouteFacts:
    """The route's facts must not change, or its cells would mean something else."""

    name: str
    table: str  # the logical table's name
    source: str
    target: str
    timestamp_column: str
    key: tuple[str, ...]  # empty if the whole row is the key
    window: timedelta | None  # None if the rows are cut by key
    slices: int

    @property
    def cut(self) -> CutBy:
        """Says by what the rows are divided."""
        return CutBy.KEY if self.window is None else CutBy.TIME

    @property
    def step(self) -> int:
        """Gives the length of each range on the cut's axis: microseconds, or one number."""
        return 1 if self.window is None else self.window // MICROSECOND


@dataclass(frozen=True)
class LedgerRoute:
    """A route is one registered way of a logical table's rows; all other calls name it by this."""

    id: int
    table_id: int  # the logical table's, whose schema versions all its routes share
    facts: RouteFacts

    @property
    def name(self) -> str:
        """Gives the contract's id."""
        return self.facts.name


@dataclass(frozen=True)
class KeyRangeRecord:
    """A key range record has the keys from `low` on and before `high`, in the source's order."""

    number: int
    low: str | None  # None if it has no first key
    high: str | None  # None if it has no end


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
    """A cell key names one range of one slice, by whole numbers on the axis of the route's cut.

    A window counts microseconds since 1970; a key range has its number, and ends at the next one.
    """

    start: int
    end: int
    slice: int

    @classmethod
    def of_window(cls, start: datetime, end: datetime, slice: int) -> Self:
        """Names a window of a slice."""
        return cls(micros_at(start), micros_at(end), slice)

    @classmethod
    def of_range(cls, number: int, slice: int) -> Self:
        """Names a key range of a slice."""
        return cls(number, number + 1, slice)

    @property
    def is_key_range(self) -> bool:
        """Says whether it is a key range: no window is as short as a microsecond."""
        return self.end - self.start == 1

    @property
    def window_start(self) -> datetime:
        """Gives the instant at which the window begins."""
        return instant_at(self.start)

    @property
    def window_end(self) -> datetime:
        """Gives the instant at which the window ends."""
        return instant_at(self.end)

    def __str__(self) -> str:
        if self.is_key_range:
            return f"range {self.start}|s{self.slice:02d}"
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

    route: LedgerRoute
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
    open cell that is committed up to `since`. A key range is always moved whole.
    """

    cell: CellKey
    mode: Mode
    fingerprint: str  # of the window up to `upto`, at the plan's T
    upto: datetime | None = None  # None for the whole range
    since: datetime | None = None

    @property
    def end(self) -> datetime:
        """Says up to where the batch covers its range; the end of a key range is no real time."""
        return self.upto or self.cell.window_end


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch writes one cell once, under the lease of one epoch."""

    route: LedgerRoute
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


@dataclass(frozen=True, kw_only=True)
class AppliedBatch:
    """An applied batch is one that a transactional target says it has taken.

    Its number alone does not make it itself: a ledger that was restored gives numbers again.
    """

    seq: int
    cell: CellKey
    t: datetime  # as planned, like the next two
    epoch: int
    run_id: str
    result: CellResult

    @classmethod
    def of(cls, batch: Batch, run_id: str, result: CellResult) -> Self:
        """Returns what a target remembers of a batch of this run."""
        return cls(
            seq=batch.seq,
            cell=batch.cell,
            t=batch.t,
            epoch=batch.epoch,
            run_id=run_id,
            result=result,
        )

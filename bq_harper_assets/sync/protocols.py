"""The interface that stores implement: what the engine asks of a source and of a target.

A route names both. A source is pinned at one instant and gives its rows in splits, one or more to a
Spark task. A target takes rows and can be read back. What is sent to a task is picklable and holds
no open connection and no secret.

The engine knows rows by their cell, id hash and row hash. How a store spells a value, lays out an
id or sends a request stays behind this page.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
import pyarrow as pa

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import Position
from bq_harper_assets.ledger.records import (
    AppliedBatch,
    Batch,
    Leases,
    LedgerRoute,
    RouteFacts,
)
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.schema.logical import TableSchema
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.arrays.arrow_memory import Int64s, UInt64s
from bq_harper_assets.sync.cells.cut import Cut
from bq_harper_assets.sync.identity.faults import RowFault

if TYPE_CHECKING:
    from bq_harper_assets.sync.source.cell_rows import CellRows, Reading
    from bq_harper_assets.sync.spark.receipts import RejectedRow

DeletePolicy = Literal["mirror", "keep", "flag"]
KeyValues = Sequence[Any]  # the values of one row's key columns, as the target has stored them
FLAGGED = np.uint64(0xFFFFFFFFFFFFFFFF)  # the hash of a row that the target marks as deleted


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """A fingerprint identifies the rows of one range, whatever their order."""

    rows: int = 0
    distinct: int = 0  # it is less than rows if some rows are equal in the columns that make ids
    xor: int = 0
    low: int = 0  # the halves of the hashes are summed apart: a whole sum would overflow
    high: int = 0

    @property
    def text(self) -> str:
        """Returns the text that the ledger stores."""
        xor = self.xor & (2**64 - 1)
        return f"{self.rows}:{self.distinct}:{xor:016x}:{self.low:x}:{self.high:x}"


class Split(Protocol):
    """A split is a part of a pinned source's rows; a task reads it, again with the same rows."""

    @property
    def name(self) -> str:
        """Names the split among those of its source."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Reads the rows, under the names that the source has for their columns."""
        ...


class PinnedSource(Protocol):
    """A pinned source is the rows of a contract as they were at one instant T.

    It knows how its route cuts the rows: `begin` and `end` are points on the axis of that cut.
    """

    @property
    def t(self) -> datetime:
        """Returns T, by the clock of the source."""
        ...

    @property
    def position(self) -> Position:
        """Returns the point in the source's history that it is pinned at."""
        ...

    @property
    def plan(self) -> TablePlan:
        """Returns the plan of the columns that are read."""
        ...

    @property
    def has_past(self) -> bool:
        """Says whether rows of an earlier instant can be read, as far as `keeps` says."""
        ...

    @property
    def bytes_read(self) -> int:
        """Returns the bytes that the source estimates for all splits so far; 0 if it does not."""
        ...

    def keeps(self, t: datetime) -> bool:
        """Says whether the source can still be read as it was at `t`."""
        ...

    def at(self, t: datetime, then: TableVersion) -> Self:
        """Returns the same columns at another instant, under the names that `then` has for them."""
        ...

    def restricted(self, paths: Collection[str]) -> Self:
        """Returns the source with these columns and fields only."""
        ...

    def fingerprints(self, begin: int, end: int) -> Mapping[int, Fingerprint]:
        """Returns the fingerprint of the rows of [begin, end) in each range, by its start."""
        ...

    def are_unchanged(self, spans: Sequence[tuple[int, int, datetime]]) -> list[bool]:
        """Says of each (begin, end, since) whether its rows surely have not changed since.

        A source that cannot say so without reading rows answers no.
        """
        ...

    def splits(self, begin: int, end: int, most: int) -> Sequence[Split]:
        """Returns splits with the rows of [begin, end), and no others; about `most` of them."""
        ...

    def splits_at(self, instants: Sequence[datetime], most: int) -> Sequence[Split]:
        """Returns splits with the rows of these times, and no others."""
        ...

    def times_of_keys(self, keys: Sequence[KeyValues]) -> Mapping[int, int | None]:
        """Looks rows up by key; returns the times, in microseconds, of those it has, by index."""
        ...

    def times_of_keys_now(self, keys: Sequence[KeyValues]) -> Mapping[int, int | None]:
        """Does what times_of_keys() does in the source as it is now, which is later than T."""
        ...

    def asked_again(self, keys: Sequence[KeyValues]) -> AbstractContextManager["PinnedSource"]:
        """Pins the rows that the source has for these keys now."""
        ...

    def require_unique_key(self) -> None:
        """Raises KeyNotUnique if several rows share a key."""
        ...


class Source(Protocol):
    """A source is a store that is open for reading a contract's rows."""

    @property
    def bytes_billed(self) -> int:
        """Returns the bytes that the store has billed so far; 0 where it bills nothing."""
        ...

    @property
    def calls_sent(self) -> int:
        """Returns how many calls were sent to the store so far."""
        ...

    def schema(self, contract: TableContract) -> TableSchema:
        """Reads the columns that the source has now."""
        ...

    def planned(self, contract: TableContract, before: TableVersion | None = None) -> TablePlan:
        """Plans the target's table by the columns that the source has now.

        `before` is the version that the planned one follows.
        """
        ...

    def pinned(
        self,
        contract: TableContract,
        begin: int,
        end: int,
        before: TableVersion | None = None,
    ) -> AbstractContextManager[PinnedSource]:
        """Pins the rows of [begin, end); `before` is the version that the planned one follows."""
        ...


class RowLayout(Protocol):
    """A row layout says how a target names and identifies rows; it is sent to the tasks."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names the columns, in order, as the target does."""
        ...

    @property
    def timestamp(self) -> str:
        """Names the column that has a row's time."""
        ...

    @property
    def key(self) -> tuple[str, ...]:
        """Names the columns of the key; empty if the whole row is the key."""
        ...

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns rows of the source under the target's names."""
        ...

    def what_ids_are_made_of(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Returns the columns that ids of rows without a key are made of; None means all."""
        ...

    def ids_of_key(self, batch: pa.RecordBatch) -> tuple[pa.Array, tuple[RowFault, ...]] | None:
        """Returns ids that are the values of the key; None if ids are hashes of it."""
        ...


class TableAction(StrEnum):
    """A table action says what had to be done to a target's table."""

    CREATED = "created"
    UP_TO_DATE = "up_to_date"
    MIGRATED = "migrated"


@dataclass(frozen=True)
class Ensured:
    """Ensured is what was done to the target's table, and what the table cannot offer."""

    action: TableAction
    added: tuple[str, ...] = ()  # attributes that have got an index now
    unindexed: tuple[str, ...] = ()  # they were declared without one, and none can be added later


@dataclass(frozen=True, kw_only=True)
class LeaseTerms:
    """Lease terms are sent to the tasks; their times are wall-clock seconds of the driver."""

    target: str
    epochs: Mapping[int, int]  # by slice
    deadline: float
    effect_within_s: float  # the longest time from a request to its effect
    max_clock_skew_s: float


@dataclass(frozen=True, kw_only=True)
class WriteOrder:
    """A write order says under which lease and in which portions tasks write."""

    lease: LeaseTerms
    synced_at: datetime
    most_rows: int  # per request
    most_bytes: int
    most_refused: int = 1_000  # by all tasks together
    clears: tuple[str, ...] = ()  # attributes that are set to NULL


@dataclass(frozen=True)
class TargetRange:
    """A target range is a part of one cell range; its bounds are as the target stores them."""

    place: int  # of the range's first cell
    low: Any
    high: Any


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Target rows are the rows that a target has in one range."""

    slices: Int64s
    ids: UInt64s  # hashes of whole ids
    hashes: UInt64s
    keys: pa.Array  # the ids themselves


class RowWriter(Protocol):
    """A row writer is what a task writes with; its counts are of what the target has answered."""

    @property
    def written(self) -> Int64s:
        """Counts the rows that were written, by place."""
        ...

    @property
    def bytes(self) -> Int64s:
        """Counts their bytes, by place."""
        ...

    @property
    def refusals(self) -> list["RejectedRow"]:
        """Returns the rows that cannot be stored."""
        ...

    @property
    def requests(self) -> int:
        """Counts the requests that were sent."""
        ...

    @property
    def retries(self) -> int:
        """Counts the requests that were sent again."""
        ...

    @property
    def unanswered_at(self) -> float | None:
        """Returns when, by the wall clock, the last write was sent that was never answered."""
        ...

    def write(self, rows: "CellRows") -> tuple[Int64s, UInt64s]:
        """Writes the rows that can be stored; returns their places and the hashes of their ids."""
        ...

    def finish(self) -> None:
        """Waits for what is under way, and removes old versions of rejected rows."""
        ...

    def close(self) -> None:
        """Waits for what is under way, also after an error, and closes."""
        ...


class TargetReader(Protocol):
    """A target reader is what a task reads a target's rows back with."""

    @property
    def extras(self) -> set[str]:
        """Returns the attributes so far that no sync wrote, where values are compared."""
        ...

    def rows(self, ranges: Sequence[TargetRange]) -> Iterator[tuple[TargetRange, TargetRows]]:
        """Reads the rows range by range."""
        ...


class TargetOfTasks(Protocol):
    """A target of tasks is sent to the executors, which open it there."""

    @property
    def waits(self) -> Path | None:
        """Returns the folder in which tasks note what they wait for, if the driver reads one."""
        ...

    def writer(self, order: WriteOrder, reading: "Reading") -> RowWriter:
        """Opens a writer; its owner closes it."""
        ...

    def reader(
        self, layout: Any, slices: int, *, deep: bool, as_written: bool
    ) -> AbstractContextManager[TargetReader]:
        """Opens a reader; `deep` hashes the values, `as_written` the stored hash with them."""
        ...

    def row_times(
        self, layout: Any
    ) -> AbstractContextManager[Callable[[pa.Array], Iterable[tuple[Any, int | None]]]]:
        """Opens a look-up of the rows that have some ids: their ids, and times in microseconds."""
        ...

    def value_hashes(self, rows: "CellRows", layout: Any, *, as_written: bool) -> UInt64s:
        """Hashes rows of the source by the values that should be stored."""
        ...

    def records(
        self, rows: "CellRows", layout: Any
    ) -> Iterator[tuple[Mapping[str, Any], str | None]]:
        """Yields each row as the record that should be stored, or the reason why it cannot be."""
        ...


class LeaseMirror(Protocol):
    """A lease mirror shows tasks, through the target, that their leases were renewed."""

    @property
    def is_unanswered(self) -> bool:
        """Says whether a copy that names a batch may still take effect."""
        ...

    def create(self) -> None:
        """Makes what the copies are kept in."""
        ...

    def show(self, leases: Leases, deadline: float, *, at_once: bool = False) -> None:
        """Writes copies with a new deadline; `at_once` gives up soon instead of waiting."""
        ...

    def show_batch(self, leases: Leases, batch: int, deadline: float | None = None) -> None:
        """Writes copies that name the newest batch; one with a deadline gives up soon."""
        ...


class Removal(Protocol):
    """A removal takes rows that are gone out of a target."""

    @property
    def all_answered(self) -> bool:
        """Says whether every delete was answered: one that was not may still be applied."""
        ...

    def remove(
        self,
        batch: Batch,
        ids: Sequence[Any],
        policy: DeletePolicy,
        primary_key: str,
        t: datetime,
    ) -> None:
        """Deletes the rows, marks them as deleted at T, or leaves them, as the policy says.

        A transactional target stages that with the batch, and does it only if it takes the batch.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class AppliedTurn:
    """An applied turn is what a transactional target took in one transaction, and remembers."""

    ledger: str  # the identity of the one that planned it
    position_kind: str
    position: str  # the text of the source's, up to which the target then holds its rows
    batches: tuple[AppliedBatch, ...]


class Transaction(Protocol):
    """A transaction takes all that a turn has staged at once, and remembers that it did.

    What is staged belongs to one batch under one epoch of its lease.
    """

    def applied(self) -> AppliedTurn | None:
        """Returns the newest turn that the target has taken; None before the first."""
        ...

    def clear(self, lease: LeaseTerms) -> None:
        """Forgets all that was staged before; the caller has just leased every slice."""
        ...

    def apply(
        self, turn: AppliedTurn, after: AppliedTurn | None, staged: Mapping[int, int]
    ) -> None:
        """Takes the staged rows and removals of these batches, or nothing.

        Raises TargetMoved if the newest turn that the target has taken is not `after`, and
        NotAllStaged if a batch has another number of staged rows than `staged` says. After any
        other error nobody knows whether the turn was taken.
        """
        ...


class Target(Protocol):
    """A target is a store's table that is open for taking a contract's rows."""

    @property
    def tasks(self) -> int:
        """Returns how many requests the target serves at once."""
        ...

    def require_in_step(self, ledger: Ledger, table: LedgerRoute) -> None:
        """Raises OutOfStep if the ledger and the target contradict each other."""
        ...

    def holds_a_row(self) -> bool:
        """Says whether the table is there and has a row."""
        ...

    def ensure(
        self,
        plan: TablePlan,
        alone: Callable[[], AbstractContextManager[object]],
        sleep: Callable[[float], None],
    ) -> Ensured:
        """Makes or evolves the table; nothing is dropped."""
        ...

    def mirror(self, ledger: Ledger, table: LedgerRoute, owner: str) -> LeaseMirror | None:
        """Returns what shows leases to tasks; None if this target's tasks need none."""
        ...

    def layout(self, plan: TablePlan, others: frozenset[str] | None = None) -> Any:
        """Returns how rows are named and identified; `others` are paths that rows may also have."""
        ...

    def known_paths(self, plan: TablePlan) -> frozenset[str]:
        """Returns the paths that rows may have besides the synced columns."""
        ...

    def keys_of(self, plan: TablePlan, ids: Sequence[Any]) -> list[KeyValues | None]:
        """Returns the key of each row; None if there is no such row, or no key in it."""
        ...

    def stored(self, layout: Any, ids: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
        """Reads the rows that have these ids, with all that they hold; returns them by id."""
        ...

    def differing(
        self, layout: Any, expected: Mapping[str, Any], actual: Mapping[str, Any]
    ) -> dict[str, tuple[Any, Any]]:
        """Compares a stored row with the record that should be stored.

        Returns the columns that differ, as (source, target).
        """
        ...

    def older_than(self, plan: TablePlan, ids: Sequence[Any], instant: datetime) -> Collection[Any]:
        """Returns those of the ids whose rows have a time before the instant."""
        ...

    def ranges(
        self, plan: TablePlan, place: int, begin: int, end: int, rows: int
    ) -> list[TargetRange]:
        """Divides [begin, end) of one range of the cut into parts that can be read back at once."""
        ...

    def of_tasks(self, spark: Any) -> TargetOfTasks:
        """Returns what the tasks of this Spark session need, without secrets."""
        ...

    def removal(self, lease: LeaseTerms) -> AbstractContextManager[Removal]:
        """Opens a removal of rows under the lease."""
        ...

    def transaction(self) -> Transaction | None:
        """Returns what takes a turn's staged rows at once; None if rows are written one by one."""
        ...


class Route(Protocol):
    """A route is one directed way of a logical table's rows, from its source to its target."""

    @property
    def contract(self) -> TableContract:
        """Returns what the user declares of the table."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Returns the ledger that coordinates the route."""
        ...

    @property
    def facts(self) -> RouteFacts:
        """Returns what must not change once the table is synced."""
        ...

    @property
    def cut(self) -> Cut:
        """Returns how the rows are divided into ranges."""
        ...

    def source(
        self, doing: str, sleep: Callable[[float], None] | None = None
    ) -> AbstractContextManager[Source]:
        """Opens the source; `doing` labels what is asked of it."""
        ...

    def target(self, retry: RetryPolicy) -> AbstractContextManager[Target]:
        """Opens the target."""
        ...

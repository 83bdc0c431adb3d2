"""A source in memory, and whole turns from it into a Harper in memory, without Spark's JVM.

It implements sync/protocols.py as a store would; it has one list of rows per instant.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import instant_at, micros_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import RouteFacts
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.schema.table_plan import TablePlan, restricted
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.target import HarperTarget, harper_target
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.protocols import Fingerprint, KeyValues
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets_tests.history.local_frames import Attempt, LocalSpark
from bq_harper_assets_tests.stores.memory_harper import ONCE, MemoryHarper
from bq_harper_assets_tests.stores.small_tables import utc

Row = Mapping[str, Any]
DAY, HOUR = utc(2026, 1, 5), timedelta(hours=1)
TYPES = {
    Kind.INT64: pa.int64(),
    Kind.STRING: pa.string(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
}
COLUMNS = (
    Column(name="n", kind=Kind.INT64),
    Column(name="ts", kind=Kind.TIMESTAMP),
    Column(name="name", kind=Kind.STRING),
)


@dataclass
class MemorySource:
    """The rows of one table at each instant at which they changed, and its columns of now."""

    contract: TableContract
    now: datetime = DAY + timedelta(days=1)
    columns: tuple[Column, ...] = COLUMNS
    history: list[tuple[datetime, list[Row]]] = field(default_factory=list)
    keeps_from: datetime = DAY
    has_past: bool = True
    while_asked_again: Callable[[], None] = lambda: None
    unchanged_since: datetime | None = None  # what it says of every span that was read after
    asked: list[tuple[str, Any]] = field(default_factory=list)
    pinned_from: list[tuple[datetime, datetime]] = field(default_factory=list)
    bytes_billed: int = 0
    calls_sent: int = 0

    def put(self, *rows: Row) -> None:
        """All its rows from now on, a second later."""
        self.now += timedelta(seconds=1)
        self.history.append((self.now, list(rows)))
        self.now += timedelta(seconds=1)

    def rows_at(self, t: datetime) -> list[Row]:
        """Its rows at that instant."""
        at = bisect_right([since for since, _ in self.history], t)
        return self.history[at - 1][1] if at else []

    def schema(self, contract: TableContract) -> TableSchema:
        return TableSchema(columns=self.columns)

    def planned(self, contract: TableContract, before: TableVersion | None = None) -> TablePlan:
        return harper_plan(contract, self.schema(contract), before)

    @contextmanager
    def pinned(
        self, contract: TableContract, begin: int, end: int, before: TableVersion | None = None
    ) -> Iterator["MemoryPin"]:
        self.bytes_billed += 10
        self.pinned_from.append((instant_at(begin), instant_at(end)))
        yield MemoryPin(self, self.planned(contract, before), self.now)


@dataclass(frozen=True, eq=False)
class MemorySplit:
    """Some rows, in batches of two."""

    name: str
    columns: tuple[Column, ...]
    rows: list[Row]

    def batches(self) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([(each.name, TYPES[each.kind]) for each in self.columns])
        for first in range(0, len(self.rows), 2):
            yield pa.RecordBatch.from_pylist(
                [dict(r) for r in self.rows[first : first + 2]], schema
            )


@dataclass(frozen=True, eq=False)
class MemoryPin:
    """The rows of one instant; `only` are those that a query was run again for."""

    source: MemorySource
    plan: TablePlan
    t: datetime
    only: tuple[KeyValues, ...] | None = None
    bytes_read: int = 7

    @property
    def position(self) -> InstantPosition:
        return InstantPosition(self.t)

    @property
    def has_past(self) -> bool:
        return self.source.has_past

    def keeps(self, t: datetime) -> bool:
        return t >= self.source.keeps_from

    def at(self, t: datetime, then: TableVersion) -> "MemoryPin":
        self.source.asked.append(("at", t))
        return replace(self, t=t)

    def restricted(self, paths: Collection[str]) -> "MemoryPin":
        return replace(self, plan=restricted(self.plan, paths))

    def fingerprints(self, begin: int, end: int) -> dict[int, Fingerprint]:
        self.source.asked.append(("fingerprints", (instant_at(begin), instant_at(end))))
        window = self.source.contract.window
        names = sorted(column.source.name for column in self.plan.columns)
        told_apart = [c.source.name for c in self.plan.id_columns] or names
        first = TimeCut(window).range_at(begin).start
        found = {}
        for each in windows_between(first, instant_at(end - 1) + window, window):
            if each.axis_start >= end:
                break
            span = (max(begin, each.axis_start), min(end, each.axis_end))
            texts = [
                json.dumps([str(row.get(name)) for name in names]) for row in self._within(*span)
            ]
            ids = [name for name in names if name in told_apart]
            different = {tuple(str(row.get(n)) for n in ids) for row in self._within(*span)}
            hashes = [blake2b(text.encode(), digest_size=8).digest() for text in texts]
            numbers = [int.from_bytes(each, "little") for each in hashes]
            found[each.axis_start] = Fingerprint(
                rows=len(texts), distinct=len(different), low=sum(numbers)
            )
        return found

    def are_unchanged(self, spans: Sequence[tuple[int, int, datetime]]) -> list[bool]:
        since = self.source.unchanged_since
        return [since is not None and since < t for _, _, t in spans]

    def splits(self, begin: int, end: int, most: int) -> list[MemorySplit]:
        self.source.asked.append(("splits", (instant_at(begin), instant_at(end), most)))
        return self._split(self._within(begin, end), most)

    def splits_at(self, instants: Sequence[datetime], most: int) -> list[MemorySplit]:
        self.source.asked.append(("splits_at", list(instants)))
        return self._split([row for row in self._rows() if row["ts"] in instants], most)

    def times_of_keys(self, keys: Sequence[KeyValues]) -> dict[int, int | None]:
        return self._times(keys, self._rows())

    def times_of_keys_now(self, keys: Sequence[KeyValues]) -> dict[int, int | None]:
        return self._times(keys, self.source.rows_at(self.source.now))

    @contextmanager
    def asked_again(self, keys: Sequence[KeyValues]) -> Iterator["MemoryPin"]:
        self.source.asked.append(("asked_again", [list(key) for key in keys]))
        self.source.while_asked_again()
        self.source.now += timedelta(seconds=1)
        yield replace(self, t=self.source.now, only=tuple(map(tuple, keys)))

    def require_unique_key(self) -> None:
        pass

    def _times(self, keys: Sequence[KeyValues], rows: Sequence[Row]) -> dict[int, int | None]:
        self.source.asked.append(("times", [list(key) for key in keys]))
        times = {self._key(r): micros_at(r["ts"]) if r["ts"] else None for r in rows}
        return {at: times[tuple(k)] for at, k in enumerate(keys) if tuple(k) in times}

    def _key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.plan.selection.key)

    def _rows(self) -> list[Row]:
        rows = self.source.rows_at(self.t)
        return rows if self.only is None else [row for row in rows if self._key(row) in self.only]

    def _within(self, begin: int, end: int) -> list[Row]:
        return [r for r in self._rows() if r["ts"] and begin <= micros_at(r["ts"]) < end]

    def _split(self, rows: list[Row], most: int) -> list[MemorySplit]:
        read = {column.source.name for column in self.plan.columns}
        columns = tuple(column for column in self.source.columns if column.name in read)
        parts = [rows[first::most] for first in range(most)]
        return [MemorySplit(str(at), columns, part) for at, part in enumerate(parts) if part]


@dataclass
class MemoryRoute:
    """From a source in memory into a Harper in memory."""

    contract: TableContract
    ledger: Ledger
    rows: MemorySource
    harper: MemoryHarper

    @property
    def facts(self) -> RouteFacts:
        return table_facts(self.contract, "p")

    @property
    def cut(self) -> TimeCut:
        return TimeCut(self.contract.window)

    def source(self, doing: str, sleep: Any = None) -> AbstractContextManager[MemorySource]:
        return nullcontext(self.rows)

    def target(self, retry: RetryPolicy) -> AbstractContextManager[HarperTarget]:
        return harper_target(self.contract, self.harper.connection, retry)


@dataclass
class Small:
    """A table in memory, whose turns a test runs."""

    route: MemoryRoute
    runs: int = 0
    opened: ExitStack = field(default_factory=ExitStack)

    @property
    def source(self) -> MemorySource:
        return self.route.rows

    @property
    def ledger(self) -> Ledger:
        return self.route.ledger

    @property
    def harper(self) -> MemoryHarper:
        return self.route.harper

    @property
    def spark(self) -> Any:
        return LocalSpark()

    def declare(self, **changes: Any) -> None:
        """Its contract, with these changes."""
        self.route.contract = small_contract(**changes)
        self.source.contract = self.route.contract

    def cells(self, *hours: int) -> list[Cell]:
        """All slices of these hours of the day."""
        cut = self.route.cut
        return [
            Cell(cut.range_at(micros_at(DAY + hour * HOUR)), number)
            for hour in hours
            for number in range(self.route.contract.slices)
        ]

    def run(self, *hours: int, **settings: Any) -> TurnReport:
        """One turn over these hours; it comes at least a second after the one before."""
        self.runs += 1
        self.source.now += timedelta(seconds=1)
        turn = Turn(
            route=self.route, spark=self.spark, run_id=f"r{self.runs}", retry=ONCE, **settings
        )
        return turn.sync(self.cells(*hours))

    @property
    def held(self) -> dict[Any, tuple[str, str]]:
        """The time and name of each row in Harper, by its number."""
        return {row["n"]: (row["ts"], row["name"]) for row in self.harper.rows("Ships")}

    @property
    def wanted(self) -> dict[Any, tuple[str, str]]:
        """What Harper should have by the source of now."""
        return {
            row["n"]: (f"{row['ts']:%Y-%m-%dT%H:%M:%S.%fZ}", row["name"])
            for row in self.source.rows_at(self.source.now)
        }


def small_contract(**changes: Any) -> TableContract:
    """Hours of the day in two slices, by a key."""
    known = {
        "id": "ships",
        "dataset": "sea",
        "table": "ships",
        "timestamp_column": "ts",
        "target_table": "Ships",
        "key": ["n"],
        "window": "1h",
        "slices": 2,
        "sync": {"start_timestamp": DAY.isoformat()},
    }
    return TableContract.model_validate({**known, **changes})


def ship(n: int, minute: float, name: str = "x") -> dict[str, Any]:
    """One row, so many minutes after midnight."""
    return {"n": n, "ts": DAY + timedelta(minutes=minute), "name": name}


@contextmanager
def small_table(ledger: Ledger, harper: MemoryHarper, **declared: Any) -> Iterator[Small]:
    """An empty table; Spark's tasks run in this thread."""
    contract = small_contract(**declared)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskContext, "_taskContext", Attempt())
        yield Small(MemoryRoute(contract, ledger, MemorySource(contract), harper))

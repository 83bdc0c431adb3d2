"""A transactional target for the tests: a SQLite file, which takes a turn at once or not at all.

It implements sync/protocols.py as a store would, shares nothing with Harper's, and ships nowhere.
Rows wait in `staged` and `leaving` until `SqlTransaction.apply` takes them under a guard.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    AppliedBatch,
    Batch,
    CellKey,
    CellResult,
    LedgerRoute,
    Rejection,
    RouteFacts,
)
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.bigquery.source import BigQuerySource, bigquery_source
from bq_harper_assets.sync.arrays.arrow_memory import Int64s, UInt64s
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.key_range import KeyCut
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.cells.window import micros_of
from bq_harper_assets.sync.errors import NotAllStaged, TargetMoved
from bq_harper_assets.sync.identity.faults import RowFault
from bq_harper_assets.sync.identity.row_id import null_keys
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.protocols import (
    FLAGGED,
    AppliedTurn,
    DeletePolicy,
    Ensured,
    LeaseTerms,
    TableAction,
    TargetRange,
    TargetRows,
    WriteOrder,
)
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading
from bq_harper_assets.sync.spark.receipts import RejectedRow
from bq_harper_assets_tests.sync.key_source import AskedOfMovedRows, BigQueryByKey
from bq_harper_assets_tests.sync.sql_types import sql_plan

TABLES = """
CREATE TABLE IF NOT EXISTS held (
  id TEXT PRIMARY KEY, micros INTEGER, hash TEXT, batch INTEGER, body TEXT, flagged INTEGER);
CREATE TABLE IF NOT EXISTS staged (
  id TEXT, micros INTEGER, hash TEXT, batch INTEGER, body TEXT, epoch INTEGER,
  PRIMARY KEY (id, batch, epoch));
CREATE TABLE IF NOT EXISTS leaving (
  id TEXT, policy TEXT, batch INTEGER, epoch INTEGER, PRIMARY KEY (id, batch, epoch));
CREATE TABLE IF NOT EXISTS turns (
  number INTEGER PRIMARY KEY, ledger TEXT, position_kind TEXT, position TEXT, batches TEXT);
"""
BY_TIME, BY_KEY = "micros", "CAST(id AS INTEGER)"  # what the rows of a range are read by
LEAVING = "SELECT id FROM leaving NATURAL JOIN ours WHERE policy = '{}'"
UNWANTED = "unwanted"  # a text that this store does not take


def connected(file: Path) -> AbstractContextManager[sqlite3.Connection]:
    """Opens the file; each statement is a transaction of its own unless one was begun."""
    return closing(sqlite3.connect(file, isolation_level=None, timeout=30))


def make_tables(file: Path) -> None:
    """Makes what is missing, and leaves alone what others have staged."""
    with connected(file) as sql:
        sql.execute("PRAGMA journal_mode = WAL")
        sql.executescript(TABLES)


@dataclass(frozen=True)
class SqlLayout:
    """Rows have the names of the source; a key of one column is the id, as text."""

    names: tuple[str, ...]
    read_as: tuple[str, ...]
    timestamp: str
    key: tuple[str, ...]

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return pa.RecordBatch.from_arrays([columns[n] for n in self.read_as], list(self.names))

    def what_ids_are_made_of(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return None

    def ids_of_key(self, batch: pa.RecordBatch) -> tuple[pa.Array, tuple[RowFault, ...]] | None:
        if len(self.key) != 1:
            return None
        array = batch.column(self.key[0])
        return pc.cast(array, pa.string()), null_keys(array, self.key[0])


def bodies(rows: CellRows, layout: SqlLayout) -> list[dict[str, Any]]:
    """Each row as JSON values."""
    return [json.loads(json.dumps(row, default=str)) for row in rows.batch.to_pylist()]


def body_hash(body: Mapping[str, Any]) -> int:
    """By which values are compared."""
    text = json.dumps(body, sort_keys=True).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


@dataclass
class SqlWriter:
    """Stages the rows of one task."""

    file: Path
    order: WriteOrder
    reading: Reading
    refusals: list[RejectedRow] = field(default_factory=list)
    requests: int = 0
    retries: int = 0
    unanswered_at: float | None = None

    def __post_init__(self) -> None:
        places = len(self.reading.grid.batches)
        self.written: Int64s = np.zeros(places, np.int64)
        self.bytes: Int64s = np.zeros(places, np.int64)

    def write(self, rows: CellRows) -> tuple[Int64s, UInt64s]:
        layout, grid = self.reading.layout, self.reading.grid
        found = bodies(rows, layout)
        fine = np.array([UNWANTED not in body.values() for body in found], np.bool_)
        fine &= rows.identity.ids.is_valid().to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(~fine):
            refused = str(rows.identity.ids[row].as_py())
            payload = json.dumps(found[row])
            place = int(rows.places[row])
            self.refusals.append(RejectedRow(place, refused, "not wanted here", payload))
        some = rows.where(fine)
        ids = some.identity.ids
        micros = micros_of(some.batch.column(layout.timestamp)).to_pylist()
        batches, epochs = self._batches_and_epochs(some.places)
        texts = [json.dumps(body) for body, ok in zip(found, fine, strict=True) if ok]
        hashes = [f"{each:016x}" for each in some.identity.row_hashes.tolist()]
        records = zip(ids.to_pylist(), micros, hashes, batches, texts, epochs, strict=True)
        with connected(self.file) as sql:
            sql.execute("BEGIN IMMEDIATE")
            sql.executemany("INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?, ?, ?)", records)
            sql.execute("COMMIT")
        self.requests += 1
        self.written += grid.count(some.places)
        return some.places, id_hashes(ids, keyless=False)

    def finish(self) -> None:
        """Old versions of refused rows go with the batch that would have brought new ones."""
        ids = [refused.row_id for refused in self.refusals]
        batches, epochs = self._batches_and_epochs([refused.place for refused in self.refusals])
        stale = zip(ids, ["mirror"] * len(ids), batches, epochs, strict=True)
        with connected(self.file) as sql:
            sql.executemany("INSERT OR REPLACE INTO leaving VALUES (?, ?, ?, ?)", stale)

    def close(self) -> None: ...

    def _batches_and_epochs(self, places: Int64s | list[int]) -> tuple[list[int], list[int]]:
        """The staging is the lease's: by batch, and by the epoch of the slice."""
        grid, at = self.reading.grid, np.asarray(places, np.int64)
        of_slices = self.order.lease.epochs
        epochs = [of_slices[number] for number in (at % grid.slices).tolist()]
        return grid.batches[at].tolist(), epochs


@dataclass
class SqlReader:
    """Reads the rows back."""

    file: Path
    layout: SqlLayout
    slices: int
    deep: bool
    axis: str
    extras: set[str] = field(default_factory=set)

    def rows(self, ranges: Sequence[TargetRange]) -> Iterator[tuple[TargetRange, TargetRows]]:
        asked = f"SELECT id, hash, body, flagged FROM held WHERE {self.axis} BETWEEN ? AND ?"
        with connected(self.file) as sql:
            for each in ranges:
                rows = sql.execute(asked, (each.low, each.high)).fetchall()
                if not rows:
                    continue
                keys = pa.array([row[0] for row in rows], pa.string())
                hashes = [
                    body_hash(json.loads(body)) if self.deep else int(stored, 16)
                    for _, stored, body, _ in rows
                ]
                marked = np.array([bool(row[3]) for row in rows], np.bool_)
                found = np.array(hashes, np.uint64)
                found[marked] = FLAGGED
                slices = slice_of(id_hashes(keys, keyless=not self.layout.key), self.slices)
                yield each, TargetRows(slices, id_hashes(keys, keyless=False), found, keys)


@dataclass(frozen=True)
class SqlOfTasks:
    """What the tasks need is the file, and by what its rows are read back."""

    file: Path
    axis: str
    waits: Path | None = None

    def writer(self, order: WriteOrder, reading: Reading) -> SqlWriter:
        return SqlWriter(self.file, order, reading)

    @contextmanager
    def reader(
        self, layout: SqlLayout, slices: int, *, deep: bool, as_written: bool
    ) -> Iterator[SqlReader]:
        yield SqlReader(self.file, layout, slices, deep, self.axis)

    @contextmanager
    def row_times(
        self, layout: SqlLayout
    ) -> Iterator[Callable[[pa.Array], Iterable[tuple[Any, int | None]]]]:
        if self.axis != BY_TIME:
            raise AskedOfMovedRows
        with connected(self.file) as sql:

            def of(ids: pa.Array) -> Iterator[tuple[Any, int | None]]:
                for row_id in ids.to_pylist():
                    yield from sql.execute("SELECT id, micros FROM held WHERE id = ?", (row_id,))

            yield of

    def value_hashes(self, rows: CellRows, layout: SqlLayout, *, as_written: bool) -> UInt64s:
        return np.array([body_hash(body) for body in bodies(rows, layout)], np.uint64)

    def records(
        self, rows: CellRows, layout: SqlLayout
    ) -> Iterator[tuple[Mapping[str, Any], str | None]]:
        return ((body, None) for body in bodies(rows, layout))


@dataclass(frozen=True)
class SqlRemoval:
    """Notes which rows leave with their batch."""

    file: Path
    all_answered: bool = True

    def __enter__(self) -> "SqlRemoval":
        return self

    def __exit__(self, *exc: object) -> None: ...

    def remove(
        self,
        batch: Batch,
        ids: Sequence[Any],
        policy: DeletePolicy,
        primary_key: str,
        t: datetime,
    ) -> None:
        if policy != "keep":
            leaving = [(row_id, policy, batch.seq, batch.epoch) for row_id in ids]
            with connected(self.file) as sql:
                sql.executemany("INSERT OR REPLACE INTO leaving VALUES (?, ?, ?, ?)", leaving)


@dataclass(frozen=True)
class SqlTransaction:
    """Takes what is staged, under a guard on the turn before."""

    file: Path

    def applied(self) -> AppliedTurn | None:
        with connected(self.file) as sql:
            return self._newest(sql)

    def clear(self, lease: LeaseTerms) -> None:
        with connected(self.file) as sql:
            sql.executescript("BEGIN IMMEDIATE; DELETE FROM staged; DELETE FROM leaving; COMMIT")

    def apply(
        self, turn: AppliedTurn, after: AppliedTurn | None, staged: Mapping[int, int]
    ) -> None:
        with connected(self.file) as sql:
            sql.execute("BEGIN IMMEDIATE")
            if self._newest(sql) != after:
                sql.execute("ROLLBACK")
                raise TargetMoved(f"{self.file.name} has taken another turn; nothing was written")
            sql.execute("CREATE TEMP TABLE ours (batch INTEGER, epoch INTEGER)")
            of_turn = [(each.seq, each.epoch) for each in turn.batches]
            sql.executemany("INSERT INTO ours VALUES (?, ?)", of_turn)
            counted = "SELECT batch, COUNT(*) FROM staged NATURAL JOIN ours GROUP BY batch"
            found = dict(sql.execute(counted).fetchall())
            for each in turn.batches:
                if found.get(each.seq, 0) != staged.get(each.seq, 0):
                    sql.execute("ROLLBACK")
                    raise NotAllStaged(
                        f"{found.get(each.seq, 0)} rows of batch {each.seq} are staged, and"
                        f" {staged.get(each.seq, 0)} were sent; nothing was written"
                    )
            sql.execute(f"DELETE FROM held WHERE id IN ({LEAVING.format('mirror')})")
            sql.execute(f"UPDATE held SET flagged = 1 WHERE id IN ({LEAVING.format('flag')})")
            sql.execute(
                "INSERT OR REPLACE INTO held SELECT id, micros, hash, batch, body, 0"
                " FROM staged NATURAL JOIN ours"
            )
            told = (turn.ledger, turn.position_kind, turn.position, _text(turn.batches))
            sql.execute(
                "INSERT INTO turns (ledger, position_kind, position, batches) VALUES (?, ?, ?, ?)",
                told,
            )
            sql.execute("DELETE FROM staged WHERE (batch, epoch) IN ours")
            sql.execute("DELETE FROM leaving WHERE (batch, epoch) IN ours")
            sql.execute("COMMIT")

    def _newest(self, sql: sqlite3.Connection) -> AppliedTurn | None:
        asked = (
            "SELECT ledger, position_kind, position, batches FROM turns"
            " ORDER BY number DESC LIMIT 1"
        )
        row = sql.execute(asked).fetchone()
        if row is None:
            return None
        ledger, kind, position, batches = row
        return AppliedTurn(
            ledger=ledger, position_kind=kind, position=position, batches=_batches(batches)
        )


def _text(batches: Sequence[AppliedBatch]) -> str:
    return json.dumps([asdict(batch) | {"t": batch.t.isoformat()} for batch in batches])


def _batches(text: str) -> tuple[AppliedBatch, ...]:
    found = []
    for told in json.loads(text):
        result = told["result"]
        rejections = tuple(Rejection(**each) for each in result.pop("rejections"))
        changed = {
            "cell": CellKey(**told["cell"]),
            "t": datetime.fromisoformat(told["t"]),
            "result": CellResult(**result, rejections=rejections),
        }
        found.append(AppliedBatch(**told | changed))
    return tuple(found)


@dataclass(frozen=True)
class SqlTarget:
    """One contract's table in a SQLite file."""

    contract: TableContract
    cut: TimeCut | KeyCut
    file: Path
    tasks: int = 2

    def require_in_step(self, ledger: Ledger, table: LedgerRoute) -> None: ...

    def holds_a_row(self) -> bool:
        with connected(self.file) as sql:
            return sql.execute("SELECT 1 FROM held LIMIT 1").fetchone() is not None

    def ensure(
        self,
        plan: TablePlan,
        alone: Callable[[], AbstractContextManager[object]],
        sleep: Callable[[float], None],
    ) -> Ensured:
        return Ensured(TableAction.UP_TO_DATE)

    def mirror(self, ledger: Ledger, table: LedgerRoute, owner: str) -> None:
        return None

    def layout(self, plan: TablePlan, others: frozenset[str] | None = None) -> SqlLayout:
        columns = plan.selection.columns
        return SqlLayout(
            names=tuple(column.name for column in columns),
            read_as=tuple(column.read_as for column in columns),
            timestamp=plan.selection.timestamp.name,
            key=plan.selection.key,
        )

    def known_paths(self, plan: TablePlan) -> frozenset[str]:
        return plan.version.known_paths

    def keys_of(self, plan: TablePlan, ids: Sequence[Any]) -> list[Sequence[Any] | None]:
        stored = self.stored(None, ids)
        names = plan.selection.key
        return [[stored[i][n] for n in names] if i in stored else None for i in ids]

    def stored(self, layout: Any, ids: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
        with connected(self.file) as sql:
            asked = "SELECT body FROM held WHERE id = ?"
            found = ((row_id, sql.execute(asked, (row_id,)).fetchone()) for row_id in ids)
            return {row_id: json.loads(row[0]) for row_id, row in found if row}

    def differing(
        self, layout: SqlLayout, expected: Mapping[str, Any], actual: Mapping[str, Any]
    ) -> dict[str, tuple[Any, Any]]:
        both = ((name, expected.get(name), actual.get(name)) for name in layout.names)
        return {name: (wanted, held) for name, wanted, held in both if wanted != held}

    def older_than(self, plan: TablePlan, ids: Sequence[Any], instant: datetime) -> set[Any]:
        with connected(self.file) as sql:
            asked = "SELECT 1 FROM held WHERE id = ? AND micros < ?"
            before = micros_at(instant)
            return {i for i in ids if sql.execute(asked, (i, before)).fetchone()}

    def ranges(
        self, plan: TablePlan, place: int, begin: int, end: int, rows: int
    ) -> list[TargetRange]:
        if isinstance(self.cut, TimeCut):
            return [TargetRange(place, begin, end - 1)]
        low, high = self.cut.range_at(begin).low, self.cut.range_at(end - 1).high
        first, last = int(low) if low else -(2**63), int(high) - 1 if high else 2**63 - 1
        return [TargetRange(place, first, last)]

    def of_tasks(self, spark: Any) -> SqlOfTasks:
        return SqlOfTasks(self.file, BY_TIME if isinstance(self.cut, TimeCut) else BY_KEY)

    def removal(self, lease: LeaseTerms) -> SqlRemoval:
        return SqlRemoval(self.file)

    def transaction(self) -> SqlTransaction:
        return SqlTransaction(self.file)


@dataclass(frozen=True)
class BigQueryToSql:
    """The route of one contract from the emulator into a SQLite file, cut by time or by key."""

    bigquery: BigQueryConnection
    file: Path
    ledger: Ledger
    contract: TableContract
    cut: TimeCut | KeyCut

    @property
    def facts(self) -> RouteFacts:
        facts = table_facts(self.contract, self.bigquery.project)
        return facts if isinstance(self.cut, TimeCut) else replace(facts, window=None)

    @contextmanager
    def source(
        self, doing: str, sleep: Callable[[float], None] | None = None
    ) -> Iterator[BigQuerySource | BigQueryByKey]:
        with bigquery_source(self.bigquery, {"bqh": doing}, sql_plan) as source:
            yield BigQueryByKey(source, self.cut) if isinstance(self.cut, KeyCut) else source

    @contextmanager
    def target(self, retry: RetryPolicy) -> Iterator[SqlTarget]:
        make_tables(self.file)
        yield SqlTarget(self.contract, self.cut, self.file)

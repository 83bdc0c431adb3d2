"""BigQuery as a source: a table at one instant, or the kept result of a query, cut by time."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import instant_at, micros_at
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.retries.breaker import PROCESS_BREAKERS
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.schema.changes import changes_between
from bq_harper_assets.schema.logical import Column, TableSchema
from bq_harper_assets.schema.table_plan import (
    Planner,
    TablePlan,
    logical_columns,
    named_as,
    restricted,
)
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.arrival_check import require_planned
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant, fingerprints
from bq_harper_assets.stores.bigquery.key_lookup import key_text, times_of_keys
from bq_harper_assets.stores.bigquery.materialised_query import (
    QueryResult,
    drop_left_over,
    drop_result,
    materialise,
    materialise_keys,
    query_of,
)
from bq_harper_assets.stores.bigquery.partition_times import is_untouched, partition_times
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.read_session import open_session, read_stream
from bq_harper_assets.stores.bigquery.schema import columns_of, read_schema
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.errors import KeyNotUnique, SourceSchemaMoved
from bq_harper_assets.sync.protocols import Fingerprint, KeyValues

if TYPE_CHECKING:
    import pyarrow as pa

EXAMPLES = 3
# BigQuery keeps the past of a table for a week; the hour less gives a query time to run.
TIME_TRAVEL = timedelta(days=6, hours=23)


@dataclass(frozen=True, kw_only=True)
class StreamSplit:
    """A stream split is one stream of a read session; it holds no open connection."""

    connection: BigQueryConnection
    name: str
    schema: bytes
    give_up_after: timedelta

    def batches(self) -> Iterator["pa.RecordBatch"]:
        """Reads the stream's rows; if it breaks, it continues where it broke."""
        calls = BigQueryCalls(self.connection, give_up_after=self.give_up_after)
        return read_stream(self.connection, self.name, self.schema, calls=calls)


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """A pinned source is the rows of a contract as they were at `t`."""

    queries: Queries
    contract: TableContract
    source: SourceAtInstant
    plan: TablePlan
    schema: TableSchema
    t: datetime
    estimates: list[int] = field(default_factory=list)  # bytes of each session, of all copies

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names, in the source, of the columns that are read."""
        return tuple(column.read_as for column in self.plan.selection.columns)

    @property
    def position(self) -> InstantPosition:
        """Returns the instant, by BigQuery's clock."""
        return InstantPosition(self.t)

    @property
    def has_past(self) -> bool:
        """Says whether it is a table, whose rows can be read as of an earlier instant."""
        return self.source.at is not None

    @property
    def bytes_read(self) -> int:
        """Returns the bytes that BigQuery estimates for all sessions; 0 where it does not."""
        return sum(self.estimates)

    def keeps(self, t: datetime) -> bool:
        """Says whether BigQuery can still read the table as it was at `t`."""
        return self.t - t < TIME_TRAVEL

    def at(self, t: datetime, then: TableVersion) -> "Pinned":
        """Returns the same columns at another instant, under the names that `then` has for them."""
        plan = named_as(self.plan, then)
        return replace(self, source=replace(_reading(self.source, plan), at=t), plan=plan, t=t)

    def restricted(self, paths: Collection[str]) -> "Pinned":
        """Returns the source with these columns and fields only.

        This lets rows that were synced without the others be compared.
        """
        plan = restricted(self.plan, paths)
        return replace(self, source=_reading(self.source, plan), plan=plan)

    def fingerprints(self, begin: int, end: int) -> Mapping[int, Fingerprint]:
        """Returns the fingerprint of each window that begins before `end`, by its start."""
        start, window = instant_at(begin), self.contract.window
        found = fingerprints(self.queries, self.source, start, instant_at(end), window)
        return {micros_at(first): each for first, each in found.items()}

    def are_unchanged(self, spans: Sequence[tuple[int, int, datetime]]) -> list[bool]:
        """Says of each (begin, end, since) whether partition times prove that it is unchanged."""
        is_partitioned = self.schema.partition_field == self.contract.timestamp_column
        if not spans or not self.has_past or not is_partitioned:
            return [False] * len(spans)
        times = partition_times(self.queries, self.source.table)
        return [
            is_untouched(times, instant_at(begin), instant_at(end), since)
            for begin, end, since in spans
        ]

    def splits(self, begin: int, end: int, most: int) -> list[StreamSplit]:
        """Opens a session that reads the rows of [begin, end)."""
        column, row_filter = self.plan.selection.timestamp, self.source.row_filter
        within = restriction.between(column, instant_at(begin), instant_at(end), row_filter)
        return self._open(within, most)

    def splits_at(self, instants: Sequence[datetime], most: int) -> list[StreamSplit]:
        """Opens a session that reads only the rows of these times; it is meant for few rows."""
        column, row_filter = self.plan.selection.timestamp, self.source.row_filter
        return self._open(restriction.at_any(column, instants, row_filter), most)

    def times_of_keys(self, keys: Sequence[KeyValues]) -> Mapping[int, int | None]:
        """Looks rows up by key at T; returns their times in microseconds, by index."""
        return self._times(self.source.sql, keys)

    def times_of_keys_now(self, keys: Sequence[KeyValues]) -> Mapping[int, int | None]:
        """Looks rows up by key in the result that the contract's query has now."""
        query = query_of(self.contract, self.queries.connection.project, self.names)
        return self._times(f"({query})", keys)

    @contextmanager
    def asked_again(self, keys: Sequence[KeyValues]) -> Iterator["Pinned"]:
        """Pins the rows that a contract's query returns for these keys now, later than T."""
        results = self.queries.connection.results_dataset
        kept = materialise_keys(
            self.queries, self.contract, self._key, _texts(keys), results, self.names
        )
        with _dropped_at_end(self.queries, kept):
            yield replace(self, source=replace(self.source, table=kept.table), t=kept.read_at)

    def require_unique_key(self) -> None:
        """Raises KeyNotUnique, with examples, if several rows share a key.

        The key of the whole table is read, because rows change windows.
        """
        require_unique_key(self.queries, self.contract, self)

    @property
    def _key(self) -> list[Column]:
        columns = {column.name: column for column in self.plan.selection.columns}
        return [columns[name] for name in self.plan.selection.key]

    def _times(self, origin: str, keys: Sequence[KeyValues]) -> Mapping[int, int | None]:
        return times_of_keys(
            self.queries,
            origin,
            self.source.row_filter,
            self._key,
            self.plan.selection.timestamp,
            _texts(keys),
            table=self.contract.id,
        )

    def _open(self, within: str, most: int) -> list[StreamSplit]:
        storage = connect_storage(self.queries.connection)
        try:
            session = open_session(
                storage,
                self.queries.calls,
                self.source.table,
                [column.read_as for column in self.source.columns],
                within,
                self.source.at,
                most,
            )
        finally:
            storage.transport.close()  # type: ignore[no-untyped-call]
        require_planned(self.contract.id, session.schema, self.plan.selection.columns)
        self.estimates.append(session.estimated_bytes)
        return [
            StreamSplit(
                connection=self.queries.connection,
                name=stream,
                schema=session.schema,
                give_up_after=self.contract.sync.give_up_after,
            )
            for stream in session.streams
        ]


@dataclass(frozen=True)
class BigQuerySource:
    """BigQuery is open for reading contracts' rows, with the labels and limits of its queries."""

    queries: Queries
    planner: Planner  # of the target's store

    @property
    def bytes_billed(self) -> int:
        """Returns the bytes that BigQuery has billed for all queries so far."""
        return self.queries.bytes_billed

    @property
    def calls_sent(self) -> int:
        """Returns how many calls were sent so far, tries that were repeated included."""
        return self.queries.calls.sent

    def schema(self, contract: TableContract) -> TableSchema:
        """Reads the columns that the source has now, with one call."""
        return source_schema(self.queries, contract)

    def planned(self, contract: TableContract, before: TableVersion | None = None) -> TablePlan:
        """Plans the target's table by the columns that the source has now, with one call."""
        return self.planner(contract, self.schema(contract), before)

    def pinned(
        self,
        contract: TableContract,
        begin: int,
        end: int,
        before: TableVersion | None = None,
    ) -> AbstractContextManager[Pinned]:
        """Pins the rows of [begin, end) at BigQuery's own time of now."""
        start, stop = instant_at(begin), instant_at(end)
        return pinned(self.queries, self.planner, contract, start, stop, before)


@contextmanager
def bigquery_source(
    connection: BigQueryConnection,
    labels: Mapping[str, str],
    planner: Planner,
    *,
    retry: RetryPolicy | None = None,
    give_up_after: timedelta | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[BigQuerySource]:
    """Opens BigQuery for reading; a bill shows what was asked under the labels."""
    calls = BigQueryCalls(
        connection,
        retry=retry,
        breakers=PROCESS_BREAKERS,
        give_up_after=give_up_after,
        sleep=sleep,
    )
    queries = Queries(calls, labels=labels)
    with queries.client:
        yield BigQuerySource(queries, planner)


def _texts(keys: Sequence[KeyValues]) -> list[list[str]]:
    return [[key_text(value) for value in values] for values in keys]


@contextmanager
def pinned(
    queries: Queries,
    planner: Planner,
    contract: TableContract,
    start: datetime,
    end: datetime,
    before: TableVersion | None = None,
) -> Iterator[Pinned]:
    """Pins the source of a contract; the kept result of a query is dropped at the end of the block.

    `before` is the schema version that the planned one follows.
    """
    schema = source_schema(queries, contract)
    plan = planner(contract, schema, before)
    with _told_if_moved(queries, planner, contract, plan.version):
        if schema.is_table and not contract.latest:
            table = _table(queries, contract)
            t = server_time(queries)
            source = _source(plan, table, t, contract.source.row_filter)
            yield Pinned(
                queries=queries, contract=contract, source=source, plan=plan, schema=schema, t=t
            )
            return
        drop_left_over(queries, queries.connection.results_dataset)
        within = restriction.between(plan.selection.timestamp, start, end)
        names = [column.read_as for column in plan.selection.columns]
        kept = materialise(queries, contract, within, queries.connection.results_dataset, names)
        with _dropped_at_end(queries, kept):
            yield Pinned(
                queries=queries,
                contract=contract,
                source=_source(plan, kept.table, None, None),
                plan=plan,
                schema=schema,
                t=kept.read_at,
            )


@contextmanager
def _dropped_at_end(queries: Queries, kept: QueryResult) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(BqhError):  # the table expires by itself, and what was read of it stays valid
            drop_result(queries, kept.table)


@contextmanager
def _told_if_moved(
    queries: Queries, planner: Planner, contract: TableContract, planned: TableVersion
) -> Iterator[None]:
    """Turns a BigQueryRefused into SourceSchemaMoved if a planned column is gone by now."""
    try:
        yield
    except BigQueryRefused as error:
        after = planner(contract, source_schema(queries, contract), planned).version
        if planned.live_names <= after.live_names:
            raise
        changes = changes_between(planned, after, contract)
        told = [f"{each.column} was {each.kind}" for each in changes if each.before]
        raise SourceSchemaMoved(contract.id, told) from error


def source_schema(queries: Queries, contract: TableContract) -> TableSchema:
    """Reads the columns that the source has now, with one call."""
    if contract.source.query is None:
        return _schema(queries, _table(queries, contract))
    query = query_of(contract, queries.connection.project)
    fields = queries.fields(query, doing="reading the columns of its query", table=contract.id)
    return TableSchema(columns=columns_of(fields), is_table=False)


def _table(queries: Queries, contract: TableContract) -> TableRef:
    return TableRef(
        queries.connection.project, contract.source.dataset or "", contract.source.table or ""
    )


def _schema(queries: Queries, table: TableRef) -> TableSchema:
    return read_schema(
        queries.client, table.project, table.dataset, table.table, calls=queries.calls
    )


def _source(
    plan: TablePlan,
    table: TableRef,
    at: datetime | None,
    row_filter: str | None,
) -> SourceAtInstant:
    selection = plan.selection
    return SourceAtInstant(
        table=table,
        columns=selection.columns,
        time_column=selection.timestamp,
        row_filter=row_filter,
        at=at,
        id_columns=logical_columns(plan.id_columns),
    )


def _reading(source: SourceAtInstant, plan: TablePlan) -> SourceAtInstant:
    return replace(
        source, columns=plan.selection.columns, id_columns=logical_columns(plan.id_columns)
    )


def require_unique_key(queries: Queries, contract: TableContract, pin: Pinned) -> None:
    """Raises KeyNotUnique, with examples, if several rows share a key.

    The key of the whole table is read, because rows change windows.
    """
    key = pin.plan.selection.key
    if not key:
        return
    names = ", ".join(quoted(name) for name in key)
    # A kept result has the rows of some windows only; `latest` leaves no doubled key anywhere.
    rows_of_all = pin.source.sql
    if not contract.latest and pin.source.at is None:
        rows_of_all = f"({query_of(contract, queries.connection.project, pin.names)})"
    known = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in key)
    rows = queries.run(
        f"SELECT {names}, COUNT(*) AS n FROM {rows_of_all}"
        f" WHERE {restriction.with_filter(known, pin.source.row_filter)}"
        f" GROUP BY {names} HAVING COUNT(*) > 1 LIMIT {EXAMPLES}",
        doing="looking for doubled keys",
        table=contract.id,
    ).rows
    if rows:
        examples = "; ".join(
            ", ".join(f"{name} = {row[name]!r}" for name in key) + f" ({row['n']} rows)"
            for row in rows
        )
        raise KeyNotUnique(
            f"the key {', '.join(key)} of {contract.id} is not unique in BigQuery: {examples}. "
            "Nothing was written. Take key out of the contract (then every row is kept), set "
            "latest: true (then the newest row of each key is), or correct the source"
        )


def oldest_row(queries: Queries, contract: TableContract) -> datetime | None:
    """Returns the time of the source's oldest row; None if it has no row."""
    name = quoted(contract.timestamp_column)
    origin = (
        f"({contract.source.query})" if contract.source.query else _table(queries, contract).sql
    )
    rows = queries.run(
        f"SELECT CAST(MIN({name}) AS TIMESTAMP) AS oldest FROM {origin}",
        doing="looking for the oldest row",
        table=contract.id,
    ).rows
    oldest: datetime | None = rows[0]["oldest"]
    return oldest

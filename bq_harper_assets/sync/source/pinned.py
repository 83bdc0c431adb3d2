"""A pinned source is what a turn reads: the table at one instant, or the kept result of a query."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.schema.changes import changes_between
from bq_harper_assets.schema.logical import TableSchema
from bq_harper_assets.schema.table_plan import TablePlan, named_as, plan_table, restricted
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant
from bq_harper_assets.stores.bigquery.materialised_query import (
    QueryResult,
    drop_left_over,
    drop_result,
    materialise,
    materialise_keys,
    query_of,
)
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.schema_reader import columns_of, read_schema
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.errors import KeyNotUnique, SourceSchemaMoved

EXAMPLES = 3


@dataclass(frozen=True)
class Pinned:
    """A pinned source is the rows of a contract as they were at `t`."""

    source: SourceAtInstant
    plan: TablePlan
    schema: TableSchema
    t: datetime

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names, in the source, of the columns that are read."""
        return tuple(column.read_as for column in self.plan.selection.columns)

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


@contextmanager
def pinned(
    queries: Queries,
    contract: TableContract,
    start: datetime,
    end: datetime,
    before: TableVersion | None = None,
) -> Iterator[Pinned]:
    """Pins the source of a contract; the kept result of a query is dropped at the end of the block.

    `before` is the schema version that the planned one follows.
    """
    schema = source_schema(queries, contract)
    plan = plan_table(contract, schema, before)
    with _told_if_moved(queries, contract, plan.version):
        if schema.is_table and not contract.latest:
            table = _table(queries, contract)
            t = server_time(queries)
            yield Pinned(_source(plan, table, t, contract.row_filter), plan, schema, t)
            return
        drop_left_over(queries, queries.connection.results_dataset)
        within = restriction.between(plan.selection.timestamp, start, end)
        names = [column.read_as for column in plan.selection.columns]
        kept = materialise(queries, contract, within, queries.connection.results_dataset, names)
        with _dropped_at_end(queries, kept):
            yield Pinned(_source(plan, kept.table, None, None), plan, schema, kept.read_at)


@contextmanager
def asked_again(
    queries: Queries, contract: TableContract, pin: Pinned, texts: Sequence[Sequence[str]]
) -> Iterator[Pinned]:
    """Pins the rows that a contract's query returns for these keys now, which is later than T."""
    selection = pin.plan.selection
    columns = {column.name: column for column in selection.columns}
    key, results = [columns[name] for name in selection.key], queries.connection.results_dataset
    kept = materialise_keys(queries, contract, key, texts, results, pin.names)
    with _dropped_at_end(queries, kept):
        yield replace(pin, source=replace(pin.source, table=kept.table), t=kept.read_at)


@contextmanager
def _dropped_at_end(queries: Queries, kept: QueryResult) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(BqhError):  # the table expires by itself, and what was read of it stays valid
            drop_result(queries, kept.table)


@contextmanager
def _told_if_moved(
    queries: Queries, contract: TableContract, planned: TableVersion
) -> Iterator[None]:
    """Turns a BigQueryRefused into SourceSchemaMoved if a planned column is gone by now."""
    try:
        yield
    except BigQueryRefused as error:
        after = plan_table(contract, source_schema(queries, contract), planned).version
        if planned.live_names <= after.live_names:
            raise
        changes = changes_between(planned, after, contract)
        told = [f"{each.column} was {each.kind}" for each in changes if each.before]
        raise SourceSchemaMoved(contract.id, told) from error


def source_schema(queries: Queries, contract: TableContract) -> TableSchema:
    """Reads the columns that the source has now, with one call."""
    if contract.custom_query is None:
        return _schema(queries, _table(queries, contract))
    query = query_of(contract, queries.connection.project)
    fields = queries.fields(query, doing="reading the columns of its query", table=contract.id)
    return TableSchema(columns=columns_of(fields), is_table=False)


def _table(queries: Queries, contract: TableContract) -> TableRef:
    return TableRef(queries.connection.project, contract.dataset or "", contract.table or "")


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
        id_columns=plan.id_columns,
    )


def _reading(source: SourceAtInstant, plan: TablePlan) -> SourceAtInstant:
    return replace(source, columns=plan.selection.columns, id_columns=plan.id_columns)


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
        f"({contract.custom_query})" if contract.custom_query else _table(queries, contract).sql
    )
    rows = queries.run(
        f"SELECT CAST(MIN({name}) AS TIMESTAMP) AS oldest FROM {origin}",
        doing="looking for the oldest row",
        table=contract.id,
    ).rows
    oldest: datetime | None = rows[0]["oldest"]
    return oldest

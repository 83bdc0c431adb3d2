"""Runs a customQuery, a view, or "newest row per key" once, and keeps its result as a table.

None of them can be read at a past instant, or twice with the same rows. So a query job writes the
result to a table of its own; T is that job's instant, and the fingerprint, the read and every retry
use the table. It is dropped after the commit; one that a killed run leaves behind is dropped by a
later run, and expires by itself on the service.
"""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.calls import NO_RETRY
from bq_harper_assets.stores.bigquery.errors import BigQueryMissing, Feature
from bq_harper_assets.stores.bigquery.key_lookup import key_parameter, rows_sql
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.bigquery.table_ref import TableRef

KEPT_FOR = timedelta(days=2)  # no run takes longer
_NAME = re.compile(r"bqh_result_\w+_[0-9a-f]{16}")


@dataclass(frozen=True)
class QueryResult:
    """A query result is the rows of the query as they were at `read_at`; nobody changes them."""

    table: TableRef
    read_at: datetime
    bytes_billed: int


def query_of(contract: TableContract, project: str, names: Sequence[str] | None = None) -> str:
    """Makes SQL for all rows of a contract's source, filtered but not limited to any window.

    The source is a query, a view or a table. The SQL selects the columns `names`, or all; a column
    that no longer exists cannot be asked for.
    """
    columns = "*" if names is None else ", ".join(quoted(name) for name in names)
    row_filter = contract.source.row_filter or "TRUE"
    rows = f"SELECT {columns} FROM {_from(contract, project)} WHERE ({row_filter})"
    if not contract.latest:
        return rows
    return _latest(rows, contract.key or (), contract.timestamp_column)


def materialise(
    queries: Queries,
    contract: TableContract,
    within: str,
    dataset: str,
    names: Sequence[str] | None = None,
) -> QueryResult:
    """Runs the contract's query for the rows `within` (see restriction.between) and keeps them."""
    query = query_of(contract, queries.connection.project, names)
    rows = f"SELECT * FROM ({query}) WHERE {within}"
    return _keep(queries, contract, rows, {}, dataset)


def materialise_keys(
    queries: Queries,
    contract: TableContract,
    key: Sequence[Column],
    texts: Sequence[Sequence[str]],
    dataset: str,
    names: Sequence[str] | None = None,
) -> QueryResult:
    """Runs the contract's query for the rows of some keys, each with a text per key column."""
    rows = rows_sql(query_of(contract, queries.connection.project, names), key)
    return _keep(queries, contract, rows, {"keys": key_parameter(texts)}, dataset)


def _keep(
    queries: Queries,
    contract: TableContract,
    rows: str,
    parameters: Mapping[str, list[str]],
    dataset: str,
) -> QueryResult:
    project = queries.connection.project
    table = TableRef(project, dataset, f"bqh_result_{contract.id}_{uuid.uuid4().hex[:16]}")
    _make_dataset(queries, dataset)
    expires = restriction.literal(Kind.TIMESTAMP, server_time(queries) + KEPT_FOR)
    # OR REPLACE is needed, because a try whose answer was lost may have made the table already.
    answer = queries.run(
        f"CREATE OR REPLACE TABLE {table.sql}"
        f" OPTIONS (expiration_timestamp = {expires}, labels = [('bqh', 'query-result')])"
        f" AS {rows}",
        parameters,
        doing="running its query",
        feature=Feature.KEEP_RESULT,
        table=contract.id,
    )
    return QueryResult(table, answer.started.astimezone(UTC), answer.bytes_billed)


def drop_result(queries: Queries, table: TableRef) -> None:
    """Drops a result, after the commit; it is no error if it is gone already."""
    if not _NAME.fullmatch(table.table):
        raise ValueError(f"{table} is not the result of a query of ours: it stays")
    queries.calls.call(
        lambda: queries.client.delete_table(
            str(table), not_found_ok=True, retry=NO_RETRY, timeout=queries.calls.request_s
        ),
        doing="dropping a query's result",
        feature=Feature.KEEP_RESULT,
        table=str(table),
    )


def drop_left_over(
    queries: Queries, dataset: str, kept_for: timedelta = KEPT_FOR
) -> list[TableRef]:
    """Drops results that no run can still be reading, and returns them."""
    oldest = server_time(queries) - kept_for
    gone = [table for table, made in _results(queries, dataset) if made < oldest]
    for table in gone:
        drop_result(queries, table)
    return gone


def _from(contract: TableContract, project: str) -> str:
    if contract.source.query is not None:
        return f"({contract.source.query})"
    return quoted(project, contract.source.dataset or "", contract.source.table or "")


def _latest(rows: str, key: Sequence[str], timestamp_column: str) -> str:
    """Makes SQL for the newest row of each key; of equally new ones it is always the same."""
    # Not every type may be in PARTITION BY, so keys are JSON text. A row with a NULL in its key has
    # no key, so it is no other row's older version: all such rows stay, and are quarantined.
    parts = ", ".join(f"TO_JSON_STRING({quoted(name)})" for name in key)
    without_key = " OR ".join(f"{quoted(name)} IS NULL" for name in key)
    return (
        f"SELECT * FROM ({rows}) AS r WHERE TRUE QUALIFY ({without_key}) OR ROW_NUMBER() OVER"
        f" (PARTITION BY {parts} ORDER BY {quoted(timestamp_column)} DESC NULLS LAST,"
        " TO_JSON_STRING(r) DESC) = 1"
    )


def _make_dataset(queries: Queries, dataset: str) -> None:
    from google.api_core.exceptions import NotFound
    from google.cloud import bigquery

    client, name = queries.client, f"{queries.connection.project}.{dataset}"

    def make() -> None:
        try:
            client.get_dataset(name, retry=NO_RETRY, timeout=queries.calls.request_s)
        except NotFound:
            wanted = bigquery.Dataset(name)
            wanted.location = queries.connection.location
            client.create_dataset(
                wanted, exists_ok=True, retry=NO_RETRY, timeout=queries.calls.request_s
            )

    queries.calls.call(make, doing=f"making dataset {name}", feature=Feature.KEEP_RESULT)


def _results(queries: Queries, dataset: str) -> Iterator[tuple[TableRef, datetime]]:
    project = queries.connection.project
    try:
        tables = queries.calls.call(
            lambda: list(
                queries.client.list_tables(
                    f"{project}.{dataset}", retry=NO_RETRY, timeout=queries.calls.request_s
                )
            ),
            doing=f"looking for left-over results in {dataset}",
            feature=Feature.KEEP_RESULT,
        )
    except BigQueryMissing:
        return  # no result was ever kept
    for table in tables:
        # They are known by name, because the emulator drops labels.
        if _NAME.fullmatch(table.table_id):
            yield TableRef(project, dataset, table.table_id), table.created

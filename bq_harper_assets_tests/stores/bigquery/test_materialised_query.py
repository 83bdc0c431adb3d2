"""customQuery, views and the newest row per key on the real emulator."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.errors import BigQueryRefused
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant, fingerprints
from bq_harper_assets.stores.bigquery.materialised_query import (
    QueryResult,
    drop_left_over,
    drop_result,
    materialise,
)
from bq_harper_assets.stores.bigquery.read_session import open_session, read_stream
from bq_harper_assets.stores.bigquery.restriction import between
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.stores.small_tables import DATASET, SmallTables, utc

pytestmark = pytest.mark.bigquery

RESULTS = "kept_results"
TS = Column(name="ts", kind=Kind.TIMESTAMP)
START, END = utc(2026, 3, 1), utc(2026, 3, 2)
WITHIN = between(TS, START, END)
COLUMNS = (Column(name="k", kind=Kind.INT64), Column(name="v", kind=Kind.STRING), TS)


@pytest.fixture(scope="module")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    return SmallTables.at(bigquery_connection)


@pytest.fixture
def source(tables: SmallTables) -> TableRef:
    """k 1 and 3 within the range, 2 and 4 outside it."""
    table = tables.make("k INT64, v STRING, ts TIMESTAMP")
    insert(tables, table, (1, "a", "02-28 23"), (1, "b", "03-01 00"), (3, "c", "03-01 23"))
    insert(tables, table, (2, "d", "03-02 00"), (4, "e", "02-28 23"))
    return table


@pytest.fixture(autouse=True)
def _dropped_afterwards(tables: SmallTables) -> Iterator[None]:
    yield
    drop_left_over(tables.queries, RESULTS, kept_for=timedelta(0))


def insert(tables: SmallTables, table: TableRef, *rows: tuple[int | None, str, str]) -> None:
    values = ", ".join(
        f"({'NULL' if k is None else k}, '{v}', TIMESTAMP '2026-{at}:00:00+00')"
        for k, v, at in rows
    )
    tables.run(f"INSERT INTO {table.sql} (k, v, ts) VALUES {values}")


def contract(**settings: Any) -> TableContract:
    fixed = {"id": "orders", "timestampColumn": "ts", "targetTable": "Orders"}
    return TableContract.model_validate({**fixed, **settings})


def rows_of(tables: SmallTables, result: QueryResult) -> list[tuple[Any, ...]]:
    """Through the Storage API, as the mover reads them."""
    connection = tables.queries.connection
    with connect_storage(connection) as client:
        plan = open_session(client, tables.queries.calls, result.table, (), "", None, 1)
    return sorted(
        (
            (row["k"], row["v"])
            for stream in plan.streams
            for batch in read_stream(connection, stream, plan.schema)
            for row in batch.to_pylist()
        ),
        key=str,
    )


def test_a_custom_query_is_run_for_the_range_and_its_rows_stay_as_they_were(
    tables: SmallTables, source: TableRef
) -> None:
    query = f"WITH w AS (SELECT * FROM {source.sql}) SELECT k, UPPER(v) AS v, ts FROM w"
    before = server_time(tables.queries)

    result = materialise(tables.queries, contract(customQuery=query), WITHIN, RESULTS)

    tables.run(f"DELETE FROM {source.sql} WHERE TRUE")
    assert rows_of(tables, result) == [(1, "B"), (3, "C")]
    found = fingerprints(
        tables.queries,
        SourceAtInstant(table=result.table, columns=COLUMNS, time_column=TS),
        START,
        END,
        timedelta(days=1),
    )
    assert found[START].rows == 2
    # To the millisecond, as BigQuery tells when a job began.
    assert before - timedelta(milliseconds=1) <= result.read_at <= server_time(tables.queries)


def test_a_view_is_read_through_a_query_with_the_columns_and_filter_of_the_contract(
    tables: SmallTables, source: TableRef
) -> None:
    view = tables.new_name()
    tables.run(f"CREATE VIEW {view.sql} AS SELECT *, 'x' AS more FROM {source.sql}")
    asked = contract(
        dataset=view.dataset,
        table=view.table,
        columns=["k", "v", "ts"],
        rowFilter="k = 3 OR k = 2",
    )

    result = materialise(tables.queries, asked, WITHIN, RESULTS, asked.columns)

    assert rows_of(tables, result) == [(3, "c")]
    names = [field.name for field in tables.queries.client.get_table(str(result.table)).schema]
    assert names == ["k", "v", "ts"]


def test_latest_keeps_the_newest_row_of_each_key_over_the_whole_table(
    tables: SmallTables, source: TableRef
) -> None:
    insert(tables, source, (3, "newer", "03-02 05"), (5, "old", "03-01 01"), (5, "new", "03-01 02"))
    asked = contract(dataset=DATASET, table=source.table, key="k", latest=True)

    result = materialise(tables.queries, asked, WITHIN, RESULTS)

    # 3 has moved out of the range: its older row is not the newest one anywhere.
    assert rows_of(tables, result) == [(1, "b"), (5, "new")]


def test_latest_picks_the_same_one_of_equally_new_rows_and_keeps_rows_without_a_key(
    tables: SmallTables,
) -> None:
    table = tables.make("k INT64, v STRING, ts TIMESTAMP")
    tied = [(7, letter, "03-01 04") for letter in "caebd"]
    insert(tables, table, *tied, (None, "n1", "03-01 05"), (None, "n2", "03-01 05"))
    asked = contract(dataset=DATASET, table=table.table, key="k", latest=True)
    first = rows_of(tables, materialise(tables.queries, asked, WITHIN, RESULTS))
    tables.run(f"DELETE FROM {table.sql} WHERE k = 7")
    insert(tables, table, *sorted(tied))

    second = rows_of(tables, materialise(tables.queries, asked, WITHIN, RESULTS))

    assert first == second == [(7, "e"), (None, "n1"), (None, "n2")]


def test_a_result_is_dropped_after_use_and_dropping_it_twice_is_fine(
    tables: SmallTables, source: TableRef
) -> None:
    asked = contract(customQuery=f"SELECT * FROM {source.sql}")
    result = materialise(tables.queries, asked, WITHIN, RESULTS)

    drop_result(tables.queries, result.table)
    drop_result(tables.queries, result.table)

    assert names_in(tables, RESULTS) == []


def test_a_result_that_a_killed_run_left_is_dropped_when_it_is_old_and_nothing_else_is(
    tables: SmallTables, source: TableRef
) -> None:
    asked = contract(customQuery=f"SELECT * FROM {source.sql}")
    result = materialise(tables.queries, asked, WITHIN, RESULTS)
    users_own = TableRef(result.table.project, RESULTS, "bqh_result_of_mine")
    tables.run(f"CREATE OR REPLACE TABLE {users_own.sql} AS SELECT 1 AS one")

    assert drop_left_over(tables.queries, RESULTS, kept_for=timedelta(hours=1)) == []
    assert drop_left_over(tables.queries, RESULTS, kept_for=timedelta(0)) == [result.table]

    assert names_in(tables, RESULTS) == [users_own.table]
    tables.queries.client.delete_table(str(users_own))


def test_where_nothing_was_ever_kept_nothing_is_left_over(tables: SmallTables) -> None:
    assert drop_left_over(tables.queries, "never_made") == []


def test_a_table_that_is_no_result_of_ours_is_never_dropped(
    tables: SmallTables, source: TableRef
) -> None:
    with pytest.raises(ValueError, match="it stays"):
        drop_result(tables.queries, source)

    assert source.table in names_in(tables, DATASET)


def test_a_query_that_is_wrong_leaves_no_table(tables: SmallTables) -> None:
    asked = contract(customQuery="SELECT no_such_column, TIMESTAMP '2026-01-01' AS ts")

    with pytest.raises(BigQueryRefused, match="customQuery"):
        materialise(tables.queries, asked, WITHIN, RESULTS)

    assert names_in(tables, RESULTS) == []


def names_in(tables: SmallTables, dataset: str) -> list[str]:
    return [table.table_id for table in tables.queries.client.list_tables(dataset)]

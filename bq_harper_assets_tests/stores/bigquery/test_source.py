"""Sources that are no plain table: a query, a view, the newest row of each key."""

from typing import Any

import pytest

from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Answer, Queries
from bq_harper_assets.stores.bigquery.source import pinned
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import (
    assert_counts_agree,
    land,
    source_rows,
    stored_rows,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 2)
MINUTES = "TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE) AS ts"
ROWS = f"SELECT n, DIV(n, 4) AS k, {MINUTES} FROM UNNEST(GENERATE_ARRAY(0, 99)) AS n"


def test_the_rows_of_a_query_arrive_as_the_query_makes_them(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(ROWS)
    query = f"WITH w AS (SELECT * FROM {source.sql} WHERE n < 90) SELECT ts, n, -n AS less FROM w"
    contract, report = land(sync, source, START, END, custom_query=query, row_filter="n >= 10")
    assert_counts_agree(sync, contract, report, 80)
    rows = sync.rows(contract)
    assert sorted((row["n"], row["less"]) for row in rows) == [(n, -n) for n in range(10, 90)]
    assert "k" not in rows[0]
    assert _kept(tables) == []


def test_a_view_is_never_read_through_the_storage_api_which_refuses_views(
    sync: Sync, tables: SmallTables
) -> None:
    source, view = tables.make_from(ROWS), tables.new_name()
    tables.run(f"CREATE VIEW {view.sql} AS SELECT * FROM {source.sql} WHERE n < 50")
    with pinned(tables.queries, harper_plan, sync.contract(view), START, END) as pin:
        assert (pin.source.table.dataset, pin.source.at) == ("bqh_results", None)
    with pinned(tables.queries, harper_plan, sync.contract(source), START, END) as pin:
        assert (pin.source.table, pin.source.at) == (source, pin.t)
    contract, report = land(sync, view, START, END, key=["n"])
    assert_counts_agree(sync, contract, report, 50)
    assert stored_rows(sync, tables, contract) == source_rows(tables, source, "n < 50")
    assert _kept(tables) == []


def test_latest_syncs_the_newest_row_of_each_key_and_follows_a_newer_one(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(ROWS)
    contract, report = land(sync, source, START, END, key=["k"], latest=True)
    assert_counts_agree(sync, contract, report, 25)
    assert stored_rows(sync, tables, contract) == source_rows(tables, source, "MOD(n, 4) = 3")
    tables.run(f"INSERT INTO {source.sql} (n, k, ts) VALUES (100, 0, TIMESTAMP '2026-01-05 01:59')")
    sync.run(contract, sync.cells(contract, START, END))
    assert stored_rows(sync, tables, contract) == source_rows(
        tables, source, "n = 100 OR (MOD(n, 4) = 3 AND n > 3)"
    )


@pytest.mark.promise("G3")
def test_a_query_without_a_usable_timestamp_column_is_told_before_it_is_run(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(ROWS)
    query = f"SELECT n, CAST(ts AS STRING) AS ts, ts AS seen FROM {source.sql}"
    contract = sync.contract(source, custom_query=query)
    with pytest.raises(SchemaMismatch, match=r"ts is STRING.*candidates are seen"):
        sync.run(contract, sync.cells(contract, START, END))
    assert _kept(tables) == []


class Listened(Queries):
    """Keeps what it was asked."""

    def __init__(self, calls: BigQueryCalls) -> None:
        super().__init__(calls)
        self.asked: list[str] = []

    def run(self, sql: str, *args: Any, **settings: Any) -> Answer:
        self.asked.append(sql)
        return super().run(sql, *args, **settings)


@pytest.mark.promise("G3")
@pytest.mark.parametrize("kind", ["TIMESTAMP", "DATETIME", "DATE"])
def test_a_query_is_cut_to_its_range_in_the_type_of_its_timestamp_column(
    sync: Sync, tables: SmallTables, kind: str
) -> None:
    # The service does not compare a DATETIME with a TIMESTAMP; the emulator would.
    query = f"SELECT 1 AS n, {kind} '2026-01-05' AS ts"
    queries = Listened(tables.queries.calls)
    contract = sync.contract(tables.new_name(), custom_query=query)
    with pinned(queries, harper_plan, contract, START, utc(2026, 1, 6)) as pin:
        assert pin.source.time_column.kind == kind
    [made] = [sql for sql in queries.asked if "CREATE" in sql]
    assert f"`ts` >= {kind} '2026-01-05" in made
    assert f"`ts` < {kind} '2026-01-06" in made


def test_results_are_kept_in_the_dataset_of_the_connection(sync: Sync, tables: SmallTables) -> None:
    elsewhere = tables.queries.connection.model_copy(update={"results_dataset": "kept_elsewhere"})
    query = "SELECT 1 AS n, TIMESTAMP '2026-01-05' AS ts"
    contract = sync.contract(tables.new_name(), custom_query=query)
    queries = Queries(BigQueryCalls(elsewhere))
    with pinned(queries, harper_plan, contract, START, utc(2026, 1, 6)) as pin:
        assert pin.source.table.dataset == "kept_elsewhere"
        (kept,) = queries.client.list_tables("kept_elsewhere")
        assert kept.table_id == pin.source.table.table
    assert list(queries.client.list_tables("kept_elsewhere")) == []


def _kept(tables: SmallTables) -> list[str]:
    """Results of queries that no run has dropped."""
    return [table.table_id for table in tables.queries.client.list_tables("bqh_results")]

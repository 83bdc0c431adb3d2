"""Results of queries that a killed run left in BigQuery: the next run of any query drops them."""

import time
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
RESULTS = "bqh_results"
QUERY = "SELECT TIMESTAMP '2026-01-05 00:30:00' AS ts, 1 AS n"


def test_the_next_run_of_a_query_drops_what_a_killed_one_left_two_days_ago(
    sync: Sync, tables: SmallTables
) -> None:
    bigquery = sync.stores.bigquery
    assert bigquery.endpoint is not None
    tables.queries.client.create_dataset(RESULTS, exists_ok=True)
    hours = {f"bqh_result_of_a_dead_run_{uuid.uuid4().hex[:16]}": age for age in (47, 49)}
    left = [TableRef(bigquery.project, RESULTS, name) for name in hours]
    for table in left:
        tables.run(f"CREATE TABLE {table.sql} AS {QUERY}")
    contract = sync.contract(tables.new_name(), custom_query=QUERY)
    cells = sync.cells(contract, utc(2026, 1, 5), utc(2026, 1, 5, 1))
    with FaultProxy(bigquery.endpoint) as proxy:
        # The emulator lists all tables as made just now.
        proxy.on(
            Answer(200, {"tables": [_listed(table, hours[table.table]) for table in left]}),
            matching=lambda seen: seen.path.partition("?")[0].endswith(f"{RESULTS}/tables"),
        )
        known = bigquery.model_copy(update={"endpoint": proxy.url})
        through = replace(sync, stores=replace(sync.stores, bigquery=known))
        assert through.run(contract, cells).rows == 1
    kept = {table.table_id for table in tables.queries.client.list_tables(RESULTS)}
    for table in left:
        tables.queries.client.delete_table(str(table), not_found_ok=True)
    assert kept & set(hours) == {left[0].table}  # a run may still be reading what is younger


def _listed(table: TableRef, hours: int) -> dict[str, object]:
    """As BigQuery names a table that was made so many hours ago."""
    made = time.time() - timedelta(hours=hours).total_seconds()
    reference = {"projectId": table.project, "datasetId": table.dataset, "tableId": table.table}
    return {"tableReference": reference, "creationTime": str(int(made * 1000))}

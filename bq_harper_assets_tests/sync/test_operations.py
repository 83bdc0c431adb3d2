"""What a sync asks of Harper: nothing that destroys, seen from outside by a recording proxy."""

from dataclasses import replace

import pytest

from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
HARMLESS = {
    "create_attribute",
    "create_table",
    "describe_all",
    "describe_table",
    "search_by_conditions",
    "search_by_id",
    "search_by_value",
    "system_information",
    "upsert",
}


@pytest.mark.promise("A15")
def test_two_syncs_send_nothing_that_drops_or_deletes(sync: Sync, tables: SmallTables) -> None:
    source = tables.make("ts TIMESTAMP, number INT64")
    insert = f"INSERT INTO {source.sql} SELECT TIMESTAMP '2026-01-05 00:30:00', n"
    tables.run(f"{insert} FROM UNNEST(GENERATE_ARRAY(1, 20)) AS n")
    contract = sync.contract(source)
    cells = sync.cells(contract, utc(2026, 1, 5), utc(2026, 1, 5, 1))
    with FaultProxy(sync.stores.harper.url) as proxy:
        harper = sync.stores.harper.model_copy(update={"url": proxy.url})
        watched = replace(sync, stores=replace(sync.stores, harper=harper))
        watched.run(contract, cells)
        watched.run(contract, cells)
        operations = {seen.operation for seen in proxy.seen()}
    assert "upsert" in operations
    assert operations <= HARMLESS
    assert len(sync.rows(contract)) == 20

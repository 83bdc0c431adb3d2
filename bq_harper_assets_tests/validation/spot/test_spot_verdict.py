"""What a spot check says where it cannot say that rows are the same."""

from datetime import timedelta

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.validation.spot.spot_check import check_spot
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Severity, SpotStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.validation.spot.test_spot_check import (
    EVERY_FIVE_MINUTES,
    FROM_NOON,
    NOON,
    land_two_hours,
    named,
    spot,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("M3")
def test_a_query_is_compared_as_it_is_now_and_a_difference_is_a_warning(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(EVERY_FIVE_MINUTES)
    query = f"SELECT * FROM {source.sql}"
    contract, rows = land_two_hours(sync, source, custom_query=query, dataset=None, table=None)
    clean = spot(sync, tables, contract)
    assert (clean.status, clean.metadata["read_at_commit"]) == (SpotStatus.HEALTHY, False)
    tables.run(f"UPDATE {source.sql} SET name = 'new' WHERE number = 8")
    verdict = spot(sync, tables, contract)
    assert (verdict.status, verdict.severity) == (SpotStatus.ISSUES_FOUND, Severity.WARN)
    assert "may have changed since the sync" in verdict.message
    assert rows[8]["id"] in named(verdict)

    tables.run(f"DELETE FROM {source.sql} WHERE TRUE")
    sync.harper.delete(contract.target.table, [row["id"] for row in rows])
    verdict = spot(sync, tables, contract)
    assert (verdict.status, verdict.passed) == (SpotStatus.NO_DATA, False)
    assert "none of the 24 rows that were synced was met" in verdict.message


@pytest.mark.promise("M3")
def test_no_rows_are_no_data_and_a_store_that_is_away_is_told_and_not_raised(
    sync: Sync,
    tables: SmallTables,
    bigquery_connection: BigQueryConnection,
    harper_connection: HarperConnection,
    nowhere: str,
) -> None:
    source = tables.make("number INT64, ts TIMESTAMP")
    contract = sync.contract(source, **FROM_NOON)
    assert spot(sync, tables, contract).status is SpotStatus.NO_DATA
    sync.run(contract, sync.cells(contract, NOON, NOON + timedelta(hours=1)))
    empty = spot(sync, tables, contract)
    assert (empty.status, empty.passed) == (SpotStatus.NO_DATA, True)

    away = bigquery_connection.model_copy(update={"endpoint": nowhere, "max_retries": 0})
    ledger = sync.stores.ledger
    subject = Subject(contract, Queries(BigQueryCalls(away)), sync.harper, ledger)
    verdict = check_spot(subject)
    assert (verdict.status, verdict.severity) == (SpotStatus.CHECK_FAILED, Severity.ERROR)
    assert nowhere in verdict.message

    stopped = harper_connection.model_copy(update={"url": nowhere})
    with HarperClient(stopped, retry=RetryPolicy(max_retries=0), breakers=Breakers()) as harper:
        verdict = check_spot(Subject(contract, tables.queries, harper, ledger))
    assert verdict.status is SpotStatus.CHECK_FAILED

"""What every query job is sent with: labels, a location, and a limit."""

import json

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryRefused,
)
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.bigquery.test_queries import (
    is_start,
    proxy,
    refusal,
    starts,
    through,
)

__all__ = ["proxy"]
pytestmark = pytest.mark.bigquery


@pytest.mark.promise("N6")
def test_every_job_is_labelled_limited_and_in_the_location_of_the_connection(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    connection = through(proxy, bigquery_connection, location="EU", max_bytes_billed=12_345)
    queries = Queries(BigQueryCalls(connection), labels={"bqh": "Run 7/a"})

    answer = queries.run("SELECT 1 AS one", doing="x")

    (start,) = starts(proxy)
    sent = json.loads(start.body)
    assert sent["configuration"]["labels"] == {"bqh": "run_7_a"}
    assert sent["configuration"]["query"]["maximumBytesBilled"] == "12345"
    assert sent["jobReference"]["location"] == "EU"
    assert sent["jobReference"]["jobId"] == answer.job_id
    assert answer.bytes_billed == 0


@pytest.mark.promise("N6")
def test_the_limit_is_the_connections_also_for_a_query_that_is_only_checked(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    connection = through(proxy, bigquery_connection, max_bytes_billed=67_890)
    queries = Queries(BigQueryCalls(connection))

    queries.run("SELECT 1 AS one", doing="x")
    queries.fields("SELECT 1 AS one", doing="x")
    Queries(BigQueryCalls(through(proxy, bigquery_connection))).run("SELECT 1 AS one", doing="x")

    sent = [json.loads(start.body)["configuration"] for start in starts(proxy)]
    limits = [job["query"].get("maximumBytesBilled") for job in sent]
    assert limits == ["67890", "67890", None]
    assert [job["labels"] for job in sent] == [{"bqh": "sync"}] * 3


@pytest.mark.promise("N6")
def test_a_query_that_is_too_dear_is_asked_once_and_names_table_limit_and_setting(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    # The emulator bills nothing: this is the service's answer.
    proxy.on(refusal(400, "bytesBilledLimitExceeded"), matching=is_start, times=99)
    queries = Queries(BigQueryCalls(through(proxy, bigquery_connection, max_bytes_billed=67_890)))

    with pytest.raises(BigQueryRefused) as refused:
        queries.run("SELECT 1", doing="comparing", table="orders")

    assert len(starts(proxy)) == 1
    assert "comparing on table 'orders'" in str(refused.value)
    assert "raise bigquery.maxBytesBilled (now 67,890 bytes)" in str(refused.value)

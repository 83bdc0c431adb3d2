"""Calls that are made again: how often, after which wait, and when a table is left alone."""

import logging
from datetime import timedelta

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.retries.breaker import Breakers, CircuitOpen
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryUnavailable,
)
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.bigquery.test_queries import (
    is_start,
    proxy,
    refusal,
    starts,
    through,
)

__all__ = ["proxy"]
pytestmark = pytest.mark.bigquery


@pytest.mark.promise("G9")
@pytest.mark.promise("I2")
def test_retries_and_waits_are_those_of_the_connection(
    proxy: FaultProxy,
    bigquery_connection: BigQueryConnection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxy.on(refusal(503, "backendError"), matching=is_start, times=99)
    connection = through(proxy, bigquery_connection, max_retries=2, initial_retry_delay_ms=10)
    waits: list[float] = []
    calls = BigQueryCalls(connection, on_retry=lambda retry: waits.append(retry.wait_s))

    with caplog.at_level(logging.WARNING), pytest.raises(BigQueryUnavailable):
        Queries(calls).run("SELECT 1", doing="looking", table="orders")

    assert len(starts(proxy)) == 3
    assert 0.010 <= waits[0] <= 0.020 <= waits[1] <= 0.040
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "ERROR"]
    assert "looking on table 'orders': retry 1 of 2" in caplog.messages[0]


def test_the_store_may_say_how_long_to_wait(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    limited = refusal(429, "rateLimitExceeded")
    proxy.on(Answer(429, limited.body, {**limited.headers, "Retry-After": "7"}), matching=is_start)
    waits: list[float] = []
    calls = BigQueryCalls(
        through(proxy, bigquery_connection),
        retry=RetryPolicy(max_retries=5, initial_delay_s=0.01, sleep=waits.append),
    )

    Queries(calls).run("SELECT 1", doing="x")

    assert waits == [7.0]


@pytest.mark.promise("I1")
@pytest.mark.parametrize(("status", "reason"), [(429, "rateLimitExceeded"), (503, "backendError")])
def test_a_storm_of_30_answers_is_outlived_unless_retries_were_asked_for(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection, status: int, reason: str
) -> None:
    stormy = refusal(status, reason)
    storm = Answer(status, stormy.body, {**stormy.headers, "Retry-After": "0"})
    limit = timedelta(minutes=10)
    proxy.on(storm, matching=is_start, times=30)
    left_out = through(proxy, bigquery_connection, max_retries=None)
    Queries(BigQueryCalls(left_out, give_up_after=limit)).run("SELECT 1", doing="x")
    assert len(starts(proxy)) == 31

    proxy.on(storm, matching=is_start, times=30)
    written = through(proxy, bigquery_connection, max_retries=2)
    with pytest.raises(BigQueryUnavailable):
        Queries(BigQueryCalls(written, give_up_after=limit)).run("SELECT 1", doing="x")
    assert len(starts(proxy)) == 34


def test_a_table_whose_queries_keep_failing_is_left_alone(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    proxy.on(refusal(503, "backendError"), matching=is_start, times=99)
    connection = through(proxy, bigquery_connection, max_retries=0)
    queries = Queries(BigQueryCalls(connection, breakers=Breakers()))
    for _ in range(5):
        with pytest.raises(BigQueryUnavailable):
            queries.run("SELECT 1", doing="x", table="orders")

    with pytest.raises(CircuitOpen):
        queries.run("SELECT 1", doing="x", table="orders")
    proxy.heal()
    queries.run("SELECT 1", doing="x", table="customers")

    assert len(starts(proxy)) == 6

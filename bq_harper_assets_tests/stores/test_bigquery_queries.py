"""Query jobs on the real emulator, with a proxy before it that counts and spoils requests."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dagster_gcp import BigQueryResource

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryForbidden,
    BigQueryRefused,
    BigQueryUnavailable,
)
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.breaker import Breakers, CircuitOpen
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets_tests.fault_proxy import Answer, CutAnswer, FaultProxy, NoAnswer, Reset, Seen

pytestmark = pytest.mark.bigquery


@pytest.fixture
def proxy(bigquery_connection: BigQueryConnection) -> Iterator[FaultProxy]:
    with FaultProxy(str(bigquery_connection.endpoint)) as proxy:
        yield proxy


def through(
    proxy: FaultProxy, connection: BigQueryConnection, **settings: Any
) -> BigQueryConnection:
    quick = {"max_retries": 2, "initial_retry_delay_ms": 10}
    return connection.model_copy(update={"endpoint": proxy.url, **quick, **settings})


def is_start(seen: Seen) -> bool:
    return seen.method == "POST" and seen.path.split("?")[0].endswith("/jobs")


def starts(proxy: FaultProxy) -> list[Seen]:
    return [seen for seen in proxy.seen() if is_start(seen)]


def refusal(status: int, reason: str) -> Answer:
    error = {"code": status, "message": "no", "errors": [{"reason": reason, "message": "no"}]}
    return Answer(status, {"error": error}, {"Content-Type": "application/json"})


def test_parameters_travel_as_values(bigquery_connection: BigQueryConnection) -> None:
    queries = Queries(BigQueryCalls(bigquery_connection))
    values = {
        "text": "'; DROP TABLE x; --",
        "number": 2**53 + 1,
        "share": 0.1,
        "amount": Decimal("1.5"),
        "yes": True,
        "at": datetime(2026, 3, 1, 1, 2, 3, 4, tzinfo=UTC),
        "day": date(2026, 3, 1),
    }

    names = ", ".join(f"@{name} AS {name}" for name in values)
    answer = queries.run(
        f"SELECT {names}, @names AS names", {**values, "names": ["a", "b"]}, doing="x"
    )

    assert answer.rows == ({**values, "names": ["a", "b"]},)


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


@pytest.mark.promise("I1")
@pytest.mark.promise("E4")
@pytest.mark.parametrize(
    "fault",
    [
        refusal(429, "rateLimitExceeded"),
        refusal(403, "rateLimitExceeded"),
        refusal(403, "quotaExceeded"),
        refusal(500, "internalError"),
        refusal(502, "badGateway"),
        refusal(503, "backendError"),
        Answer(504),
        Reset("before"),
        Reset("after"),
        NoAnswer(),
        CutAnswer(),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again_as_the_same_job(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection, fault: Any
) -> None:
    proxy.on(fault, matching=is_start)

    answer = Queries(BigQueryCalls(through(proxy, bigquery_connection))).run(
        "SELECT 1 AS one", doing="x"
    )

    assert answer.rows == ({"one": 1},)
    assert len(starts(proxy)) == 2
    bodies = {start.body for start in starts(proxy) if start.body}
    ids = {json.loads(body)["jobReference"]["jobId"] for body in bodies}
    assert ids == {answer.job_id}


@pytest.mark.promise("I1")
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (refusal(400, "invalidQuery"), BigQueryRefused),
        (refusal(403, "accessDenied"), BigQueryForbidden),
        (refusal(400, "invalid"), BigQueryRefused),
    ],
    ids=str,
)
def test_what_cannot_pass_is_asked_once(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection, fault: Answer, kind: type[Exception]
) -> None:
    proxy.on(fault, matching=is_start, times=99)

    with pytest.raises(kind):
        Queries(BigQueryCalls(through(proxy, bigquery_connection))).run("SELECT 1", doing="x")

    assert len(starts(proxy)) == 1


def test_a_wrong_query_fails_at_once_and_says_what_to_check(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    queries = Queries(BigQueryCalls(through(proxy, bigquery_connection)))

    with pytest.raises(BigQueryRefused, match="timestampColumn"):
        queries.run("SELECT no_such_column FROM (SELECT 1 AS one)", doing="x")

    assert len(starts(proxy)) == 1


def test_an_answer_that_is_lost_is_fetched_again_without_a_second_job(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    proxy.on(refusal(503, "backendError"), matching=lambda seen: seen.method == "GET", times=2)

    answer = Queries(BigQueryCalls(through(proxy, bigquery_connection))).run(
        "SELECT 1 AS one", doing="x"
    )

    assert answer.rows == ({"one": 1},)
    assert len(starts(proxy)) == 1


def test_a_job_that_bigquery_itself_could_not_finish_is_followed_by_a_new_one(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    failed = {
        "jobReference": {"projectId": "local", "jobId": "first", "location": "US"},
        "configuration": {"query": {"query": "SELECT 1"}},
        "status": {
            "state": "DONE",
            "errorResult": {"reason": "jobBackendError", "message": "try again"},
        },
    }
    proxy.on(Answer(200, failed, {"Content-Type": "application/json"}), matching=is_start)

    answer = Queries(BigQueryCalls(through(proxy, bigquery_connection))).run(
        "SELECT 1 AS one", doing="x"
    )

    ids = [json.loads(start.body)["jobReference"]["jobId"] for start in starts(proxy)]
    assert answer.rows == ({"one": 1},)
    assert len(set(ids)) == 2
    assert ids[1] == answer.job_id


def test_a_start_that_was_heard_but_not_answered_is_looked_up(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    # The service answers 409 to a second start of the same job; the emulator would run it twice.
    proxy.on(NoAnswer(), matching=is_start)
    proxy.on(refusal(409, "duplicate"), matching=is_start)

    answer = Queries(BigQueryCalls(through(proxy, bigquery_connection))).run(
        "SELECT 1 AS one", doing="x"
    )

    assert answer.rows == ({"one": 1},)
    assert [start.forwarded for start in starts(proxy)] == [True, False]


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


@pytest.mark.promise("E4")
@pytest.mark.parametrize("body", [b"", b"<html>Welcome</html>"])
def test_a_200_without_an_answer_in_it_is_sent_again_and_the_query_runs_once(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection, body: bytes
) -> None:
    queries = Queries(BigQueryCalls(through(proxy, bigquery_connection)))
    proxy.on(Answer(200, body), matching=is_start)
    proxy.on(Answer(200, body), matching=lambda seen: seen.method == "GET")
    answer = queries.run("SELECT 1 AS one", doing="x")
    assert [row["one"] for row in answer.rows] == [1]
    ids = {json.loads(seen.body)["jobReference"]["jobId"] for seen in starts(proxy)}
    assert (len(starts(proxy)), len(ids)) == (2, 1)


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


def test_the_time_is_the_servers_and_goes_forward(bigquery_connection: BigQueryConnection) -> None:
    queries = Queries(BigQueryCalls(bigquery_connection))

    first, second = server_time(queries), server_time(queries)

    assert first < second
    assert abs((datetime.now(UTC) - second).total_seconds()) < 5
    assert first.utcoffset() is not None


@pytest.mark.promise("G1")
def test_the_resource_is_a_bigquery_resource_that_reaches_the_emulator(
    bigquery_connection: BigQueryConnection,
) -> None:
    connection = bigquery_connection.model_copy(
        update={
            "max_retries": 7,
            "location": "EU",
            "max_bytes_billed": 12_345,
            "results_dataset": "kept",
        }
    )
    resource = BigQueryConnectionResource.from_connection(connection)

    assert isinstance(resource, BigQueryResource)
    assert resource.connection() == connection
    with resource.get_client() as client:
        rows = client.query("SELECT 1 AS one", job_retry=None).result(timeout=20)
        assert [row["one"] for row in rows] == [1]


def test_the_resource_keeps_the_path_of_a_key_file() -> None:
    connection = BigQueryConnection(project="shop", credentials=Path("/keys/shop.json"))

    assert BigQueryConnectionResource.from_connection(connection).connection() == connection


def test_a_query_that_the_emulator_fails_at_each_time_is_refused_and_not_called_unavailable(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    proxy.on(refusal(500, "internalError"), matching=is_start, times=99)
    connection = through(proxy, bigquery_connection, max_retries=9)
    with pytest.raises(BigQueryRefused, match="It is about the query, so it is not sent again"):
        Queries(BigQueryCalls(connection)).run("SELECT 1", doing="x")
    assert len(starts(proxy)) == 3

"""Query jobs on the real emulator, with a proxy before it that counts and spoils requests."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryForbidden,
    BigQueryRefused,
)
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.server_time import server_time
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


def test_the_time_is_the_servers_and_goes_forward(bigquery_connection: BigQueryConnection) -> None:
    queries = Queries(BigQueryCalls(bigquery_connection))

    first, second = server_time(queries), server_time(queries)

    assert first < second
    assert abs((datetime.now(UTC) - second).total_seconds()) < 5
    assert first.utcoffset() is not None


def test_a_query_that_the_emulator_fails_at_each_time_is_refused_and_not_called_unavailable(
    proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    proxy.on(refusal(500, "internalError"), matching=is_start, times=99)
    connection = through(proxy, bigquery_connection, max_retries=9)
    with pytest.raises(BigQueryRefused, match="It is about the query, so it is not sent again"):
        Queries(BigQueryCalls(connection)).run("SELECT 1", doing="x")
    assert len(starts(proxy)) == 3

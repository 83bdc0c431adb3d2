"""Answers that the emulator does not give on request."""

import json
from datetime import timedelta

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.retries.retry import RetryPolicy, StepDeadline
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy, NoAnswer
from bq_harper_assets_tests.stores.bigquery.by_hand import STARTED, BigQueryByHand
from bq_harper_assets_tests.stores.bigquery.test_queries import is_start, starts

JSON = {"Content-Type": "application/json"}
JOB = {
    "jobReference": {"projectId": "p", "jobId": "made", "location": "US"},
    "configuration": {"query": {"query": "SELECT 1"}},
}
FAILED = {"state": "DONE", "errorResult": {"reason": "jobBackendError", "message": "try again"}}
ENDED = {
    **JOB,
    "status": {"state": "DONE"},
    "statistics": {"startTime": "1767571200000", "query": {"totalBytesBilled": "0"}},
}
ROWS = {
    **JOB,
    "jobComplete": True,
    "totalRows": "1",
    "schema": {"fields": [{"name": "one", "type": "INTEGER"}]},
    "rows": [{"f": [{"v": "1"}]}],
}


def test_a_job_that_failed_is_followed_by_one_of_another_name(nowhere: str) -> None:
    with FaultProxy(nowhere) as proxy:
        proxy.on(Answer(200, {**JOB, "status": FAILED}, JSON), matching=is_start)
        proxy.on(Answer(200, ENDED, JSON), matching=is_start)
        proxy.on(Answer(200, ROWS, JSON), matching=lambda seen: "/queries/" in seen.path, times=9)
        proxy.on(Answer(200, ENDED, JSON), times=9)
        connection = BigQueryConnection(project="p", endpoint=proxy.url)
        calls = BigQueryCalls(connection, sleep=lambda _: None)
        answer = Queries(calls).run("SELECT 1 AS one", doing="x")
        names = [json.loads(seen.body)["jobReference"]["jobId"] for seen in starts(proxy)]
    assert answer.rows == ({"one": 1},)
    assert len(set(names)) == len(names) == 2


def test_the_rows_of_all_pages_come_in_order_with_what_they_cost() -> None:
    rows = [{"n": n, "at": STARTED + timedelta(seconds=n), "text": f"r{n}"} for n in range(8)]
    with BigQueryByHand(lambda asked: rows, billed=7) as service, service.queries() as queries:
        answer = queries.run("SELECT n", doing="x")
        assert [dict(row) for row in answer.rows] == rows
        assert (answer.started, answer.bytes_billed, queries.bytes_billed) == (STARTED, 7, 7)
        queries.run("SELECT n", doing="x")
        assert queries.bytes_billed == 14
        service.billed = None
        assert queries.run("SELECT n", doing="x").bytes_billed == 0
    first, second, _ = (asked.job["jobReference"]["jobId"] for asked in service.asked)
    assert answer.job_id == first != second


def test_a_job_is_sent_with_labels_location_limits_and_parameters_as_values() -> None:
    with (
        BigQueryByHand() as service,
        service.queries(location="EU", max_bytes_billed=12_345) as queries,
    ):
        queries.run("SELECT @a", {"a": 5, "b": ["x", "y"]}, doing="x")
        Queries(queries.calls, labels={"bqh": "Run 7/a", "who": "me"}).run("SELECT 2", doing="x")
    one, two = service.asked
    assert one.sql == "SELECT @a"
    assert one.parameters == {"a": "5", "b": ["x", "y"]}
    assert one.job["jobReference"]["location"] == "EU"
    assert one.job["configuration"]["labels"] == {"bqh": "sync"}
    assert one.job["configuration"]["jobTimeoutMs"] == "3600000"
    assert one.job["configuration"]["query"]["maximumBytesBilled"] == "12345"
    assert two.job["configuration"]["labels"] == {"bqh": "run_7_a", "who": "me"}


def test_a_query_that_is_only_checked_gives_its_columns_and_is_not_run() -> None:
    fields = [{"name": "n", "type": "INTEGER"}, {"name": "s", "type": "STRING"}]
    with (
        BigQueryByHand(fields=fields) as service,
        service.queries(max_bytes_billed=9, location="EU") as queries,
    ):
        found = queries.fields("SELECT n, s", doing="x")
        assert [(each.name, each.field_type) for each in found] == [
            ("n", "INTEGER"),
            ("s", "STRING"),
        ]
        service.fields = ()
        assert list(queries.fields("SELECT", doing="x")) == []
    assert service.asked == []
    assert service.checked[0].sql == "SELECT n, s"
    assert service.checked[0].job["configuration"]["query"]["maximumBytesBilled"] == "9"
    assert service.checked[0].job["jobReference"]["location"] == "EU"


def test_a_long_job_is_looked_at_less_and_less_often() -> None:
    waits: list[float] = []
    with BigQueryByHand(lambda asked: [{"n": 1}], looks=9) as service:
        queries = Queries(BigQueryCalls(service.connection, sleep=waits.append))
        with queries.client:
            assert [row["n"] for row in queries.run("SELECT 1", doing="x").rows] == [1]
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0][: len(waits)]
    assert len(waits) == 8  # the answer to the start was the first look


def test_a_job_that_was_started_already_is_looked_up_and_not_run_again() -> None:
    with BigQueryByHand(lambda asked: [{"n": 1}]) as service, FaultProxy(service.endpoint) as proxy:
        proxy.on(NoAnswer(), matching=is_start)
        known = service.connection.model_copy(update={"endpoint": proxy.url, "max_retries": 1})
        queries = Queries(BigQueryCalls(known))
        with queries.client:
            answer = queries.run("SELECT 1", doing="x")
    assert [row["n"] for row in answer.rows] == [1]
    assert {asked.job["jobReference"]["jobId"] for asked in service.asked} == {answer.job_id}


def test_a_job_that_runs_on_is_an_answer_for_the_limit_of_the_step() -> None:
    now = [0.0]
    deadline = StepDeadline(60, lambda: now[0])
    deadline.failed()
    with BigQueryByHand(lambda asked: [{"n": 1}], looks=3) as service:
        policy = RetryPolicy(max_retries=0, deadline=deadline)
        left: list[float] = []

        def sleep(seconds: float) -> None:
            now[0] += 50
            left.append(deadline.left_s)

        queries = Queries(BigQueryCalls(service.connection, retry=policy, sleep=sleep))
        with queries.client:
            queries.run("SELECT 1", doing="x")
    assert left == [60, 60]  # none of it is used up

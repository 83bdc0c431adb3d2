"""Answers that the emulator does not give on request."""

import json

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
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
        answer = Queries(BigQueryCalls(connection)).run("SELECT 1 AS one", doing="x")
        names = [json.loads(seen.body)["jobReference"]["jobId"] for seen in starts(proxy)]
    assert answer.rows == ({"one": 1},)
    assert len(set(names)) == len(names) == 2

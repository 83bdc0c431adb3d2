"""A BigQuery that answers each query as a test says: for tests that need no emulator."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.instants import micros_at
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries

Rows = Sequence[Mapping[str, Any]] | None  # None: the query is refused
Answers = Callable[[str], Rows]


@contextmanager
def queries_answered(answers: Answers) -> Iterator[Queries]:
    """Queries of the project `p`, each answered by what the function returns of its SQL."""
    asked: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = body["jobReference"]["jobId"]
            asked[name] = body["configuration"]["query"]["query"]
            self._tell(_job(name))

        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            name = path.rpartition("/")[2]
            if "/queries/" not in path:
                self._tell(_job(name))
                return
            rows = answers(asked[name])
            if rows is None:
                error = {"code": 400, "message": "no", "errors": [{"reason": "invalidQuery"}]}
                self._tell({"error": error}, 400)
                return
            self._tell(_job(name) | _answer(rows))

        def _tell(self, told: Mapping[str, Any], status: int = 200) -> None:
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    connection = BigQueryConnection(
        project="p", endpoint=f"http://127.0.0.1:{server.server_address[1]}"
    )
    calls = BigQueryCalls(connection, retry=RetryPolicy(max_retries=0), breakers=Breakers())
    queries = Queries(calls)
    try:
        with queries.client:
            yield queries
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def _job(name: str) -> dict[str, Any]:
    return {
        "jobReference": {"projectId": "p", "jobId": name, "location": "US"},
        "configuration": {"query": {"query": "SELECT 1"}},
        "status": {"state": "DONE"},
        "statistics": {"startTime": "1767571200000", "query": {"totalBytesBilled": "0"}},
    }


def _answer(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = list(rows[0]) if rows else ["none"]
    fields = [{"name": n, "type": _type([row.get(n) for row in rows])} for n in names]
    told = [{"f": [{"v": _value(row[name])} for name in names]} for row in rows]
    return {
        "jobComplete": True,
        "totalRows": str(len(rows)),
        "schema": {"fields": fields},
        "rows": told,
    }


def _type(values: Sequence[Any]) -> str:
    if any(isinstance(each, str) for each in values):
        return "STRING"
    return "INTEGER" if any(isinstance(each, int) for each in values) else "TIMESTAMP"


def _value(value: Any) -> str | None:
    if isinstance(value, datetime):
        return str(micros_at(value))
    return None if value is None else str(value)

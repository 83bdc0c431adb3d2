"""A BigQuery on loopback whose every answer is written by the test; it takes no time to start.

with BigQueryByHand(lambda asked: [{"one": 1}]) as service:
    ...  # talk to service.connection
    assert [asked.sql for asked in service.asked] == ["SELECT 1 AS one"]
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries

PROJECT = "by-hand"
STARTED = datetime(2026, 1, 5, 12, tzinfo=UTC)
ROWS_PER_PAGE = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {bool: "BOOL", int: "INTEGER", str: "STRING", datetime: "TIMESTAMP", float: "FLOAT"}
_Described = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """One query as it came in."""

    sql: str
    job: Mapping[str, Any] = field(repr=False)  # as it was sent

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of its parameters, all of them as text, by name."""
        given = self.job["configuration"]["query"].get("queryParameters", [])
        return {each["name"]: _value_of(each["parameterValue"]) for each in given}


Answers = Callable[[Asked], Sequence[Mapping[str, Any]] | None]  # None: the query is refused


@dataclass
class BigQueryByHand:
    """Notes what it is asked, and answers queries with the rows that `answer` returns.

    What nobody has written an answer to fails the test that asks.
    """

    answer: Answers = lambda asked: []
    tables: dict[str, _Described] = field(default_factory=dict)  # as described, by dataset.table
    datasets: set[str] = field(default_factory=set)
    fields: Sequence[_Described] = ()  # of the result of each dry run
    billed: int | None = 0  # bytes, of each query; None: it does not say
    looks: int = 0  # at a job that are answered "running"
    asked: list[Asked] = field(default_factory=list)
    checked: list[Asked] = field(default_factory=list)  # dry runs
    dropped: list[str] = field(default_factory=list)
    made: list[_Described] = field(default_factory=list)  # datasets
    unknown: list[Exception] = field(default_factory=list)  # why it could not answer
    _rows: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> "BigQueryByHand":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self.unknown:
            raise self.unknown[0]

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def connection(self) -> BigQueryConnection:
        """Leads here, and fails soon."""
        return BigQueryConnection(
            project=PROJECT, endpoint=self.endpoint, max_retries=0, initial_retry_delay_ms=1
        )

    def as_service(self, key_file: Path) -> BigQueryConnection:
        """Takes it for BigQuery itself, with a key file that is written here.

        BIGQUERY_EMULATOR_HOST, which Google's library reads, has to be the endpoint.
        """
        key = {
            "type": "service_account",
            "client_email": "nobody@by-hand",
            "token_uri": f"{self.endpoint}/token",
            "private_key": _private_key(),
        }
        key_file.write_text(json.dumps(key), encoding="utf-8")
        return BigQueryConnection(project=PROJECT, credentials=key_file, max_retries=0)

    @contextmanager
    def queries(self, **settings: Any) -> Iterator[Queries]:
        """Queries of a connection that leads here, closed at the end of the block."""
        connection = self.connection.model_copy(update=settings)
        calls = BigQueryCalls(connection, breakers=Breakers(), sleep=_no_wait)
        queries = Queries(calls)
        with queries.client:
            yield queries

    def answered(self, method: str, path: str, query: _Described, body: _Described) -> "_Answer":
        """The status and the body of an answer."""
        try:
            return self._answered(method, path, query, body)
        except Exception as error:
            self.unknown.append(error)
            return 400, {"error": {"code": 400, "message": f"by hand: {error!r}"}}

    def _answered(self, method: str, path: str, query: _Described, body: _Described) -> "_Answer":
        if path == "/token":
            return 200, {"access_token": "given", "expires_in": 3600, "token_type": "Bearer"}
        where = path.removeprefix(f"/bigquery/v2/projects/{PROJECT}")
        if (method, where) == ("POST", "/jobs"):
            return self._started(body)
        if match := re.fullmatch(r"/(jobs|queries)/([\w-]+)", where):
            kind, job = match.groups()
            return 200, self._job(job) if kind == "jobs" else self._page(job, query)
        if (method, where) == ("POST", "/datasets"):
            self.made.append(body)
            return 200, body
        if match := re.fullmatch(r"/datasets/([\w-]+)", where):
            return (200, _named(match[1])) if match[1] in self.datasets else _NOT_FOUND
        if match := re.fullmatch(r"/datasets/([\w-]+)/tables", where):
            return self._listed(match[1], query)
        if match := re.fullmatch(r"/datasets/([\w-]+)/tables/([\w-]+)", where):
            name = ".".join(match.groups())
            if method == "DELETE":
                self.dropped.append(name)
            return (200, self.tables[name]) if name in self.tables else _NOT_FOUND
        raise LookupError(f"nobody has written an answer to {method} {path}")

    def _started(self, body: _Described) -> "_Answer":
        configuration = body["configuration"]
        asked = Asked(configuration["query"]["query"], body)
        if configuration.get("dryRun"):
            self.checked.append(asked)
            schema = {"schema": {"fields": list(self.fields)}}
            ended = {"state": "DONE"}
            return 200, {**body, "status": ended, "statistics": {"query": schema}}
        self.asked.append(asked)
        job = body["jobReference"]["jobId"]
        if job in self._rows:
            return 409, {"error": {"code": 409, "message": "Already Exists: Job"}}
        rows = self.answer(asked)
        if rows is None:
            return _REFUSED
        self._rows[job] = rows
        self._left[job] = self.looks
        return 200, self._job(job, configuration)

    def _job(self, job: str, configuration: _Described | None = None) -> _Described:
        is_running = self._left[job] > 0
        self._left[job] -= is_running
        started = str(int(STARTED.timestamp() * 1000))
        return {
            "jobReference": {"projectId": PROJECT, "jobId": job, "location": "US"},
            "configuration": configuration or {"query": {"query": ""}},
            "status": {"state": "RUNNING" if is_running else "DONE"},
            "statistics": {"startTime": started, "query": _bill(self.billed)},
        }

    def _page(self, job: str, query: _Described) -> _Described:
        rows = self._rows[job]
        first = int(query.get("pageToken", query.get("startIndex", 0)))
        last = first + ROWS_PER_PAGE if query.get("maxResults") != "0" else first
        names = {name: value for row in reversed(rows) for name, value in row.items()}
        kinds = {name: _kind(name, rows) for name in names}
        return {
            "jobReference": {"projectId": PROJECT, "jobId": job, "location": "US"},
            "jobComplete": True,
            "totalRows": str(len(rows)),
            "schema": {"fields": [{"name": name, "type": kinds[name]} for name in kinds]},
            "rows": [
                {"f": [{"v": _told(row[name])} for name in kinds]} for row in rows[first:last]
            ],
            **({"pageToken": str(last)} if last < len(rows) else {}),
        }

    def _listed(self, dataset: str, query: _Described) -> "_Answer":
        found = [each for name, each in self.tables.items() if name.startswith(f"{dataset}.")]
        if not found and dataset not in self.datasets:
            return _NOT_FOUND
        first = int(query.get("pageToken", 0))
        last = first + ROWS_PER_PAGE
        more = {"nextPageToken": str(last)} if last < len(found) else {}
        return 200, {"tables": found[first:last], **more}


_Answer = tuple[int, _Described]
_REFUSED: _Answer = (
    400,
    {"error": {"code": 400, "message": "no", "errors": [{"reason": "invalidQuery"}]}},
)
_NOT_FOUND: _Answer = (404, {"error": {"code": 404, "message": "Not found: it is not there"}})


def described(dataset: str, table: str, **more: Any) -> dict[str, _Described]:
    """A table as BigQuery describes it, by its name."""
    reference = {"projectId": PROJECT, "datasetId": dataset, "tableId": table}
    return {f"{dataset}.{table}": {"tableReference": reference, "type": "TABLE", **more}}


def _named(dataset: str) -> _Described:
    return {"datasetReference": {"projectId": PROJECT, "datasetId": dataset}}


def _bill(billed: int | None) -> _Described:
    return {} if billed is None else {"totalBytesBilled": str(billed)}


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, encryption_algorithm=NoEncryption()
    ).decode()


def _no_wait(_: float) -> None:
    pass


def _value_of(given: Mapping[str, Any]) -> Any:
    if "arrayValues" in given:
        return [_value_of(each) for each in given["arrayValues"]]
    return given.get("value")


def _kind(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    (kind, *others) = {_TYPES[type(row[name])] for row in rows if row[name] is not None} or {
        "INTEGER"
    }
    assert not others, f"{name} is of several types"
    return kind


def _told(value: Any) -> str | None:
    if isinstance(value, datetime):
        return str((value - _EPOCH) // timedelta(microseconds=1))
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _handler(service: BigQueryByHand) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # status, headers and body leave as one

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _do(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_json = self.headers.get("Content-Type", "").startswith("application/json")
            told_us = json.loads(sent) if sent and is_json else {}
            status, told = service.answered(self.command, unquote(parts.path), query, told_us)
            body = json.dumps(told).encode()
            self.send_response_only(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        do_GET = do_POST = do_DELETE = do_PATCH = _do

    return Handler

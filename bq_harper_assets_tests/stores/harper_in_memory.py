"""A Harper of a few rows, which answers searches over HTTP: for tests that need no real server.

It knows what checks ask for. How the real one answers is tried by the tests that start it.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.client import HarperClient

Row = dict[str, Any]
_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": lambda held, value: held == value,
    "less_than": lambda held, value: held < value,
    "greater_than": lambda held, value: held > value,
    "greater_than_equal": lambda held, value: held >= value,
    "gelt": lambda held, value: value[0] <= held < value[1],
}


@dataclass
class HarperInMemory:
    """Its tables, by name; what it was asked; and the ids that no search by conditions finds."""

    tables: dict[str, list[Row]] = field(default_factory=dict)
    primary_key: str = "id"
    attributes: Sequence[Mapping[str, Any]] = ()  # as describe_table tells them
    unfindable: set[Any] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)
    is_away: bool = False
    before_answer: Callable[[dict[str, Any]], None] = lambda asked: None

    def operations(self, name: str) -> list[dict[str, Any]]:
        """What was asked by operations of this name, in order."""
        return [each for each in self.asked if each["operation"] == name]

    def answer(self, asked: dict[str, Any]) -> tuple[int, Any]:
        """The status and the body of an answer."""
        self.asked.append(asked)
        self.before_answer(asked)
        if self.is_away:
            return 503, {"error": "away"}
        table = self.tables.get(asked["table"])
        if table is None:
            return 404, {"error": f"Table 'data.{asked['table']}' does not exist"}
        operation = asked["operation"]
        if operation == "describe_table":
            return 200, self._described(asked["table"], table)
        if operation == "upsert":
            return 200, self._upserted(table, asked["records"])
        return 200, [_shown(row, asked["get_attributes"]) for row in self._found(asked, table)]

    def _described(self, name: str, table: Sequence[Row]) -> Mapping[str, Any]:
        return {
            "schema": "data",
            "name": name,
            "hash_attribute": self.primary_key,
            "attributes": list(self.attributes),
            "schema_defined": False,
            "audit": True,
            "record_count": len(table),
        }

    def _upserted(self, table: list[Row], records: Sequence[Row]) -> Mapping[str, Any]:
        for record in records:
            table[:] = [row for row in table if self._id(row) != self._id(record)] + [record]
        ids = [self._id(record) for record in records]
        total = len(records)
        return {"message": f"upserted {total} of {total} records", "upserted_hashes": ids}

    def _found(self, asked: dict[str, Any], table: Sequence[Row]) -> list[Row]:
        rows = sorted(table, key=lambda row: (str(type(self._id(row))), self._id(row)))
        if asked["operation"] == "search_by_id":
            by_id = {self._id(row): row for row in rows}
            return [by_id[each] for each in asked["ids"] if each in by_id]
        if asked["operation"] == "search_by_conditions":
            rows = [row for row in rows if self._id(row) not in self.unfindable or _by_id(asked)]
            rows = [row for row in rows if all(_holds(row, each) for each in asked["conditions"])]
            if sort := asked.get("sort"):
                name, is_descending = sort["attribute"], sort["descending"]
                rows.sort(key=lambda row: row[name], reverse=is_descending)
        elif asked.get("reverse"):
            rows.reverse()
        return rows[: asked.get("limit")]

    def _id(self, row: Row) -> Any:
        return row[self.primary_key]


def _by_id(asked: dict[str, Any]) -> bool:
    return all(each["comparator"] == "greater_than" for each in asked["conditions"])


def _holds(row: Row, condition: Mapping[str, Any]) -> bool:
    held, value = row.get(condition["attribute"]), condition["value"]
    comparator = condition["comparator"]
    if held is None or value is None:
        return comparator == "equals" and held is value
    return _HOLDS[comparator](held, value)


def _shown(row: Row, attributes: Sequence[str]) -> Row:
    if "*" in attributes:
        return row
    return {name: row.get(name) for name in attributes}


class _Server(ThreadingHTTPServer):
    daemon_threads = True


@contextmanager
def client_of(harper: HarperInMemory) -> Iterator[HarperClient]:
    """A client of it, which tries nothing again, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, told = harper.answer(asked)
            body = json.dumps(told, separators=(",", ":")).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    login = HarperConnection(
        url=f"http://127.0.0.1:{server.server_address[1]}", user="u", password=SecretStr("p")
    )
    try:
        with HarperClient(login, retry=RetryPolicy(max_retries=0), breakers=Breakers()) as client:
            yield client
    finally:
        server.shutdown()
        serving.join()
        server.server_close()

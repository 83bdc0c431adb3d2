"""Answers Harper's Operations API from memory: a real server for tests of what is sent and read.

It knows the operations that the client has, and no more of Harper than their plain answers; what
it does not know fails the test that asks. What Harper itself does is tested on Harper.
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

Asked = Mapping[str, Any]
Said = tuple[int, Any]  # status and body
Row = dict[str, Any]
ONCE = RetryPolicy(max_retries=0)
_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": lambda held, wanted: held == wanted,
    "less_than": lambda held, wanted: held < wanted,
    "greater_than": lambda held, wanted: held > wanted,
    "greater_than_equal": lambda held, wanted: held >= wanted,
    "gelt": lambda held, wanted: wanted[0] <= held < wanted[1],
}


@dataclass
class MemoryTable:
    """One table and its rows by id."""

    primary_key: str
    attributes: list[dict[str, Any]]
    rows: dict[Any, Row] = field(default_factory=dict)
    unfindable: set[Any] = field(default_factory=set)  # ids that the index of the ids alone finds


@dataclass
class MemoryHarper:
    """Its tables, and all requests in their order."""

    url: str = ""
    tables: dict[str, MemoryTable] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    refuses: Callable[[Asked], Said | None] = lambda asked: None  # before it does anything
    threads: int = 2
    unknown: list[Exception] = field(default_factory=list)  # why it could not answer

    @property
    def connection(self) -> HarperConnection:
        """How to reach it."""
        return HarperConnection(url=self.url, user="someone", password=SecretStr("a word"))

    def client(self, **options: Any) -> HarperClient:
        """Sends each request once, unless told otherwise."""
        return HarperClient(self.connection, **{"retry": ONCE, "breakers": Breakers(), **options})

    def make(self, name: str, *rows: Mapping[str, Any], key: str = "id") -> MemoryTable:
        """A table with these rows."""
        self.tables[name] = MemoryTable(key, [{"attribute": key}])
        self.tables[name].rows = {row[key]: dict(row) for row in rows}
        return self.tables[name]

    def rows(self, name: str) -> list[Row]:
        """All rows of a table, in the order of their ids."""
        rows = self.tables[name].rows
        return [rows[row_id] for row_id in sorted(rows, key=_order)]

    def of(self, operation: str) -> list[Asked]:
        """The requests for one operation."""
        return [asked for asked in self.asked if asked["operation"] == operation]

    def answer(self, asked: Asked) -> Said:
        """Does what is asked, and notes what it does not know how to do."""
        try:
            return self._done(asked)
        except Exception as error:
            self.unknown.append(error)
            return 400, {"error": f"the Harper in memory cannot answer: {error!r}"}

    def _done(self, asked: Asked) -> Said:
        self.asked.append(asked)
        if (refused := self.refuses(asked)) is not None:
            return refused
        name = asked.get("table")
        made = asked["operation"] == "create_table"
        if name is not None and not made and name not in self.tables:
            return 404, {"error": f"Table 'data.{name}' does not exist"}
        said: Said = getattr(self, f"_{asked['operation']}")(asked)
        return said

    def _create_table(self, asked: Asked) -> Said:
        if asked["table"] in self.tables:
            return 400, {"error": f"Table '{asked['table']}' already exists in 'data'"}
        attributes = [
            {("attribute" if name == "name" else name): value for name, value in each.items()}
            for each in asked["attributes"]
        ]
        self.tables[asked["table"]] = MemoryTable(asked["primary_key"], attributes)
        return 200, {"message": f"table 'data.{asked['table']}' successfully created."}

    def _create_attribute(self, asked: Asked) -> Said:
        attributes = self.tables[asked["table"]].attributes
        if asked["attribute"] in [each["attribute"] for each in attributes]:
            return 400, {"error": f"attribute '{asked['attribute']}' already exists in it"}
        attributes.append({"attribute": asked["attribute"], "indexed": True})
        return 200, {"message": "attribute successfully created."}

    def _describe_table(self, asked: Asked) -> Said:
        return 200, self._described(asked["table"])

    def _describe_all(self, asked: Asked) -> Said:
        return 200, {"data": {name: self._described(name) for name in self.tables}}

    def _described(self, name: str) -> dict[str, Any]:
        table = self.tables[name]
        return {
            "schema": "data",
            "name": name,
            "hash_attribute": table.primary_key,
            "attributes": table.attributes,
            "schema_defined": True,
            "audit": False,
            "record_count": len(table.rows),
        }

    def _upsert(self, asked: Asked) -> Said:
        table = self.tables[asked["table"]]
        for record in asked["records"]:
            table.rows.setdefault(record[table.primary_key], {}).update(record)
        return 200, _counted("upserted", len(asked["records"]))

    def _delete(self, asked: Asked) -> Said:
        for row_id in asked["ids"]:
            self.tables[asked["table"]].rows.pop(row_id, None)
        return 200, _counted("deleted", len(asked["ids"]))

    def _search_by_id(self, asked: Asked) -> Said:
        rows = self.tables[asked["table"]].rows
        return 200, _chosen([rows[each] for each in asked["ids"] if each in rows], asked)

    def _search_by_value(self, asked: Asked) -> Said:
        name, value = asked["attribute"], asked["value"]
        found = [r for r in self.rows(asked["table"]) if value == "*" or r.get(name) == value]
        found.sort(key=lambda row: _order(row.get(name)), reverse=asked.get("reverse", False))
        return 200, _chosen(found, asked)

    def _search_by_conditions(self, asked: Asked) -> Said:
        table, conditions = self.tables[asked["table"]], asked["conditions"]
        assert asked["operator"] == "and"
        found = [row for row in self.rows(asked["table"]) if _meets(row, conditions)]
        if {each["attribute"] for each in conditions} != {table.primary_key}:
            found = [row for row in found if row[table.primary_key] not in table.unfindable]
        if sort := asked.get("sort"):
            name = sort["attribute"]
            found.sort(key=lambda row: _order(row.get(name)), reverse=sort["descending"])
        return 200, _chosen(found, asked)

    def _system_information(self, asked: Asked) -> Said:
        http = [{"name": "http"} for _ in range(self.threads)]
        return 200, {"threads": [*http, {"name": "job"}]}


def _counted(done: str, count: int) -> dict[str, Any]:
    return {"message": f"{done} {count} of {count} records", "skipped_hashes": []}


def _meets(row: Row, conditions: list[dict[str, Any]]) -> bool:
    return all(
        _holds(each["comparator"], row.get(each["attribute"]), each["value"]) for each in conditions
    )


def _holds(comparator: str, held: Any, wanted: Any) -> bool:
    holds = _HOLDS[comparator]
    if held is None or wanted is None:
        return comparator == "equals" and held is wanted
    return holds(held, wanted)


def _order(value: Any) -> tuple[bool, bool, Any]:
    """Sorts as Harper's indexes do: nothing, then numbers, then texts."""
    return value is not None, isinstance(value, str), 0 if value is None else value


def _chosen(rows: list[Row], asked: Asked) -> list[Row]:
    names = asked["get_attributes"]
    rows = rows[: asked.get("limit")]
    return rows if names == ["*"] else [{name: row.get(name) for name in names} for row in rows]


def harper_with(tables: Mapping[str, Sequence[Row]]) -> MemoryHarper:
    """One with these rows, which is on no port yet; `id` is the primary key of each table."""
    harper = MemoryHarper()
    for name, rows in tables.items():
        harper.make(name, *rows)
    return harper


def away(asked: Asked) -> Said:
    """What a Harper that is not ready says to everything: for `refuses`."""
    return 503, {"error": "away"}


@contextmanager
def memory_harper() -> Iterator[MemoryHarper]:
    """One that is empty, on a port of its own, for as long as the block runs."""
    harper = MemoryHarper()
    with _served(harper):
        yield harper


@contextmanager
def client_of(harper: MemoryHarper) -> Iterator[HarperClient]:
    """A client of it, which is on a port for as long as the block runs."""
    with _served(harper), harper.client() as client:
        yield client


@contextmanager
def _served(harper: MemoryHarper) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            if self.headers.get("Transfer-Encoding") == "chunked":
                content = b"".join(_chunks(self.rfile))
            else:
                size = int(self.headers["Content-Length"])
                content = self.rfile.read(size)
                if len(content) < size:  # the client has thought better of it
                    self.close_connection = True
                    return
            status, said = harper.answer(json.loads(content))
            body = (
                said
                if isinstance(said, bytes)
                else json.dumps(said, separators=(",", ":")).encode()
            )
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        harper.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.002,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            if harper.unknown:
                raise harper.unknown[0]


def _chunks(stream: Any) -> Iterator[bytes]:
    while size := int(stream.readline().split(b";")[0], 16):
        yield stream.read(size)
        stream.readline()
    stream.readline()

"""Offers Harper's Operations API, one method per operation, and none that drops anything."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.breaker import PROCESS_BREAKERS, Breakers
from bq_harper_assets.retries.retry import Call, Retry, RetryPolicy
from bq_harper_assets.stores.harper.answers import (
    Attribute,
    Creation,
    TableDescription,
    WriteCount,
    read_creation,
    read_description,
    read_json,
    read_rows,
    read_written,
)
from bq_harper_assets.stores.harper.calls import Calls
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import (
    HarperExists,
    HarperNotFound,
    HarperRefused,
    HarperUnauthorized,
)
from bq_harper_assets.stores.harper.transport import Timeouts

IDS_PER_REQUEST = 1_000  # of a search by ids
DATABASE = "data"  # Harper's database for a table that names none

DEFAULT_RETRY = RetryPolicy()
DEFAULT_TIMEOUTS = Timeouts()

Row = dict[str, Any]


class HarperClient:
    """A Harper client talks to one database; threads may share it, and close it more than once."""

    def __init__(
        self,
        connection: HarperConnection,
        *,
        database: str = DATABASE,
        retry: RetryPolicy = DEFAULT_RETRY,
        breakers: Breakers = PROCESS_BREAKERS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        send_guard: Callable[[], None] | None = None,
        on_retry: Callable[[Retry], None] = lambda retry: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connection = connection
        self.retry = retry
        self._calls = Calls(
            connection,
            retry=retry,
            breakers=breakers,
            timeouts=timeouts,
            send_guard=send_guard,
            on_retry=on_retry,
            clock=clock,
        )
        self._database = database

    def __enter__(self) -> "HarperClient":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are idle."""
        self._calls.transport.close()

    @property
    def last_unanswered_at(self) -> float | None:
        """Returns when, by `clock`, the newest write was sent that Harper may apply unnoticed."""
        return self._calls.transport.last_unanswered_at

    def describe_table(self, table: str) -> TableDescription | None:
        """Describes a table; returns None if the server thread that answers does not know it."""
        call = self._call("describe_table", table)
        try:
            body = self._send(call, {}, accept=HarperNotFound)
        except HarperUnauthorized as error:
            if not _is_hidden_or_missing(error):
                raise
            told = self.describe_all().get(table)
            if told is None and self._calls.knows_table(table):
                raise
            return None if told is None else read_description(call, told)
        if isinstance(body, HarperRefused):
            return None
        return read_description(call, read_json(call, body))

    def describe_all(self) -> dict[str, Row]:
        """Returns what Harper tells of each table of this client's database, by name.

        Of a table that it cannot read, Harper leaves out parts: nobody else's table is in the way.
        """
        tables: dict[str, Row] = self._read(self._call("describe_all"), {}).get(self._database, {})
        return tables

    def create_table(
        self, table: str, primary_key: str, attributes: Sequence[Attribute]
    ) -> Creation:
        """Creates a table with these attributes; only those that say so get an index.

        If the table exists, with whatever attributes, nothing changes and the result is not new.
        """
        # Without any attributes Harper would index all, and answer ranges of text wrongly.
        declared = attributes or [Attribute(name=primary_key)]
        fields = {
            "primary_key": primary_key,
            "attributes": [
                _given(name=each.name, type=each.type, indexed=each.indexed or None)
                for each in declared
            ],
        }
        call = self._call("create_table", table)
        made = read_creation(self._send(call, fields, accept=HarperExists))
        self._calls.note_table(table)
        return made

    def create_attribute(self, table: str, name: str) -> Creation:
        """Adds an untyped attribute and indexes the rows by it; not new means that it existed."""
        call = self._call("create_attribute", table)
        return read_creation(self._send(call, {"attribute": name}, accept=HarperExists))

    def upsert(self, table: str, records: Sequence[Mapping[str, Any]]) -> WriteCount:
        """Merges the records into the rows with the same ids; sending null clears a value."""
        return self.upsert_body(table, _json(list(records)))

    def upsert_body(self, table: str, records_json: bytes) -> WriteCount:
        """Upserts a JSON array that is encoded already; Harper applies all of it or nothing."""
        call = self._call("upsert", table)
        head = self._body(call, {})[:-1]
        body = b"".join((head, b',"records":', records_json, b"}"))
        return read_written(call, self._answer(call, body))

    def upsert_frame(self, table: str) -> int:
        """Returns how many bytes upsert_body() puts around the records."""
        return len(self._body(self._call("upsert", table), {})) + len(b',"records":')

    def delete(self, table: str, ids: Sequence[Any]) -> WriteCount:
        """Deletes rows by id; ids that no row has count as deleted."""
        call = self._call("delete", table)
        return read_written(call, self._answer(call, self._body(call, {"ids": list(ids)})))

    def search_by_id(
        self, table: str, ids: Sequence[Any], attributes: Sequence[str] = ("*",)
    ) -> list[Row]:
        """Returns the rows in the order of `ids`, without those that do not exist."""
        fields = {"ids": list(ids), "get_attributes": list(attributes)}
        return self._rows("search_by_id", table, fields)

    def search_by_value(
        self,
        table: str,
        attribute: str,
        value: Any,
        attributes: Sequence[str] = ("*",),
        *,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[Row]:
        """Returns the rows whose attribute equals `value`; "*" returns all in the index's order."""
        if value is None:
            raise ValueError("search_by_value cannot look for null; use search_by_conditions")
        fields = {
            "attribute": attribute,
            "value": value,
            "get_attributes": list(attributes),
            **_given(limit=limit, reverse=reverse or None),
        }
        return self._rows("search_by_value", table, fields)

    def search_by_conditions(
        self,
        table: str,
        conditions: Sequence[Condition],
        attributes: Sequence[str] = ("*",),
        *,
        sort_by: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        cell: str | None = None,
    ) -> list[Row]:
        """Returns the rows that meet all conditions; at least one is needed."""
        sort = {"attribute": sort_by, "descending": descending} if sort_by else None
        fields = {
            "conditions": [condition.as_fields() for condition in conditions],
            "operator": "and",
            "get_attributes": list(attributes),
            **_given(sort=sort, limit=limit),
        }
        return self._rows("search_by_conditions", table, fields, cell)

    def system_information(self, parts: Sequence[str] = ()) -> Row:
        """Returns all parts, or those named (system, cpu, memory...); it needs a super_user."""
        call = self._call("system_information")
        told: Row = self._read(call, {"attributes": list(parts)} if parts else {})
        return told

    def server_threads(self) -> int | None:
        """Returns how many threads answer requests, or None if our role may not know."""
        try:
            threads = self.system_information(["threads"])["threads"]
        except HarperUnauthorized:
            return None
        return sum(1 for thread in threads if thread.get("name") == "http")

    def _rows(
        self,
        operation: str,
        table: str,
        fields: Mapping[str, Any],
        cell: str | None = None,
    ) -> list[Row]:
        call = self._call(operation, table, cell)
        return read_rows(call, self._read(call, fields), fields["get_attributes"])

    def _read(self, call: Call, fields: Mapping[str, Any]) -> Any:
        return read_json(call, self._answer(call, self._body(call, fields)))

    def _send(
        self, call: Call, fields: Mapping[str, Any], accept: type[HarperRefused]
    ) -> bytes | HarperRefused:
        return self._calls.send(call, self._body(call, fields), accept=accept)

    def _answer(self, call: Call, body: bytes) -> bytes:
        answer = self._calls.send(call, body)
        assert isinstance(answer, bytes)  # without `accept` there is no other kind of answer
        return answer

    def _call(self, operation: str, table: str | None = None, cell: str | None = None) -> Call:
        return Call(self._calls.transport.store, operation, table, cell)

    def _body(self, call: Call, fields: Mapping[str, Any]) -> bytes:
        # Harper does not check a role's rights where the request leaves out its database.
        target = {"database": self._database, "table": call.table} if call.table else {}
        return _json({"operation": call.operation, **target, **fields})


def _is_hidden_or_missing(error: HarperUnauthorized) -> bool:
    """Says whether Harper gave the answer it gives for a missing table and for a forbidden one."""
    return bool(error.missing) and all("does not exist" in right for right in error.missing)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _json(value: Any) -> bytes:
    # Harper would take NaN for a syntax error, with a message that names no row.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("utf-8")

"""Reads Harper's answers: it says which of them are errors, and what the others mean."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from bq_harper_assets.retries.retry import Call
from bq_harper_assets.stores.harper.errors import (
    HarperError,
    HarperExists,
    HarperIndexing,
    HarperNotFound,
    HarperNotUnderstood,
    HarperRefused,
    HarperRowBroken,
    HarperUnauthorized,
    HarperUnavailable,
)

# The pattern is anchored, because a refused value is quoted in the text and may say anything.
_EXISTS = re.compile(r"(?:Table|database|schema|attribute) '.*' already exists\b", re.IGNORECASE)
# Only search_by_conditions uses the second form.
_MISSING = re.compile(
    r"(?:(?:Table|database|schema) '.*' does not exist|Table \S+ not found)", re.IGNORECASE
)
# This is what create_attribute answers, with status 500, if the table does not exist.
_NO_SUCH_TABLE = "Cannot read properties of undefined (reading 'attributes')"
# Harper says this of create_table, though a role with structure_user may do it as well.
_MAKE_TABLES = "Operation 'createTable' is restricted to 'super_user' roles"
_COUNTS = re.compile(rb'"message":"(?:\w+ )?(\d+) of (\d+) record')
_NOT_INDEXED_YET = "is not indexed yet"  # Harper says it with status 503
_IN_PLACE_OF_A_ROW = frozenset({"error", "message"})  # it comes with 200, among good rows
_TRANSIENT = (429, 502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """An attribute is declared in a Harper table; if its type is None, Harper checks no values."""

    name: str
    type: str | None = None
    indexed: bool = False
    required: bool = False  # a component may declare it so, and then a row without it is refused


@dataclass(frozen=True, kw_only=True)
class TableDescription:
    """A table description is what Harper says of a table.

    If it has no attributes at all, the role may not see them.
    """

    database: str
    name: str
    primary_key: str
    attributes: tuple[Attribute, ...]
    schema_defined: bool
    audit: bool
    record_count: int
    is_count_exact: bool


@dataclass(frozen=True)
class WriteCount:
    """A write count says how many rows a write stored, by Harper's own count.

    An id that was sent twice is counted twice.
    """

    done: int
    skipped: tuple[Any, ...] = ()  # the ids that were left out


@dataclass(frozen=True)
class Creation:
    """A creation is Harper's answer to create_table or create_attribute."""

    is_new: bool
    said: str  # like HarperError.said: "answered 400: Table 'Orders' already exists in 'data'"


def error_class(call: Call, status: int, error: str) -> type[HarperError]:
    """Chooses the error class of an answer that is not 200, by its status and Harper's text."""
    if status in (401, 403):
        return HarperUnauthorized
    # A full disk may be enlarged, so this one is transient; every other 500 is about the request.
    if status in _TRANSIENT or (status == 500 and error.startswith("Commit failed")):
        return HarperIndexing if _NOT_INDEXED_YET in error else HarperUnavailable
    if status in (400, 409) and _EXISTS.match(error):
        return HarperExists
    if status in (400, 404) and _MISSING.match(error):
        return HarperNotFound
    if status == 500 and call.operation == "create_attribute" and error == _NO_SUCH_TABLE:
        return HarperNotFound
    return HarperRefused


def error_text(body: bytes) -> tuple[str, Mapping[str, Any]]:
    """Returns Harper's own words and its whole error object; if there is none, the body as text."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace"), {}
    if not isinstance(parsed, dict):
        return str(parsed), {}
    # Errors that arise before Harper's own code runs have the reason under `message`.
    text = parsed["message"] if "statusCode" in parsed else parsed.get("error")
    return str(text), parsed


def missing_rights(error: Mapping[str, Any]) -> tuple[str, ...]:
    """Lists the rights that a 403 asks for, one text each."""
    rights = []
    for item in error.get("unauthorized_access", ()):
        if not isinstance(item, dict):
            known = item == _MAKE_TABLES
            rights.append('to make tables: "structure_user": ["data"]' if known else str(item))
            continue
        where = f"table {item.get('schema')}.{item.get('table')}"
        rights += [f"{right} on {where}" for right in item.get("required_table_permissions", ())]
        rights += [
            f"{right} on attribute {attribute.get('attribute_name')!r} of {where}"
            for attribute in item.get("required_attribute_permissions", ())
            for right in attribute.get("required_permissions", ())
        ]
    # Harper also says this of tables that exist, if the role has no right to them.
    rights += [
        f"a right to it, if it is there: {item}" for item in error.get("invalid_schema_items", ())
    ]
    return tuple(rights)


def seconds_to_retry_after(header: str | None) -> float | None:
    """Returns the seconds until a Retry-After, which is a number or a date; None if neither."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def read_written(call: Call, body: bytes) -> WriteCount:
    """Reads the counts of a write; the ids in the answer are parsed only if some were skipped."""
    counts = _COUNTS.search(body)
    if counts is None:
        raise HarperNotUnderstood(call, "answered 200 without a count", 200)
    done, asked = int(counts[1]), int(counts[2])
    skipped: tuple[Any, ...] = ()
    if done != asked or (b'"skipped_hashes":' in body and b'"skipped_hashes":[]' not in body):
        skipped = tuple(read_json(call, body).get("skipped_hashes", ()))
    return WriteCount(done, skipped)


def read_json(call: Call, body: bytes) -> Any:
    """Parses an answer; raises HarperNotUnderstood if it is not JSON."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise HarperNotUnderstood(
            call, "answered 200 with something else than JSON", 200
        ) from error


def read_rows(call: Call, answer: Any, asked: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the rows of a search; raises HarperRowBroken if one of them is an error instead."""
    if not isinstance(answer, list):
        raise HarperNotUnderstood(call, "answered a search with something else than rows", 200)
    for place, row in enumerate(answer, 1):
        if isinstance(row, dict) and ("error" not in row or not row.keys() <= _IN_PLACE_OF_A_ROW):
            continue
        if isinstance(row, dict) and set(asked) <= _IN_PLACE_OF_A_ROW:
            continue  # the table has a column of that name, and no other was asked for
        raise broken_row(call, place, len(answer), row)
    return answer


def broken_row(call: Call, place: int, of: int, found: Any) -> HarperRowBroken:
    """Makes the error for one item of an answer that is not a row."""
    return HarperRowBroken(
        call, f"answered {json.dumps(found)[:200]} in place {place:,} of {of:,} rows", 200
    )


def require_ids(
    rows: Sequence[Mapping[str, Any]],
    primary_key: str,
    operation: str,
    table: str,
    cell: str | None = None,
) -> list[Any]:
    """Returns the id of each row; raises HarperRowBroken for the first row that has none."""
    for place, row in enumerate(rows, 1):
        if row.get(primary_key) is None:
            raise broken_row(Call("Harper", operation, table, cell), place, len(rows), row)
    return [row[primary_key] for row in rows]


def read_description(call: Call, told: Any) -> TableDescription:
    """Reads one table of an answer to describe_table or describe_all."""
    try:
        return TableDescription(
            database=told["schema"],
            name=told["name"],
            primary_key=told["hash_attribute"],
            attributes=tuple(
                Attribute(
                    name=attribute["attribute"],
                    type=attribute.get("type"),
                    # It is {} once a component has adopted the table, and true otherwise.
                    indexed="indexed" in attribute and attribute["indexed"] is not False,
                    required=attribute.get("nullable") is False,
                )
                for attribute in told["attributes"]
            ),
            schema_defined=told["schema_defined"],
            audit=told["audit"],
            record_count=told["record_count"],
            is_count_exact="estimated_record_range" not in told,
        )
    except (KeyError, TypeError) as error:
        raise HarperNotUnderstood(call, "described a table in an unknown way", 200) from error


def read_creation(answer: bytes | HarperRefused) -> Creation:
    """Says whether Harper made the thing now, or refused because it existed already."""
    if isinstance(answer, HarperRefused):
        return Creation(False, answer.said)
    return Creation(True, "answered 200")

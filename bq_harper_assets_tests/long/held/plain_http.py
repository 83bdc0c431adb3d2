"""Harper and the BigQuery emulator over plain HTTP: the comparer shares no code with the product.

differences(emulator.rows("held.ships"), harper.rows("Ships"), key="number")
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

OURS = {"id", "_syncedAt", "_batch", "_hash"}
TIMEOUT_S = 120
Row = dict[str, Any]


@dataclass(frozen=True)
class Emulator:
    """The source, by the REST interface of BigQuery."""

    url: str
    project: str

    def make_dataset(self, name: str) -> None:
        """No matter if it is there."""
        reference = {"datasetReference": {"projectId": self.project, "datasetId": name}}
        answer = requests.post(
            f"{self.url}/bigquery/v2/projects/{self.project}/datasets",
            json=reference,
            timeout=TIMEOUT_S,
        )
        assert answer.status_code in (200, 409), answer.text

    def make_table(self, dataset: str, name: str, columns: Sequence[Any]) -> None:
        """By the interface: CREATE TABLE makes text of a JSON column in the emulator."""
        reference = {"projectId": self.project, "datasetId": dataset, "tableId": name}
        answer = requests.post(
            f"{self.url}/bigquery/v2/projects/{self.project}/datasets/{dataset}/tables",
            json={"tableReference": reference, "schema": {"fields": list(columns)}},
            timeout=TIMEOUT_S,
        )
        assert answer.status_code == 200, answer.text

    def run(self, sql: str) -> dict[str, Any]:
        """One statement; its whole answer."""
        asked = {
            "query": sql,
            "useLegacySql": False,
            "formatOptions": {"useInt64Timestamp": True},
            "maxResults": 1_000_000,
        }
        answer = requests.post(
            f"{self.url}/bigquery/v2/projects/{self.project}/queries", json=asked, timeout=TIMEOUT_S
        )
        assert answer.status_code == 200, (sql, answer.text)
        told: dict[str, Any] = answer.json()
        assert told["jobComplete"], sql
        assert not told.get("errors"), (sql, told["errors"])
        return told

    def rows(self, table: str, where: str = "TRUE") -> list[Row]:
        """As Harper should hold them."""
        told = self.run(f"SELECT * FROM {table} WHERE {where}")
        rows = [_record(told["schema"]["fields"], row) for row in told.get("rows", ())]
        assert len(rows) == int(told["totalRows"])
        return rows


@dataclass(frozen=True)
class PlainHarper:
    """The target, by the Operations API."""

    url: str
    user: str
    password: str = field(repr=False)

    def send(self, operation: str, **fields: Any) -> Any:
        """One operation; its answer."""
        answer = requests.post(
            self.url,
            json={"operation": operation, "database": "data", **fields},
            auth=(self.user, self.password),
            timeout=TIMEOUT_S,
        )
        assert answer.status_code == 200, (operation, answer.text)
        return answer.json()

    def rows(self, table: str) -> list[Row]:
        """Every row in the order of the primary key, so that no other index is trusted."""
        found: list[Row] = self.send(
            "search_by_value", table=table, attribute="id", value="*", get_attributes=["*"]
        )
        return found

    def rows_between(self, table: str, first: int | None, last: int | None) -> list[Row]:
        """Those with an id of this range, by the primary key too; None: however small or large."""
        bounds = {"greater_than_equal": first, "less_than_equal": last}
        found: list[Row] = self.send(
            "search_by_conditions",
            table=table,
            get_attributes=["*"],
            conditions=[
                {"attribute": "id", "comparator": comparator, "value": bound}
                for comparator, bound in bounds.items()
                if bound is not None
            ],
        )
        return found

    def upsert(self, table: str, rows: Sequence[Row]) -> None:
        """Merged into what is there."""
        told = self.send("upsert", table=table, records=list(rows))
        assert len(told["upserted_hashes"]) == len(rows), told

    def delete(self, table: str, ids: Sequence[Any]) -> None:
        """By id."""
        self.send("delete", table=table, ids=list(ids))


def differences(source: Sequence[Row], stored: Sequence[Row], key: str | None) -> list[str]:
    """In words, few at most; equal rows of a table without a key are counted."""
    found = [*_by_key(source, stored, key)] if key else [*_by_count(source, stored)]
    return [*found[:10], *([f"... and {len(found) - 10} more"] if len(found) > 10 else [])]


def _by_key(source: Sequence[Row], stored: Sequence[Row], key: str) -> Iterator[str]:
    wanted = {row[key]: row for row in source}
    held: dict[Any, Row] = {}
    for row in stored:
        if row.get(key) in held:
            yield f"Harper holds {key} {row[key]} twice"
        held[row.get(key)] = row
        if row["id"] != row.get(key):
            yield f"Harper's row {row['id']!r} has {key} {row.get(key)!r}"
    for number in sorted(wanted.keys() | held.keys(), key=str):
        if number not in held:
            yield f"{key} {number} is missing in Harper"
        elif number not in wanted:
            yield f"{key} {number} is not in BigQuery"
        elif _plain(wanted[number]) != _plain(held[number]):
            yield f"{key} {number}: {_plain(wanted[number])} became {_plain(held[number])}"


def _by_count(source: Sequence[Row], stored: Sequence[Row]) -> Iterator[str]:
    wanted, held = (
        Counter(json.dumps(_plain(row), sort_keys=True) for row in rows)
        for rows in (source, stored)
    )
    for text in sorted(wanted.keys() | held.keys()):
        if wanted[text] != held[text]:
            yield f"{wanted[text]} in BigQuery and {held[text]} in Harper: {text}"
    for each, count in Counter(row["id"] for row in stored).items():
        if count > 1:
            yield f"Harper holds the id {each} {count} times"


def _plain(row: Row) -> Row:
    """Without what the product adds, and without NULLs, which may be absent."""
    return {name: value for name, value in row.items() if name not in OURS and value is not None}


def _record(fields: Sequence[Any], row: Any) -> Row:
    return {
        each["name"]: _value(each, cell["v"]) for each, cell in zip(fields, row["f"], strict=True)
    }


def _value(described: Any, value: Any) -> Any:
    if described.get("mode") == "REPEATED":
        single = {**described, "mode": "NULLABLE"}
        return [_value(single, each["v"]) for each in value or ()]
    if value is None:
        return None
    match described["type"]:
        case "INTEGER" | "INT64":
            return int(value)
        case "FLOAT" | "FLOAT64" | "NUMERIC":
            number = float(value)
            return int(number) if number.is_integer() else number
        case "BOOLEAN" | "BOOL":
            return value in (True, "true")
        case "TIMESTAMP":
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(value))
            return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06}Z"
        case "JSON":
            return json.loads(value) if isinstance(value, str) else value
        case "RECORD" | "STRUCT":
            return _record(described["fields"], value)
        case _:  # text as it is: STRING, DATE, and BYTES in base64
            return value

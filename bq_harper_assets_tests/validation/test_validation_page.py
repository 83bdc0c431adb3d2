"""The queries of docs/validation.md, as they stand there, on a real Harper."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.mirror.checkpoints import mirror_checkpoints
from bq_harper_assets.stores.harper.mirror.tables import AUDITS, CHECKPOINTS
from bq_harper_assets.validation import verdict
from bq_harper_assets.validation.audit import record_validation
from bq_harper_assets.validation.verdict import ProgressStatus, Severity, Verdict
from bq_harper_assets_tests.stores.harper_clients import selected
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.conftest import MINUTE, Bench

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
PAGE = (Path(__file__).parents[2] / "docs" / "validation.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
NOON = utc(2026, 1, 5, 12)
STALLED = Verdict(
    check="progress",
    status=ProgressStatus.STALLED,
    passed=False,
    severity=Severity.ERROR,
    message="nothing is committed",
)


@dataclass(frozen=True)
class Planted:
    """A table with rows of its own in both stores, in whose name the page's queries are asked."""

    bench: Bench
    contract: TableContract
    source: TableRef
    harper: HarperConnection

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The page's sample names become ours; nothing else of the query changes."""
        text = query.replace("data.VesselPositions", f"data.{self.contract.target.table}")
        return selected(self.harper, text.replace("vessel_positions", self.contract.id))


@pytest.fixture
def planted(bench: Bench, harper_connection: HarperConnection) -> Planted:
    """Rows at 11:59, 12:00, 12:30 and 13:00, each a minute older than its record in Harper."""
    moments = [NOON - MINUTE, NOON, NOON + 30 * MINUTE, NOON + 60 * MINUTE]
    source = bench.source(*moments)
    contract = bench.contract(source, NOON)
    types = {"id": "String", "timestamp": "String", "number": "Long", "_syncedAt": "String"}
    bench.harper.create_table(
        contract.target.table,
        "id",
        [
            Attribute(name=name, type=type_, indexed=name == "timestamp")
            for name, type_ in types.items()
        ],
    )
    rows = [
        {
            "id": f"row {n}",
            "timestamp": stored_text(moment),
            "number": n,
            "_syncedAt": stored_text(moment + MINUTE),
        }
        for n, moment in enumerate(moments)
    ]
    bench.harper.upsert(contract.target.table, rows)
    table = bench.commit(contract, NOON, NOON + 10 * MINUTE, rows=3)
    assert mirror_checkpoints(bench.ledger, bench.harper, contract) is None
    assert record_validation(bench.ledger, bench.harper, table, [STALLED]) is None
    return Planted(bench, contract, source, harper_connection)


def _progress_per_node(planted: Planted, rows: list[dict[str, Any]]) -> None:
    nodes = [row["nodeId"] for row in rows]
    assert nodes == sorted(nodes)
    ours = [row for row in rows if row["tableId"] == planted.contract.id]
    assert [row["nodeId"][-4:] for row in ours] == ["-s00", "-s01"]
    for row in ours:
        assert set(row) == set(CHECKPOINTS.types)
        assert row["lastTimestamp"] == "2026-01-05T12:10:00.000000Z"
        assert (row["phase"], row["recordsIngested"]) == ("initial", 6)


def _current_lag(planted: Planted, rows: list[dict[str, Any]]) -> None:
    ours = [row for row in rows if row["nodeId"].startswith(planted.contract.id)]
    lag = (datetime.now(UTC) - (NOON + 10 * MINUTE)).total_seconds()
    assert len(ours) == 2
    for row in ours:
        assert set(row) == {"nodeId", "lastTimestamp", "lag_seconds", "phase"}
        assert row["lag_seconds"] == pytest.approx(lag, abs=60)


def _nodes(planted: Planted, rows: list[dict[str, Any]]) -> None:
    nodes = [row["nodeId"] for row in rows]
    assert len(nodes) == len(set(nodes))
    assert {f"{planted.contract.id}-s00", f"{planted.contract.id}-s01"} <= set(nodes)


def _one_node(planted: Planted, rows: list[dict[str, Any]]) -> None:
    assert [row["id"] for row in rows] == [f"{planted.contract.id}|s00"]


def _latency(planted: Planted, rows: list[dict[str, Any]]) -> None:
    assert [row["id"] for row in rows] == ["row 3", "row 2", "row 1", "row 0"]
    for row in rows:
        assert set(row) == {"id", "source_time", "synced_time", "latency_seconds"}
        assert row["latency_seconds"] == 60
    assert rows[0]["source_time"] == "2026-01-05T13:00:00.000000Z"
    assert rows[0]["synced_time"] == "2026-01-05T13:01:00.000000Z"


def _range_of_time(planted: Planted, rows: list[dict[str, Any]]) -> None:
    told = planted.bench.tables.queries.run(
        f"SELECT number FROM {planted.source.sql} WHERE ts >= TIMESTAMP '2026-01-05 12:00:00+00'"
        " AND ts < TIMESTAMP '2026-01-05 13:00:00+00' ORDER BY ts DESC LIMIT 100",
        doing="asking the same",
    )
    assert [row["number"] for row in rows] == [row["number"] for row in told.rows] == [2, 1]


def _failed(planted: Planted, rows: list[dict[str, Any]]) -> None:
    (ours,) = [row for row in rows if row["tableId"] == planted.contract.id]
    assert set(ours) == set(AUDITS.types)
    assert (ours["check"], ours["status"]) == ("progress", "failed")
    assert ours["message"] == STALLED.message


@pytest.mark.promise("M6")
@pytest.mark.promise("M7")
@pytest.mark.promise("M8")
@pytest.mark.promise("M9")
@pytest.mark.promise("M10")
def test_every_query_of_the_page_answers_with_its_columns_and_values(planted: Planted) -> None:
    expected: list[Callable[[Planted, list[dict[str, Any]]], None]] = [
        _progress_per_node,
        _current_lag,
        _nodes,
        _one_node,
        _latency,
        _range_of_time,
        _failed,
    ]
    assert len(QUERIES) == len(expected)
    for query, holds in zip(QUERIES, expected, strict=True):
        holds(planted, planted.ask(query))


@pytest.mark.parametrize("enum", ["progress", "smoke", "spot"])
def test_every_word_has_its_line(enum: str) -> None:
    words = getattr(verdict, f"{enum.capitalize()}Status")
    section = PAGE.partition(f"\n## {enum.capitalize()}\n")[2].partition("\n## ")[0]
    for word in words:
        assert f"| `{word}` |" in section

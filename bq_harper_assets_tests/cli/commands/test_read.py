"""`bqh read`: the rows of a range of time, page by page, each from the version that wrote it."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.cli.commands.read import json_value
from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.project import Project
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.text_forms import Range, stored_text
from bq_harper_assets.stores.harper.reading import rows_as_version
from bq_harper_assets.stores.harper.reading.rows_as_version import read_rows_as
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.table.ensure_table import ensure_table
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.typed import told, typed
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, table

pytestmark = [pytest.mark.harper, pytest.mark.promise("F3")]
START = datetime(2026, 11, 16, tzinfo=UTC)
SPEED = Column(name="speed", kind=Kind.STRING)
# Three at one instant, and a whole hour without any.
MINUTES = (0, 1, 2, 2, 2, 3, 64, 65)


@pytest.fixture
def declared(project: TemporaryProject) -> Project:
    source = TableRef("p", "d", "t")
    return project.declare(table(source, START, key=["number"], deletes="flag"))


@pytest.fixture
def ledger(declared: Project) -> Iterator[Ledger]:
    with open_ledger(declared.ledger.url) as opened:
        yield opened


@pytest.fixture
def harper(harper_connection: HarperConnection) -> Iterator[HarperClient]:
    with HarperClient(harper_connection) as client:
        yield client


def planned(project: Project, ledger: Ledger, speed: Column) -> tuple[TablePlan, int]:
    """The next version, and the sequence number of a batch that writes under it."""
    [contract] = project.tables
    known = ledger.register_route(table_facts(contract, project.bigquery.project))
    columns = (
        Column(name="number", kind=Kind.INT64),
        Column(name="ts", kind=Kind.TIMESTAMP),
        speed,
    )
    newest = ledger.newest_schema(known)
    before = TableVersion.parse(newest.body) if newest else None
    plan = harper_plan(contract, TableSchema(columns=columns), before)
    recorded = ledger.record_schema(known, plan.version.body(), newest.version if newest else 0)
    leases = ledger.acquire(known, [0], "a test", HOUR)
    cell = Wanted(
        cell=CellKey.of_window(START, START + HOUR, 0),
        mode=Mode.RECONCILE,
        fingerprint="fingerprint",
    )
    [batch] = ledger.plan(leases, ledger.now(), recorded.version, [cell], "a test")
    ledger.fail_batch(batch, "it never ended")  # and its rows are there all the same
    ledger.release(leases)
    return plan, batch.seq


def row(number: int, batch: int | None, **values: Any) -> dict[str, Any]:
    at = stored_text(START + timedelta(minutes=MINUTES[number]))
    return {"id": number, "number": number, "ts": at, "_batch": batch, **values}


def test_rows_come_in_the_order_of_time_each_from_the_version_that_wrote_it(
    declared: Project, ledger: Ledger, harper: HarperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    [contract] = declared.tables
    plan, first = planned(declared, ledger, SPEED)
    ensure_table(harper, plan)
    _, second = planned(declared, ledger, Column(name="speed", kind=Kind.INT64))
    rows = [
        row(7, second, speed="old", speed_v2=7),
        row(0, None, speed="0"),  # there before any batch
        row(1, first, speed="fast"),
        *(row(n, first, speed=str(n)) for n in (2, 3, 4)),
        row(5, second, speed_v2=5, _deletedAt=stored_text(START)),
        row(6, second, speed_v2=6),
    ]
    harper.upsert(contract.target.table, rows)

    def read(version: int | None = None, *span: int, limit: int | None = None) -> list[Any]:
        start, end = (START + timedelta(minutes=m) for m in span) if span else (None, None)
        found = read_rows_as(harper, ledger, contract, version, start, end, limit)
        return [(row["number"], row["speed"]) for row in found]

    as_first = [(0, "0"), (1, "fast"), (2, "2"), (3, "3"), (4, "4"), (6, "6"), (7, "7")]
    as_second = [(0, 0), (1, None), (2, 2), (3, 3), (4, 4), (6, 6), (7, 7)]
    for rows_per_request in (1_000, 4, 3, 2, 1):  # the last cannot hold what one instant has
        monkeypatch.setattr(rows_as_version, "_ROWS_PER_REQUEST", rows_per_request)
        assert sorted(read(1)) == as_first
        assert [number for number, _ in read(1)][:2] == [0, 1]
        assert sorted(read()) == as_second
        assert sorted(read(2, 1, 64)) == as_second[1:5]  # from an instant up to another
        assert [len(read(limit=n)) for n in (1, 3, 6, 7, 9)] == [1, 3, 6, 7, 7]
        assert read(limit=2) == as_second[:2]

    shown = told("read", contract.id, "--limit", "2")
    assert (shown["schema_version"], len(shown["rows"])) == (2, 2)
    assert shown["rows"][0] == {"number": 0, "ts": stored_text(START), "speed": 0}
    unknown = typed("read", contract.id, "--schema-version", "3").exception
    assert str(unknown) == (
        f"table {contract.id} has no schema version 3; the newest is 2. Nothing was changed. See"
        f" all of them with: bqh schema history {contract.id}"
    )


def test_a_table_that_was_never_synced_says_what_to_do(declared: Project) -> None:
    [contract] = declared.tables
    error = typed("read", contract.id).exception
    assert str(error) == (
        f"table {contract.id} has no schema version yet: its first sync records one. Nothing was"
        f" changed; type: bqh sync {contract.id}"
    )
    assert getattr(error, "exit_code", None) == 2


def test_values_are_shown_as_harper_has_them() -> None:
    value = {
        "at": START,
        "day": date(2026, 11, 16),
        "price": Decimal("1.50"),
        "raw": b"\xff",
        "many": [pa.MonthDayNano((14, 3, 0)), Range(None, date(2026, 11, 16))],
        "local": START.replace(tzinfo=None),
        "clock": START.time(),
        "none": None,
    }
    assert json_value(value) == {
        "at": "2026-11-16T00:00:00.000000Z",
        "day": "2026-11-16",
        "price": "1.5",
        "raw": "/w==",
        "many": ["1-2 3 0:0:0", "[UNBOUNDED, 2026-11-16)"],
        "local": "2026-11-16T00:00:00.000000",
        "clock": "00:00:00.000000",
        "none": None,
    }

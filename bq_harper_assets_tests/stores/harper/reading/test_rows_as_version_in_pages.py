"""Rows are read in the order of time, page by page, and none is missed or given twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.reading.rows_as_version import read_rows_as
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.errors import NoSuchVersion
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper

DAY = datetime(2026, 1, 5, tzinfo=UTC)
NUMBER = Column(name="n", kind=Kind.INT64)
SPEED = Column(name="speed", kind=Kind.STRING)
ORDERS = contract(key=["n"])
PAGE = 1_000


def synced(ledger: Ledger, contract: TableContract = ORDERS) -> None:
    """Two versions; batch 1 wrote under the first, and batch 2 under the second."""
    table = ledger.register_route(table_facts(contract, "p"))
    first = harper_plan(contract, schema(NUMBER)).version
    second = harper_plan(contract, schema(NUMBER, SPEED), first).version
    leases = ledger.acquire(table, [0], "me", timedelta(minutes=1))
    for version, body in enumerate((first.body(), second.body())):
        ledger.record_schema(table, body, version)
        cell = CellKey.of_window(DAY, DAY + contract.window, 0)
        wanted = Wanted(cell=cell, mode=Mode.COPY, fingerprint="f")
        ledger.plan(leases, DAY + timedelta(days=2), version + 1, [wanted], "run")


def row(number: int, second: int, **more: Any) -> dict[str, Any]:
    at = DAY + timedelta(seconds=second)
    text = at.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    return {"id": number, "n": number, "event_time": text, "_batch": 1, **more}


def numbers(memory: MemoryHarper, ledger: Ledger, **asked: Any) -> list[int]:
    with memory.client() as client:
        return [each["n"] for each in read_rows_as(client, ledger, ORDERS, **asked)]


def test_more_rows_than_a_page_has_are_read_each_once(memory: MemoryHarper, ledger: Ledger) -> None:
    synced(ledger)
    memory.make("Orders", *(row(n, n // 3) for n in range(2 * PAGE + 7)))
    assert numbers(memory, ledger) == list(range(2 * PAGE + 7))
    sizes = [asked["limit"] for asked in memory.of("search_by_conditions")]
    assert sizes == [PAGE, PAGE, PAGE]


@pytest.mark.parametrize("rows", [PAGE, PAGE + 1, 2 * PAGE])
def test_an_instant_with_more_rows_than_a_page_is_read_whole(
    memory: MemoryHarper, ledger: Ledger, rows: int
) -> None:
    synced(ledger)
    memory.make("Orders", *(row(n, 5) for n in range(rows)), row(rows, 6))
    assert numbers(memory, ledger) == list(range(rows + 1))
    assert memory.asked[1]["limit"] == 2 * PAGE


def test_the_first_rows_by_time_are_read_with_one_more_than_is_wanted(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    synced(ledger)
    memory.make("Orders", *(row(9 - n, n) for n in range(10)))
    assert numbers(memory, ledger, limit=3) == [9, 8, 7]
    assert [asked["limit"] for asked in memory.asked] == [4]
    assert numbers(memory, ledger, limit=PAGE) == list(reversed(range(10)))
    assert memory.asked[-1]["limit"] == PAGE


def test_rows_of_a_time_begin_with_its_start_and_end_before_its_end(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    synced(ledger)
    memory.make("Orders", *(row(n, n) for n in range(5)))
    start, end = DAY + timedelta(seconds=1), DAY + timedelta(seconds=3)
    assert numbers(memory, ledger, start=start, end=end) == [1, 2]
    assert numbers(memory, ledger, start=end) == [3, 4]
    assert numbers(memory, ledger, end=start) == [0]


def test_rows_that_are_marked_as_deleted_are_left_out(memory: MemoryHarper, ledger: Ledger) -> None:
    synced(ledger)
    memory.make("Orders", row(1, 1, _deletedAt="2026"), row(2, 2, _deletedAt=None), row(3, 3))
    assert numbers(memory, ledger) == [2, 3]


def test_each_row_is_read_as_of_the_version_that_its_batch_wrote(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    synced(ledger)
    left = {"speed": "left by somebody"}
    memory.make(
        "Orders",
        row(1, 1, **left),
        row(2, 2, _batch=2, speed="9"),
        row(3, 3, _batch=None, **left),
        row(4, 4, _batch=77, **left),
    )
    with memory.client() as client:
        speeds = [each["speed"] for each in read_rows_as(client, ledger, ORDERS)]
        assert speeds == [None, "9", None, None]
        assert all("speed" not in each for each in read_rows_as(client, ledger, ORDERS, 1))
        with pytest.raises(NoSuchVersion):
            read_rows_as(client, ledger, ORDERS, 3)

"""What the ledger records of contracts, schemas and cells, and what it gives back."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.ledger.records import Batch, CellKey, LedgerRoute, Mode, RouteFacts
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder
from bq_harper_assets.sync.ledger_facts import (
    cell_key,
    changes_of,
    committed_part,
    part_of,
    record_version,
    recorded_cells,
    recorded_cut,
    refused_declaration,
    refused_declarations,
    registered,
    table_facts,
    version_of,
)
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.small_tables import utc

ORDERS = contract()
DAY, HOUR = utc(2026, 1, 5), timedelta(hours=1)
SPEED = Column(name="speed", kind=Kind.STRING)


def cell(hour: int, slice_: int = 0) -> Cell:
    window = TimeCut(HOUR).range_at(cell_micros(hour))
    return Cell(window, slice_)


def cell_micros(hour: int) -> int:
    return int((DAY + hour * HOUR).timestamp()) * 1_000_000


def test_the_facts_of_a_contract_name_its_source_within_the_project() -> None:
    facts = table_facts(contract(key=["event_time"], slices=3, window="30m"), "p")
    assert facts == RouteFacts(
        name="orders",
        table="orders",
        source=ORDERS.source.name_in("p"),
        target="Orders",
        timestamp_column="event_time",
        key=("event_time",),
        window=HOUR / 2,
        slices=3,
    )
    assert table_facts(ORDERS, "p").key == ()


def test_a_version_is_recorded_once_with_its_changes_cause_and_author(ledger: Ledger) -> None:
    table = ledger.register_route(table_facts(ORDERS, "p"))
    first = harper_plan(ORDERS, schema())
    one = record_version(ledger, table, ORDERS, None, first, "somebody", "a sync")
    assert (one.version, one.by, one.cause) == (1, "somebody", "a sync")
    assert version_of(one) == first.version
    assert version_of(None) is None
    again = harper_plan(ORDERS, schema(), first.version)
    assert record_version(ledger, table, ORDERS, one, again, "me", "x").version == 1
    second = harper_plan(ORDERS, schema(SPEED), first.version)
    two = record_version(ledger, table, ORDERS, one, second, "me", "drift")
    assert (two.version, two.source_fingerprint) == (2, second.source_fingerprint)
    [change] = changes_of(two, one, ORDERS)
    assert "speed" in str(change)
    [computed] = changes_of(replace(two, changes=None), one, ORDERS)
    assert computed == change


def test_a_declaration_that_changed_is_refused_and_any_other_is_not(ledger: Ledger) -> None:
    assert refused_declaration(ledger, ORDERS) is None
    assert refused_declarations(ledger, [ORDERS]) == {}
    table = ledger.register_route(table_facts(ORDERS, "p"))
    ledger.distrust(table, [DAY], epoch=1, batch=1)  # it has cells from now on
    other = contract(slices=7)
    assert refused_declaration(ledger, ORDERS) is None
    assert refused_declaration(ledger, ORDERS, "p") is None
    assert isinstance(refused_declaration(ledger, ORDERS, "another project"), TableChanged)
    assert isinstance(refused_declaration(ledger, other), TableChanged)
    second = contract(id="others", target_table="Others")
    found = refused_declarations(ledger, [second, other])
    assert set(found) == {"orders"}
    assert isinstance(found["orders"], TableChanged)
    assert refused_declarations(ledger, [second, ORDERS]) == {}


class KeyRoute:
    """A route that is cut by key, as far as it is registered by."""

    contract: TableContract = ORDERS
    source: Any = None
    target: Any = None

    def __init__(self, ledger: Ledger, *bounds: str) -> None:
        self.ledger = ledger
        self.cut = KeyCut(bounds, KeyOrder.BYTES)

    @property
    def facts(self) -> RouteFacts:
        return replace(table_facts(ORDERS, "p"), window=None, key=("id",))


def test_key_ranges_are_recorded_once_and_read_back(ledger: Ledger) -> None:
    route = registered(KeyRoute(ledger, "g", "p"))
    assert recorded_cut(ledger, route, KeyOrder.BYTES) == KeyCut(("g", "p"), KeyOrder.BYTES)
    assert registered(KeyRoute(ledger, "g", "p")) == route
    with pytest.raises(TableChanged):
        registered(KeyRoute(ledger, "g", "q"))


def test_a_route_without_recorded_ranges_has_no_cut(ledger: Ledger) -> None:
    route = ledger.register_route(table_facts(ORDERS, "p"))
    assert recorded_cut(ledger, route, KeyOrder.BYTES) is None


def test_only_the_asked_cells_that_the_ledger_knows_are_read(ledger: Ledger) -> None:
    table = ledger.register_route(table_facts(contract(window="1h", slices=2), "p"))
    ledger.distrust(table, [DAY, DAY + HOUR, DAY + 2 * HOUR], epoch=1, batch=1)
    asked = [cell(2, 1), cell(0), cell(5)]
    found = recorded_cells(ledger, table, asked)
    assert set(found) == {cell(0), cell(2, 1)}
    assert all(cell_key(each) == record.cell for each, record in found.items())


def test_parts_are_what_a_batch_covers_and_what_is_committed() -> None:
    one = cell(3)
    half = DAY + 3.5 * HOUR
    batch = Batch(
        route=LedgerRoute(1, 1, table_facts(ORDERS, "p")),
        seq=9,
        cell=CellKey(one.range.axis_start, one.range.axis_end, 0),
        mode=Mode.COPY,
        t=DAY,
        rank=1,
        schema_version=1,
        epoch=1,
        upto=half,
    )
    assert part_of(batch, one) == Part(9, cell_micros(3), cell_micros(3) + 1_800_000_000)
    since = replace(batch, since=half, upto=DAY + 4 * HOUR)
    assert part_of(since, one) == Part(9, cell_micros(3) + 1_800_000_000, cell_micros(4))
    commit = CellCommit(
        batch=8, t=DAY, schema_version=1, rows=1, digest="d", fingerprint="f",
        committed_at=DAY, upto=half, is_closed=False,
    )  # fmt: skip
    assert committed_part(commit, one) == Part(8, cell_micros(3), cell_micros(3) + 1_800_000_000)
    assert committed_part(replace(commit, is_closed=True), one) == Part(
        8, cell_micros(3), cell_micros(4)
    )

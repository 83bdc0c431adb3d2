"""A logical table with two routes: each has what is its own, and they share its schema versions."""

from dataclasses import replace

import pytest

from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute, Rejection
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    START,
    TTL,
    T,
    cell,
    commit_cell,
    copy,
    result,
)

SECOND = replace(FACTS, name="positions_archive", source="store.positions", target="Archive")


@pytest.fixture
def second(ledger: Ledger, table: LedgerRoute) -> LedgerRoute:
    """Another route of the table."""
    return ledger.register_route(SECOND)


def test_two_routes_of_a_table_have_cells_batches_leases_and_positions_of_their_own(
    ledger: Ledger, table: LedgerRoute, second: LedgerRoute
) -> None:
    assert (second.table_id, second.id == table.id) == (table.table_id, False)
    mine = ledger.acquire(table, [0], "ann", TTL)
    other = ledger.acquire(second, [0], "bob", TTL)  # the slice of another route
    (batch,) = ledger.plan(mine, T, 1, [copy(cell())], "run")
    commit_cell(ledger, mine, batch, result(10, Rejection("7", "NaN", "{}")))
    assert ledger.cells(second, START, T) == ledger.history(second) == ()
    assert ledger.quarantined(second) == ()
    (earlier,) = ledger.plan(other, T - HOUR, 1, [copy(cell())], "run")  # before the other's
    assert (earlier.seq, earlier.rank < batch.rank) == (1, True)
    commit_cell(ledger, other, earlier, result())
    assert [len(ledger.quarantined(each)) for each in (table, second)] == [1, 0]
    assert [each.t for each in ledger.leases(second)] == [T - HOUR, None, None, None]
    changed = ledger.register_route(SECOND)
    ledger.release(other)
    assert ledger.change_slices(changed, 2).facts.slices == 2
    assert ledger.find_route(FACTS.name) == table
    assert [each.is_clean for each in ledger.cells(table, START, T)] == [True]


def test_two_routes_of_a_table_share_its_schema_versions(
    ledger: Ledger, table: LedgerRoute, second: LedgerRoute
) -> None:
    newest = ledger.newest_schema(second)
    assert newest is not None
    assert newest == ledger.newest_schema(table)
    made = ledger.record_schema(second, {"columns": ["ts", "speed"]}, 1)
    assert ledger.schema_version(table, 2) == made
    assert {name: each.version for name, each in ledger.newest_versions().items()} == {
        FACTS.table: 2
    }
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 2, [copy(cell())], "run")
    assert batch.schema_version == 2


def test_a_route_that_is_declared_anew_leaves_the_versions_and_the_start_of_its_table(
    ledger: Ledger, table: LedgerRoute, second: LedgerRoute
) -> None:
    ledger.record_start(FACTS.table, START)
    anew = ledger.register_route(replace(SECOND, timestamp_column="at"))
    assert anew.facts.timestamp_column == "at"
    assert ledger.newest_schema(table) is not None
    assert ledger.starts() == {FACTS.table: START}
    elsewhere = ledger.register_route(replace(SECOND, table="archive"))
    assert (elsewhere.id, elsewhere.table_id == table.table_id) == (second.id, False)
    assert ledger.newest_schema(elsewhere) is None


def test_a_route_keeps_its_table_once_it_has_cells(
    ledger: Ledger, table: LedgerRoute, second: LedgerRoute
) -> None:
    leases = ledger.acquire(second, [0], "ann", TTL)
    ledger.plan(leases, T, 1, [copy(cell())], "run")
    with pytest.raises(TableChanged, match="the logical table was positions and is archive"):
        ledger.register_route(replace(SECOND, table="archive"))
    with pytest.raises(TableChanged, match="Positions, which holds the rows of positions"):
        ledger.register_route(replace(SECOND, name="third", target=FACTS.target))
    assert [each.name for each in ledger.routes()] == [FACTS.name, SECOND.name]

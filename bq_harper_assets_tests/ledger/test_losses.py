"""What runs took out of the target lately, as the delete guard asks for it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.ledger.columns import microseconds
from bq_harper_assets.ledger.database import Database
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellResult, LogicalTable
from bq_harper_assets_tests.ledger.sample import HOUR, TTL, T, cell, copy, result

DAY = timedelta(days=1)


def _commit(
    ledger: Ledger, table: LogicalTable, hour: int, done: CellResult, *, allowed: bool = False
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(hour))], "run")
    ledger.commit_cells(leases, [(batch, done)], deletes_allowed=allowed)
    ledger.release(leases)


def _lost(ledger: Ledger, table: LogicalTable) -> dict[int, tuple[int, int]]:
    found = ledger.recent_losses(table, DAY)
    return {
        (each.cell.window_start - cell(0).window_start) // HOUR: (each.rows, each.held)
        for each in found
    }


EMPTIED = replace(result(0), deleted=9, held=9)


def test_rows_that_went_are_counted_by_cell_with_what_it_held(
    ledger: Ledger, table: LogicalTable
) -> None:
    before = ledger.now()
    for hour in range(4):
        _commit(ledger, table, hour, result(9))
    assert _lost(ledger, table) == {}
    _commit(ledger, table, 0, EMPTIED)
    _commit(ledger, table, 1, replace(result(5), flagged=4, held=9))
    _commit(ledger, table, 2, replace(result(9), held=9))
    assert _lost(ledger, table) == {0: (9, 9), 1: (4, 9)}
    _commit(ledger, table, 1, replace(result(2), deleted=3, held=5))
    assert _lost(ledger, table) == {0: (9, 9), 1: (7, 9)}
    first = ledger.recent_losses(table, DAY)[0]
    assert first.cell == cell(0)
    assert before <= first.since <= ledger.now()


@pytest.mark.parametrize("kept", [{"kept": 9}, {"moved": 9}])
def test_rows_that_are_kept_or_live_on_elsewhere_are_not_lost(
    ledger: Ledger, table: LogicalTable, kept: dict[str, int]
) -> None:
    _commit(ledger, table, 0, result(9))
    _commit(ledger, table, 0, replace(result(0), held=9, **kept))
    assert _lost(ledger, table) == {}


def test_rows_that_others_took_the_place_of_or_that_are_back_are_not_missed(
    ledger: Ledger, table: LogicalTable
) -> None:
    for _ in range(3):  # rows without a key that change go, and come under other ids
        _commit(ledger, table, 0, replace(result(9), deleted=9, held=9))
    _commit(ledger, table, 1, EMPTIED)
    assert _lost(ledger, table) == {1: (9, 9)}
    _commit(ledger, table, 1, result(7))
    assert _lost(ledger, table) == {1: (2, 9)}


def test_what_was_allowed_is_not_counted_nor_what_was_lost_before_it(
    ledger: Ledger, table: LogicalTable
) -> None:
    _commit(ledger, table, 0, EMPTIED)
    _commit(ledger, table, 1, EMPTIED, allowed=True)
    assert _lost(ledger, table) == {}
    _commit(ledger, table, 2, EMPTIED)
    assert _lost(ledger, table) == {2: (9, 9)}
    _commit(ledger, table, 3, result(9), allowed=True)  # it took nothing out
    assert _lost(ledger, table) == {2: (9, 9)}


def test_losses_are_forgotten_after_a_while_and_are_those_of_one_table(
    ledger: Ledger, ledger_url: str, table: LogicalTable
) -> None:
    other = ledger.register_table(replace(table.facts, name="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    _commit(ledger, table, 0, EMPTIED)
    _commit(ledger, other, 1, EMPTIED)
    assert (_lost(ledger, table), _lost(ledger, other)) == ({0: (9, 9)}, {1: (9, 9)})
    database = Database(SecretStr(ledger_url))
    with database.writing() as connection:
        earlier = text("UPDATE batches SET ended_at = ended_at - :us WHERE table_id = :table")
        connection.execute(earlier, {"us": microseconds(DAY), "table": table.id})
    database.close()
    assert (_lost(ledger, table), _lost(ledger, other)) == ({}, {1: (9, 9)})

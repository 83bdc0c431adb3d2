"""Nothing recorded of a table's cells is believed any more, and what its target's copies say."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import BatchState, CellState, LedgerRoute, Mark, Mode
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


def committed(ledger: Ledger, table: LedgerRoute, *hours: int) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    for batch in ledger.plan(leases, T, 1, [copy(cell(hour)) for hour in hours], "run"):
        commit_cell(ledger, leases, batch, result(9))
    ledger.release(leases)


def test_every_cell_known_or_named_is_reconciled_and_none_is_copied(
    ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table, 0, 5)
    leases = ledger.acquire(table, [0], "ann", TTL)
    ledger.plan(leases, T, 1, [copy(cell(1))], "killed")
    ledger.release(leases)
    ledger.distrust(table, [START, START + HOUR], epoch=40, batch=30)
    cells = ledger.cells(table, START, START + 9 * HOUR)
    assert {(each.state, each.commit) for each in cells} == {(CellState.TOUCHED, None)}
    assert len(cells) == 2 * 4 + 1  # the fifth hour of slice 0 was known, and stays
    assert {batch.state for batch in ledger.history(table)} == {
        BatchState.APPLIED,
        BatchState.FAILED,
    }
    assert {lease.epoch for lease in ledger.leases(table)} == {41}
    assert {lease.t for lease in ledger.leases(table)} == {T}  # no slice goes back
    leases = ledger.acquire(table, range(4), "bob", TTL)
    wanted = [copy(cell(hour, part)) for hour in (0, 1) for part in range(4)]
    batches = ledger.plan(leases, T, 1, [*wanted, copy(cell(5)), copy(cell(2))], "run")
    assert [batch.mode for batch in batches] == [Mode.RECONCILE] * 9 + [Mode.COPY]
    assert batches[0].seq == 31


def test_epochs_and_batches_do_not_go_back_to_those_of_an_older_copy(
    ledger: Ledger, table: LedgerRoute
) -> None:
    committed(ledger, table, 0, 1, 2)
    ledger.distrust(table, [], epoch=0, batch=1)
    newest = ledger.newest(table)
    assert (newest.batch, set(newest.epochs.values())) == (3, {2})
    assert (newest.has_cells, newest.has_commits) == (True, False)


def test_it_waits_for_whoever_holds_a_lease(ledger: Ledger, table: LedgerRoute) -> None:
    committed(ledger, table, 0)
    leases = ledger.acquire(table, [3], "ann", TTL)
    with pytest.raises(LeaseHeld, match="bqh reconcile positions"):
        ledger.distrust(table, [], epoch=0, batch=0)
    assert ledger.newest(table).has_commits
    ledger.release(leases)
    ledger.distrust(table, [], epoch=0, batch=0)


def test_the_start_can_only_go_back(ledger: Ledger) -> None:
    assert ledger.begin_earlier("positions", START) == START
    assert ledger.begin_earlier("positions", START + HOUR) == START
    assert ledger.begin_earlier("positions", START - timedelta(days=2)) == START - 48 * HOUR
    assert ledger.start_of("positions") == START - 48 * HOUR


def test_of_a_table_without_any_cell_each_named_window_is_known_afterwards(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.distrust(table, [START, START + 2 * HOUR], epoch=5, batch=7)
    cells = ledger.cells(table, START, START + 9 * HOUR)
    assert [each.cell for each in cells] == [
        cell(hour, part) for hour in (0, 2) for part in range(4)
    ]
    (entry,) = ledger.audit(table, 1)
    assert (entry.kind, entry.subject, entry.outcome) == ("reconcile", "positions", "asked for")
    assert entry.detail == {"epoch": 5, "batch": 7}


def test_marks_go_with_all_else_and_those_of_other_tables_stay(
    ledger: Ledger, table: LedgerRoute
) -> None:
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    for each in (table, other):
        leases = ledger.acquire(each, [0], "ann", TTL)
        ledger.mark(leases, InstantPosition(T), [Mark(cell(0), START, "a row moved")])
        ledger.release(leases)
    ledger.distrust(table, [], epoch=0, batch=0)
    marks = [
        [record.marks for record in ledger.cells(each, START, START + HOUR)]
        for each in (table, other)
    ]
    assert marks == [[0], [1]]

"""Which runs hold leases of a table, and how far each has come."""

from dataclasses import replace

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    TTL,
    LetTimePass,
    T,
    cell,
    commit_cell,
    copy,
    result,
)


def test_a_run_is_told_once_with_all_its_slices_and_what_it_has_left(
    ledger: Ledger, table: LedgerRoute
) -> None:
    began = ledger.now()
    leases = ledger.acquire(table, [2, 0], "ann", TTL)
    wanted = [copy(cell(hour, part)) for part, hour in ((0, 0), (0, 1), (2, 0), (2, 1))]
    done, failed, *_ = ledger.plan(leases, T, 1, wanted, "run")
    commit_cell(ledger, leases, done, result())
    ledger.fail_batch(failed, "Harper was away")
    other = ledger.acquire(table, [1], "bob", 2 * TTL)
    ann, bob = ledger.workers(table)
    assert (ann.owner, ann.slices, ann.cells, ann.left) == ("ann", (0, 2), 4, 2)
    assert (bob.owner, bob.slices, bob.cells, bob.left) == ("bob", (1,), 0, 0)
    assert ann.is_live
    assert began <= ann.since < bob.since <= ledger.now()
    assert (ann.until, bob.until) == (leases.held[0].expires_at, other.held[0].expires_at)
    later = ledger.acquire(table, [3], "ann", 2 * TTL)
    ann, _ = ledger.workers(table)
    assert (ann.slices, ann.since < bob.since) == ((0, 2, 3), True)
    assert ann.until == later.held[0].expires_at > leases.held[0].expires_at
    for each in (other, leases, later):
        ledger.release(each)
    assert ledger.workers(table) == ()


def test_leases_that_ran_out_are_those_of_a_run_that_does_not_live(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    ledger.acquire(table, [0, 3], "ann", TTL)
    later = ledger.acquire(table, [1], "ann", 2 * TTL)
    let_time_pass(TTL)
    dead, live = sorted(ledger.workers(table), key=lambda each: each.is_live)
    assert (dead.slices, dead.is_live) == ((0, 3), False)
    assert (live.slices, live.is_live) == ((1,), True)
    assert live.until == later.held[0].expires_at - TTL
    assert dead.until < ledger.now() < live.until


def test_cells_of_earlier_leases_and_of_other_tables_are_not_counted(
    ledger: Ledger, table: LedgerRoute
) -> None:
    other = ledger.register_route(replace(FACTS, name="ports", table="ports", target="Ports"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    for route, hours in ((table, 2), (other, 3)):
        leases = ledger.acquire(route, [0], "ann", TTL)
        ledger.plan(leases, T, 1, [copy(cell(hour)) for hour in range(hours)], "run")
        ledger.release(leases)
    again = ledger.acquire(table, [0], "ann", TTL)
    ledger.plan(again, T, 1, [copy(cell(9))], "run")
    [ann] = ledger.workers(table)
    assert (ann.cells, ann.left) == (1, 1)
    assert ledger.workers(other) == ()

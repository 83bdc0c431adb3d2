"""What runs have planned and not ended, or still hold."""

from dataclasses import replace
from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    LetTimePass,
    T,
    cell,
    commit_cell,
    copy,
    result,
)


def test_what_a_run_has_planned_and_not_ended_is_left_over(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    leases = ledger.acquire(table, [0], "run 1", HOUR)
    first = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run 1")
    commit_cell(ledger, leases, first[0], result())
    longer = ledger.acquire(table, [1], "run 1", 2 * HOUR)
    ledger.acquire(table, [2], "run 2", HOUR)
    own, idle = ledger.left_over(table)
    assert (own.run_id, own.cells) == ("run 1", (cell(1),))
    assert own.held_until == longer.held[0].expires_at
    assert own.planned_at
    assert abs(own.planned_at - ledger.now()) < timedelta(seconds=5)
    assert (idle.run_id, idle.cells, idle.planned_at) == ("run 2", (), None)
    let_time_pass(2 * HOUR)
    [dead] = ledger.left_over(table)
    assert (dead.run_id, dead.cells, dead.held_until) == ("run 1", (cell(1),), None)
    other = ledger.register_route(replace(FACTS, name="ports", table="ports", target="Ports"))
    assert ledger.left_over(other) == ()

"""What the ledger can compare with the copies in Harper."""

from dataclasses import replace

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.mirrored_facts import Mirrored, Newest
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    TTL,
    T,
    cell,
    copy,
)
from bq_harper_assets_tests.ledger.verbs.test_distrust import committed


def test_what_copies_were_seen_to_say_is_kept_with_the_lease(
    ledger: Ledger, table: LedgerRoute
) -> None:
    assert ledger.mirrored(table) == ()
    ledger.release(ledger.acquire(table, [0, 2], "ann", TTL), mirrored_batch=7)
    ledger.release(ledger.acquire(table, [0], "ann", TTL))  # of this one nothing was seen
    assert ledger.mirrored(table) == (Mirrored(0, 1, 7), Mirrored(2, 1, 7))
    ledger.distrust(table, [], epoch=0, batch=0)
    assert ledger.mirrored(table) == ()


def test_rows_are_surely_held_by_clean_cells_only(ledger: Ledger, table: LedgerRoute) -> None:
    assert not ledger.newest(table).has_cells
    committed(ledger, table, 0, 1)
    assert ledger.rows_surely_held(table) == 18
    leases = ledger.acquire(table, [0], "ann", TTL)
    ledger.plan(leases, T, 1, [copy(cell(1))], "run")
    assert ledger.rows_surely_held(table) == 9


def test_the_newest_epochs_and_batch_are_those_of_the_table(
    ledger: Ledger, table: LedgerRoute
) -> None:
    other = ledger.register_route(replace(FACTS, name="ports", table="ports", target="Ports"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    committed(ledger, other, 0, 1, 2)
    assert ledger.newest(table) == Newest(dict.fromkeys(range(4), 0), 0, False, False)
    leases = ledger.acquire(table, [1, 2], "ann", TTL)
    ledger.plan(leases, T, 1, [copy(cell(0, 1))], "run")
    assert ledger.newest(table) == Newest({0: 0, 1: 1, 2: 1, 3: 0}, 1, True, False)
    assert ledger.newest(other) == Newest({0: 1, 1: 0, 2: 0, 3: 0}, 3, True, True)
    assert (ledger.newest_commit(table), ledger.newest_commit(other)) == (0, 3)
    assert ledger.rows_surely_held(table) == 0

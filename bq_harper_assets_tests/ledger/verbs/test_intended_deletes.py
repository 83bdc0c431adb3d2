"""What a batch was about to delete counts from when it says so."""

from dataclasses import replace

import pytest

from bq_harper_assets.ledger.errors import LeaseLost, LedgerConflict
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import Intent, LedgerRoute
from bq_harper_assets_tests.ledger.questions.test_losses import (
    DAY,
    EMPTIED,
    commit,
    lost_rows,
    planned_batch,
)
from bq_harper_assets_tests.ledger.sample import (
    TTL,
    LetTimePass,
    T,
    cell,
    copy,
    result,
)


def test_what_a_batch_was_about_to_take_out_counts_until_its_cell_is_committed(
    ledger: Ledger, table: LedgerRoute
) -> None:
    commit(ledger, table, 0, result(9))
    before = ledger.now()
    batch = planned_batch(ledger, table, 0, 4, 9)
    assert lost_rows(ledger, table) == {0: (4, 9, 5, False)}
    assert before <= ledger.recent_losses(table, DAY)[0].since <= ledger.now()
    ledger.fail_batch(batch, "gone away")
    assert lost_rows(ledger, table) == {0: (4, 9, 5, False)}
    planned_batch(ledger, table, 0, 3, 8)  # the first had taken out one
    assert lost_rows(ledger, table) == {0: (7, 9, 5, False)}
    commit(ledger, table, 0, replace(result(5), deleted=2, held=7))
    assert lost_rows(ledger, table) == {0: (9, 9, 5, False)}  # what is missed is told by the rows


def test_a_refused_batch_took_nothing_out_and_knows_what_is_there(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.refuse_batch(planned_batch(ledger, table, 0, 4, 9), "too much")
    assert lost_rows(ledger, table) == {}
    planned_batch(ledger, table, 0, 4, 9)  # of a run that was killed before the guard was asked
    assert lost_rows(ledger, table) == {0: (4, 9, 5, False)}
    ledger.refuse_batch(planned_batch(ledger, table, 0, 4, 9), "too much")
    assert lost_rows(ledger, table) == {0: (4, 9, 9, False)}


def test_deletes_that_were_allowed_are_not_counted_even_if_their_run_failed(
    ledger: Ledger, table: LedgerRoute
) -> None:
    commit(ledger, table, 0, EMPTIED)
    planned_batch(ledger, table, 1, 4, 9)
    allowed = planned_batch(ledger, table, 2, 9, 9, allowed=True)
    assert lost_rows(ledger, table) == {}
    ledger.fail_batch(allowed, "gone away")
    assert lost_rows(ledger, table) == {}
    planned_batch(ledger, table, 3, 1, 9)
    assert lost_rows(ledger, table) == {3: (1, 9, 8, False)}


def test_nothing_is_recorded_without_a_live_lease_or_after_the_batch_has_ended(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    first, second = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run")
    ledger.fail_batch(second, "gone away")
    with pytest.raises(LedgerConflict, match="is failed already"):
        ledger.intend_deletes(leases, [Intent(b, 4, 9) for b in (first, second)], allowed=False)
    assert lost_rows(ledger, table) == {}
    let_time_pass(TTL)
    with pytest.raises(LeaseLost, match="cannot record what is to be deleted for positions"):
        ledger.intend_deletes(leases, [Intent(first, 4, 9)], allowed=False)
    assert lost_rows(ledger, table) == {}
    assert ledger.audit(table, kind="delete") == ()


def test_a_lease_that_was_given_back_does_not_stop_the_deletes_of_another_slice(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0, 1], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(0))], "run")
    ledger.release(replace(leases, held=leases.held[1:]))
    ledger.intend_deletes(leases, [Intent(batch, 4, 9)], allowed=False)
    assert lost_rows(ledger, table) == {0: (4, 9, 5, False)}

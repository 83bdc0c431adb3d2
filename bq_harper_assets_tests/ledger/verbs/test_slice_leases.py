"""A slice has one owner at a time, by the database's clock."""

import time
from datetime import timedelta

import pytest

from bq_harper_assets.ledger.errors import LeaseHeld, LeaseLost, LedgerConflict
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LogicalTable
from bq_harper_assets_tests.ledger.sample import TTL, LetTimePass


def test_a_held_slice_is_refused_with_who_holds_it_and_until_when(
    ledger: Ledger, table: LogicalTable
) -> None:
    first = ledger.acquire(table, [1, 2], "ann", TTL)
    with pytest.raises(LeaseHeld) as refusal:
        ledger.acquire(table, [0, 1, 2, 3], "bob", TTL)
    assert [(held.slice, held.owner, held.epoch) for held in refusal.value.holders] == [
        (1, "ann", 1),
        (2, "ann", 1),
    ]
    assert refusal.value.holders[0].until == first.held[0].expires_at
    assert "slice 1: ann until 20" in str(refusal.value)
    assert "bqh sync positions" in str(refusal.value)


def test_slices_are_taken_all_or_none(ledger: Ledger, table: LogicalTable) -> None:
    ledger.acquire(table, [3], "ann", TTL)
    with pytest.raises(LeaseHeld):
        ledger.acquire(table, [0, 3], "bob", TTL)
    assert [lease.owner for lease in ledger.leases(table)] == [None, None, None, "ann"]
    assert ledger.acquire(table, [0], "bob", TTL).epochs == {0: 1}


def test_even_its_owner_cannot_take_a_slice_twice(ledger: Ledger, table: LogicalTable) -> None:
    ledger.acquire(table, [0], "ann", TTL)
    with pytest.raises(LeaseHeld):
        ledger.acquire(table, [0], "ann", TTL)


def test_a_released_slice_is_free_at_once_and_its_next_epoch_is_higher(
    ledger: Ledger, table: LogicalTable
) -> None:
    ledger.release(ledger.acquire(table, [0, 1], "ann", TTL))
    assert ledger.acquire(table, [0], "bob", TTL).epochs == {0: 2}


def test_an_expired_lease_is_taken_over_and_not_a_moment_before(
    ledger: Ledger, table: LogicalTable
) -> None:
    expires_at = ledger.acquire(table, [0], "ann", timedelta(seconds=1)).held[0].expires_at
    while True:
        sent = ledger.now()
        try:
            taken = ledger.acquire(table, [0], "bob", TTL)
            break
        except LeaseHeld:
            assert sent <= expires_at
            time.sleep(0.005)
    assert taken.epochs == {0: 2}
    assert taken.held[0].expires_at - TTL > expires_at
    assert ledger.audit(table)[0].outcome == "taken over"


def test_a_late_release_by_the_old_owner_does_not_free_the_new_ones(
    ledger: Ledger, table: LogicalTable, let_time_pass: LetTimePass
) -> None:
    old = ledger.acquire(table, [0, 1], "ann", TTL)
    let_time_pass(TTL)
    ledger.acquire(table, [0], "bob", TTL)
    with pytest.raises(LeaseLost, match="slice 0: bob until") as lost:
        ledger.release(old)
    assert [holder.slice for holder in lost.value.holders] == [0]
    assert [lease.owner for lease in ledger.leases(table)] == ["bob", None, None, None]


def test_an_owner_of_the_same_name_in_a_later_epoch_is_another_owner(
    ledger: Ledger, table: LogicalTable, let_time_pass: LetTimePass
) -> None:
    old = ledger.acquire(table, [0], "ann", TTL)
    let_time_pass(TTL)
    ledger.acquire(table, [0], "ann", TTL)
    for step in (lambda: ledger.release(old), lambda: ledger.renew(old, TTL)):
        with pytest.raises(LeaseLost):
            step()
    assert ledger.leases(table)[0].is_live


def test_renewing_keeps_the_epoch_and_moves_the_expiry(ledger: Ledger, table: LogicalTable) -> None:
    first = ledger.acquire(table, [0, 1], "ann", timedelta(minutes=1))
    renewed = ledger.renew(first, TTL)
    assert renewed.epochs == first.epochs
    assert all(lease.expires_at > ledger.now() + TTL / 2 for lease in renewed.held)
    assert [lease.expires_at for lease in ledger.leases(table)[:2]] == [
        lease.expires_at for lease in renewed.held
    ]
    assert renewed.deadline > first.deadline + 500


def test_renewing_for_less_takes_no_promised_time_away(ledger: Ledger, table: LogicalTable) -> None:
    first = ledger.acquire(table, [0], "ann", TTL)
    renewed = ledger.renew(first, TTL / 2)
    assert renewed == first
    assert ledger.leases(table)[0].expires_at == first.held[0].expires_at


def test_an_expired_lease_cannot_be_renewed_though_nobody_took_it(
    ledger: Ledger, table: LogicalTable, let_time_pass: LetTimePass
) -> None:
    lease = ledger.acquire(table, [0], "ann", TTL)
    let_time_pass(TTL)
    with pytest.raises(LeaseLost):
        ledger.renew(lease, TTL)


def test_a_slice_the_table_does_not_have_is_refused(ledger: Ledger, table: LogicalTable) -> None:
    for slices in ([4], [-1], []):
        with pytest.raises(LedgerConflict, match="slices 0 to 3"):
            ledger.acquire(table, slices, "ann", TTL)

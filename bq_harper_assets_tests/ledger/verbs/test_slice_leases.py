"""A slice has one owner at a time, by the database's clock."""

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.ledger.errors import LeaseHeld, LeaseLost, LedgerConflict
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions import status
from bq_harper_assets.ledger.questions.mirrored_facts import Mirrored
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.verbs import slice_leases
from bq_harper_assets_tests.ledger.sample import FACTS, TTL, LetTimePass, T, cell, copy


def test_a_held_slice_is_refused_with_who_holds_it_and_until_when(
    ledger: Ledger, table: LedgerRoute
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


def test_slices_are_taken_all_or_none(ledger: Ledger, table: LedgerRoute) -> None:
    ledger.acquire(table, [3], "ann", TTL)
    with pytest.raises(LeaseHeld):
        ledger.acquire(table, [0, 3], "bob", TTL)
    assert [lease.owner for lease in ledger.leases(table)] == [None, None, None, "ann"]
    assert ledger.acquire(table, [0], "bob", TTL).epochs == {0: 1}


def test_even_its_owner_cannot_take_a_slice_twice(ledger: Ledger, table: LedgerRoute) -> None:
    ledger.acquire(table, [0], "ann", TTL)
    with pytest.raises(LeaseHeld):
        ledger.acquire(table, [0], "ann", TTL)


def test_a_released_slice_is_free_at_once_and_its_next_epoch_is_higher(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.release(ledger.acquire(table, [0, 1], "ann", TTL))
    assert ledger.acquire(table, [0], "bob", TTL).epochs == {0: 2}


def test_an_expired_lease_is_taken_over_and_not_a_moment_before(
    ledger: Ledger, table: LedgerRoute
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
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    old = ledger.acquire(table, [0, 1], "ann", TTL)
    let_time_pass(TTL)
    ledger.acquire(table, [0], "bob", TTL)
    with pytest.raises(LeaseLost, match="slice 0: bob until") as lost:
        ledger.release(old)
    assert [holder.slice for holder in lost.value.holders] == [0]
    assert [lease.owner for lease in ledger.leases(table)] == ["bob", None, None, None]


def test_an_owner_of_the_same_name_in_a_later_epoch_is_another_owner(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    old = ledger.acquire(table, [0], "ann", TTL)
    let_time_pass(TTL)
    ledger.acquire(table, [0], "ann", TTL)
    for step in (lambda: ledger.release(old), lambda: ledger.renew(old, TTL)):
        with pytest.raises(LeaseLost):
            step()
    assert ledger.leases(table)[0].is_live


def test_renewing_keeps_the_epoch_and_moves_the_expiry(ledger: Ledger, table: LedgerRoute) -> None:
    first = ledger.acquire(table, [0, 1], "ann", timedelta(minutes=1))
    renewed = ledger.renew(first, TTL)
    assert renewed.epochs == first.epochs
    assert all(lease.expires_at > ledger.now() + TTL / 2 for lease in renewed.held)
    assert [lease.expires_at for lease in ledger.leases(table)[:2]] == [
        lease.expires_at for lease in renewed.held
    ]
    assert renewed.deadline > first.deadline + 500


def test_renewing_for_less_takes_no_promised_time_away(ledger: Ledger, table: LedgerRoute) -> None:
    first = ledger.acquire(table, [0], "ann", TTL)
    renewed = ledger.renew(first, TTL / 2)
    assert renewed == first
    assert ledger.leases(table)[0].expires_at == first.held[0].expires_at


def test_an_expired_lease_cannot_be_renewed_though_nobody_took_it(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    lease = ledger.acquire(table, [0], "ann", TTL)
    let_time_pass(TTL)
    with pytest.raises(LeaseLost):
        ledger.renew(lease, TTL)


def test_a_slice_the_table_does_not_have_is_refused(ledger: Ledger, table: LedgerRoute) -> None:
    for slices in ([4], [-1], []):
        with pytest.raises(LedgerConflict, match="slices 0 to 3"):
            ledger.acquire(table, slices, "ann", TTL)


def test_slices_that_a_table_does_not_have_are_told_in_order(
    ledger: Ledger, table: LedgerRoute
) -> None:
    with pytest.raises(LedgerConflict, match=r"and \[0, 8, 16\] were asked for"):
        ledger.acquire(table, [16, 8, 0, 8], "ann", TTL)
    assert ledger.acquire(table, [2, 0, 2], "ann", TTL).slices == (0, 2)


def test_at_the_very_end_of_a_lease_neither_its_owner_nor_another_may_write(
    ledger: Ledger, table: LedgerRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = ledger.acquire(table, [0], "ann", TTL)
    for module in (slice_leases, status):
        monkeypatch.setattr(module, "database_now", lambda _: ann.held[0].expires_at)
    with pytest.raises(LeaseLost):
        ledger.plan(ann, T, 1, [copy(cell(0))], "run")
    with pytest.raises(LeaseHeld):
        ledger.acquire(table, [0], "bob", TTL)
    with pytest.raises(LeaseHeld):
        ledger.distrust(table, [], epoch=0, batch=0)
    assert [lease.is_live for lease in ledger.leases(table)] == [False] * 4


def test_taking_and_giving_back_are_in_the_audit(ledger: Ledger, table: LedgerRoute) -> None:
    ledger.release(ledger.acquire(table, [1], "ann", TTL))
    released, taken = ledger.audit(table, kind="lease")
    for entry, outcome in ((taken, "taken"), (released, "released")):
        assert (entry.subject, entry.outcome) == ("slice 1", outcome)
        assert (entry.detail["owner"], entry.detail["epoch"]) == ("ann", 1)
    assert "host" in taken.detail


def test_a_table_made_anew_begins_where_its_furthest_slice_is(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.distrust(table, [], epoch=0, batch=0)
    assert {(each.epoch, each.t, each.schema_version) for each in ledger.leases(table)} == {
        (1, None, None)
    }
    leases = ledger.acquire(table, [0, 1], "ann", TTL)
    for number, t in enumerate((T + TTL, T)):
        ledger.plan(leases, t, 1, [copy(cell(0, slice=number))], "run")
    ledger.release(leases)
    ledger.distrust(table, [], epoch=0, batch=0)
    assert {(each.epoch, each.t, each.schema_version) for each in ledger.leases(table)} == {
        (3, T + TTL, 1)
    }


def test_a_table_whose_slices_somebody_changes_meanwhile_is_left_alone(
    ledger: Ledger, ledger_url: str, table: LedgerRoute
) -> None:
    database = Database(SecretStr(ledger_url))
    with database.writing() as connection:
        connection.execute(text("DELETE FROM leases WHERE slice = 3"))
    database.close()
    with pytest.raises(LedgerConflict, match="someone else has just changed the slices"):
        ledger.distrust(table, [], epoch=0, batch=0)


def test_leases_are_those_of_one_table(ledger: Ledger, table: LedgerRoute) -> None:
    other = ledger.register_route(
        replace(FACTS, name="calls", table="calls", target="Calls", slices=2)
    )
    ledger.acquire(table, [0], "ann", TTL)
    assert [lease.owner for lease in ledger.leases(other)] == [None, None]
    assert [lease.is_live for lease in ledger.leases(table)] == [True, False, False, False]


def test_what_harper_was_told_is_noted_with_the_epoch_only_under_a_live_lease(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    leases = ledger.acquire(table, [1, 3], "ann", TTL)
    ledger.note_mirrored(leases, 7)
    assert ledger.mirrored(table) == (Mirrored(1, 1, 7), Mirrored(3, 1, 7))
    let_time_pass(TTL)
    with pytest.raises(LeaseLost):
        ledger.note_mirrored(leases, 8)
    assert ledger.mirrored(table) == (Mirrored(1, 1, 7), Mirrored(3, 1, 7))

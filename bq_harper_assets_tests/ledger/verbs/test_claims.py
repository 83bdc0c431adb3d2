"""What concerns no single table is done by one owner at a time, by the database's clock."""

from datetime import timedelta

import pytest

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.verbs import claims
from bq_harper_assets.ledger.verbs.claims import Claim, ClaimRecord
from bq_harper_assets_tests.ledger.sample import TTL, LetTimePass

NAME = "schema_check"


def _taken(ledger: Ledger, owner: str) -> Claim:
    claim = ledger.claim(NAME, owner, TTL)
    assert isinstance(claim, Claim)
    return claim


@pytest.mark.promise("D6")
def test_a_claim_is_refused_at_nine_minutes_and_taken_over_at_ten(
    ledger: Ledger, let_time_pass: LetTimePass
) -> None:
    dead = _taken(ledger, "ann")
    assert dead.expires_at - dead.acquired_at == timedelta(minutes=10)
    let_time_pass(timedelta(minutes=9, seconds=59))
    refused = ledger.claim(NAME, "bob", TTL)
    assert isinstance(refused, ClaimRecord)
    assert (refused.owner, refused.epoch, refused.is_live) == ("ann", 1, True)
    assert refused.expires_at == dead.expires_at - timedelta(minutes=9, seconds=59)
    let_time_pass(timedelta(seconds=2))
    assert not ledger.claims()[0].is_live
    assert _taken(ledger, "bob").epoch == 2
    newest, first = ledger.audit(kind="claim")
    assert (first.outcome, newest.outcome) == ("taken", "taken over")
    assert newest.detail == {"owner": "bob", "epoch": 2, "taken_from": "ann"}


@pytest.mark.promise("D6")
def test_a_late_release_by_the_old_owner_frees_nothing_even_under_the_same_name(
    ledger: Ledger, let_time_pass: LetTimePass
) -> None:
    old = _taken(ledger, "ann")
    let_time_pass(TTL + timedelta(seconds=1))
    new = _taken(ledger, "ann")
    assert not ledger.release_claim(old, "from the dead")
    assert isinstance(ledger.claim(NAME, "bob", TTL), ClaimRecord)
    assert ledger.release_claim(new)
    assert not ledger.release_claim(new)
    assert ledger.claims() == (
        ClaimRecord(
            name=NAME, owner=None, epoch=2, acquired_at=None, expires_at=None, is_live=False
        ),
    )
    assert ledger.audit(kind="claim")[0].outcome == "released"


def test_a_released_claim_is_free_at_once_and_others_are_no_hindrance(ledger: Ledger) -> None:
    ledger.release_claim(_taken(ledger, "ann"), "seen all")
    assert isinstance(ledger.claim("something_else", "ann", TTL), Claim)
    bob = _taken(ledger, "bob")
    assert (bob.epoch, bob.note) == (2, "seen all")
    assert [(one.name, one.owner) for one in ledger.claims()] == [
        (NAME, "bob"),
        ("something_else", "ann"),
    ]
    ledger.release_claim(bob)
    assert _taken(ledger, "cyd").note == "seen all"


def test_a_claim_is_held_until_its_very_end(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = _taken(ledger, "ann")
    monkeypatch.setattr(claims, "database_now", lambda _: claim.expires_at)
    assert not isinstance(ledger.claim(NAME, "bob", TTL), Claim)
    assert [each.is_live for each in ledger.claims()] == [True]

"""The record of what happened, also elsewhere."""

from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets_tests.ledger.questions.test_status import sync
from bq_harper_assets_tests.ledger.sample import (
    cell,
)


def test_history_is_newest_first_by_table_or_by_cell(ledger: Ledger, table: LedgerRoute) -> None:
    for _ in range(2):
        sync(ledger, table, [0, 1], [0])
    assert [batch.seq for batch in ledger.history(table)] == [4, 3, 2, 1]
    assert [batch.seq for batch in ledger.history(table, limit=1)] == [4]
    assert [batch.seq for batch in ledger.history(table, cell(0))] == [3, 1]
    assert ledger.history(table, cell(5)) == ()


def test_what_happens_elsewhere_can_be_put_on_record(ledger: Ledger, table: LedgerRoute) -> None:
    ledger.record_audit(table, Note("check", "smoke", "passed", {"rows": 5}))
    ledger.record_audit(None, Note("command", "stop", "ok", {}))
    assert [entry.kind for entry in ledger.audit(limit=2)] == ["command", "check"]
    newest = ledger.audit(table, limit=1)[0]
    assert (newest.subject, newest.outcome, newest.detail) == ("smoke", "passed", {"rows": 5})
    (check,) = ledger.audit(kind="check")
    assert check == newest
    assert ledger.audit(table, kind="command") == ()
    assert abs(newest.at - ledger.now()) < timedelta(seconds=5)


def test_no_more_than_a_hundred_entries_are_listed_unless_more_are_asked_for(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.record_audit(table, *(Note("check", str(n), "passed", {}) for n in range(102)))
    assert [entry.subject for entry in ledger.audit(kind="check")][:2] == ["101", "100"]
    assert len(ledger.audit(kind="check")) == len(ledger.audit(table, kind="check")) == 100
    assert len(ledger.audit(limit=101, kind="check")) == 101


def test_a_step_without_a_note_leaves_no_entry(ledger: Ledger, table: LedgerRoute) -> None:
    before = ledger.audit()
    ledger.record_audit(table)
    assert ledger.audit() == before

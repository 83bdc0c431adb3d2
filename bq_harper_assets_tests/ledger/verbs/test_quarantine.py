"""Rows in quarantine come back as they were, and go when a commit or a person says so."""

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute, Rejection
from bq_harper_assets_tests.ledger.sample import (
    TTL,
    T,
    cell,
    commit_cell,
    copy,
    result,
)
from bq_harper_assets_tests.ledger.verbs.test_cell_commits import BAD, WORSE


def test_a_commit_replaces_the_quarantine_of_its_cell_only(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    for rejections in [(BAD, BAD), (WORSE,), ()]:
        first, second = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run-1")
        ledger.commit_cells(leases, [(first, result(5, *rejections)), (second, result(5, BAD))])
        assert [row.rejection for row in ledger.quarantined(table, cell(0))] == list(rejections)
        assert [row.rejection for row in ledger.quarantined(table, cell(1))] == [BAD]
    (first,) = ledger.plan(leases, T, 1, [copy(cell(0))], "run-1")
    commit_cell(ledger, leases, first, result(5))
    assert [row.rejection for row in ledger.quarantined(table)] == [BAD]


def test_any_row_comes_back_from_quarantine_as_it_was(ledger: Ledger, table: LedgerRoute) -> None:
    leases = ledger.acquire(table, [3], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(slice=3))], "run-1")
    hard = Rejection("\x00\\u0000\ud800", "\\", "\udfff\U0001f6a2" * 100_000)
    commit_cell(ledger, leases, batch, result(2, hard))
    assert [row.rejection for row in ledger.quarantined(table)] == [hard]


def test_rows_are_dropped_from_quarantine_by_number_or_all_and_the_audit_says_by_whom(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    batches = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run-1")
    ledger.commit_cells(leases, [(batch, result(5, BAD, WORSE, BAD)) for batch in batches])
    assert ledger.drop_quarantined(table, cell(0), [1, 7], "ann") == 1
    assert [row.number for row in ledger.quarantined(table, cell(0))] == [0, 2]
    (entry,) = ledger.audit(table, kind="quarantine")
    assert (entry.subject, entry.outcome) == (str(cell(0)), "dropped")
    assert entry.detail == {"who": "ann", "numbers": [1]}
    assert ledger.drop_quarantined(table, cell(0), None, "bob") == 2
    assert ledger.drop_quarantined(table, cell(0), None, "bob") == 0
    assert [row.cell for row in ledger.quarantined(table)] == [cell(1)] * 3
    assert len(ledger.audit(table, kind="quarantine")) == 2

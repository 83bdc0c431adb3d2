"""Fingerprints can be told under a later schema, and none of a newer commit is lost by it."""

import pytest

from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellKey, LedgerRoute
from bq_harper_assets_tests.ledger.sample import START, TTL, T, cell, copy, result


def _fingerprints(ledger: Ledger, table: LedgerRoute) -> dict[CellKey, tuple[str, int]]:
    found = ledger.cells(table, START, START + TTL * 100)
    return {
        one.cell: (one.commit.fingerprint, one.commit.fingerprint_version)
        for one in found
        if one.commit
    }


def _commit(ledger: Ledger, table: LedgerRoute, version: int, *cells: CellKey) -> list[int]:
    leases = ledger.acquire(table, range(table.facts.slices), "ann", TTL)
    batches = ledger.plan(leases, T, version, [copy(one, f"v{version}") for one in cells], "run")
    ledger.commit_cells(leases, [(batch, result()) for batch in batches])
    ledger.release(leases)
    return [batch.seq for batch in batches]


def test_a_rebased_fingerprint_stays_until_the_next_commit(
    ledger: Ledger, table: LedgerRoute
) -> None:
    cells = [cell(0), cell(1), cell(0, 3)]
    batches = _commit(ledger, table, 1, *cells)
    assert set(_fingerprints(ledger, table).values()) == {("v1", 1)}
    ledger.record_schema(table, {"columns": []}, 1)
    prints = [(one, seq, f"rebased {seq}") for one, seq in zip(cells, batches, strict=True)]
    assert ledger.rebase_fingerprints(table, 2, prints) == 3
    assert _fingerprints(ledger, table) == {one: (text, 2) for one, _, text in prints}
    assert all(one.is_clean for one in ledger.cells(table, START, START + TTL * 100))
    (entry,) = ledger.audit(table, 1)
    assert (entry.kind, entry.outcome, entry.detail) == ("schema", "rebased", {"cells": 3})
    _commit(ledger, table, 2, cell(1))
    assert _fingerprints(ledger, table)[cell(1)] == ("v2", 2)
    ledger.record_schema(table, {"columns": ["b"]}, 2)
    _commit(ledger, table, 3, cell(0))
    assert _fingerprints(ledger, table)[cell(0)] == ("v3", 3)


def test_a_cell_committed_since_keeps_its_fingerprint_and_no_rebase_goes_back(
    ledger: Ledger, table: LedgerRoute
) -> None:
    old, other = _commit(ledger, table, 1, cell(0), cell(1))
    for seen in (1, 2):
        ledger.record_schema(table, {"columns": [seen]}, seen)
    _commit(ledger, table, 1, cell(0))
    prints = [(cell(0), old, "stale"), (cell(1), other, "new"), (cell(7), old, "never named")]
    assert ledger.rebase_fingerprints(table, 3, prints) == 1
    assert _fingerprints(ledger, table) == {cell(0): ("v1", 1), cell(1): ("new", 3)}
    assert ledger.rebase_fingerprints(table, 2, [(cell(1), other, "late")]) == 0
    assert _fingerprints(ledger, table)[cell(1)] == ("new", 3)
    with pytest.raises(LedgerConflict, match="positions has no schema version 4"):
        ledger.rebase_fingerprints(table, 4, prints)
    assert ledger.rebase_fingerprints(table, 3, []) == 0


def test_a_fingerprint_can_be_told_again_under_the_same_version(
    ledger: Ledger, table: LedgerRoute
) -> None:
    [batch] = _commit(ledger, table, 1, cell(0))
    assert ledger.rebase_fingerprints(table, 1, [(cell(0), batch, "again")]) == 1
    assert _fingerprints(ledger, table)[cell(0)] == ("again", 1)

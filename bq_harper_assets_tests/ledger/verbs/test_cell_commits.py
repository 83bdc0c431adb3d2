"""A commit records a moved cell whole, or leaves everything as it was."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bq_harper_assets.ledger.errors import ConservationBroken, LeaseLost, LedgerConflict
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import BatchState, CellState, LedgerRoute, Rejection
from bq_harper_assets_tests.ledger.sample import (
    START,
    TTL,
    LetTimePass,
    T,
    cell,
    commit_cell,
    copy,
    result,
)

DAY = timedelta(days=1)
BAD = Rejection("7", "not a number", '{"speed": "NaN"}')
WORSE = Rejection(None, "the key is NULL", "{}")


def test_a_commit_records_cell_batch_and_quarantine(ledger: Ledger, table: LedgerRoute) -> None:
    leases = ledger.acquire(table, [2], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(slice=2), "fp-1")], "run-1")
    commit_cell(
        ledger, leases, batch, replace(result(10, BAD, WORSE), deleted=3, unchanged=1, written=7)
    )
    (record,) = ledger.cells(table, START, START + DAY)
    assert (record.cell, record.state) == (cell(slice=2), CellState.SYNCED)
    assert record.commit is not None
    assert (record.commit.t, record.commit.rows, record.commit.digest) == (T, 8, "digest")
    assert (record.commit.fingerprint, record.commit.schema_version) == ("fp-1", 1)
    (done,) = ledger.history(table)
    assert (done.state, done.owner, done.epoch, done.run_id) == (
        BatchState.APPLIED,
        "ann",
        1,
        "run-1",
    )
    assert (done.rows_read, done.rows_written, done.rows_unchanged) == (10, 7, 1)
    assert (done.rows_quarantined, done.rows_deleted, done.bytes) == (2, 3, 1000)
    assert done.ended_at == record.commit.committed_at >= done.planned_at
    assert [row.rejection for row in ledger.quarantined(table)] == [BAD, WORSE]
    entry = ledger.audit(table)[0]
    assert (entry.kind, entry.subject) == ("commit", "2026-11-16T00:00|s02")


WRONG = [
    replace(result(10), written=9),
    replace(result(10), written=11),
    replace(result(10), written=11, unchanged=-1),
    replace(result(10), written=9, quarantined=1),
    replace(result(10, BAD), rejections=()),
    replace(result(10), rejections=(BAD,)),
    replace(result(10), deleted=-1),
    replace(result(10), moved=-1),
    replace(result(10), flagged=-1),
    replace(result(10), kept=-1),
]


def test_rows_that_are_not_accounted_for_are_never_committed(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    good, bad = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run-1")
    for wrong in WRONG:
        with pytest.raises(ConservationBroken, match=r"2026-11-16T01:00\|s00 of positions"):
            ledger.commit_cells(leases, [(good, result()), (bad, wrong)])
    assert {batch.state for batch in ledger.history(table)} == {BatchState.PLANNED}
    assert all(record.commit is None for record in ledger.cells(table, START, START + DAY))


def test_a_commit_after_the_lease_was_lost_is_refused(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    let_time_pass(TTL)
    with pytest.raises(LeaseLost, match="cannot commit cells"):
        commit_cell(ledger, leases, batch, result())
    heir = ledger.acquire(table, [0], "bob", TTL)
    with pytest.raises(LeaseLost, match="slice 0: bob until"):
        commit_cell(ledger, leases, batch, result())
    with pytest.raises(LedgerConflict, match="not planned under the lease that bob holds"):
        commit_cell(ledger, heir, batch, result())
    assert ledger.history(table)[0].state is BatchState.PLANNED


def test_a_batch_commits_once(ledger: Ledger, table: LedgerRoute) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    commit_cell(ledger, leases, batch, result())
    with pytest.raises(LedgerConflict, match="is applied already"):
        commit_cell(ledger, leases, batch, result())
    with pytest.raises(LedgerConflict, match="is applied already"):
        ledger.fail_batch(batch, "late")
    assert ledger.cells(table, START, START + DAY)[0].state is CellState.SYNCED


def test_a_batch_cannot_commit_the_cell_of_another(ledger: Ledger, table: LedgerRoute) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    first, second = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run-1")
    with pytest.raises(LedgerConflict, match="was not planned"):
        commit_cell(ledger, leases, replace(first, seq=second.seq), result())
    with pytest.raises(LedgerConflict, match="was not planned"):
        commit_cell(ledger, leases, replace(first, seq=99), result())


def test_of_cells_committed_together_all_count_or_none(ledger: Ledger, table: LedgerRoute) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    first, second = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run-1")
    ledger.fail_batch(second, "Harper went away")
    with pytest.raises(LedgerConflict):
        ledger.commit_cells(leases, [(first, result(5, BAD)), (second, result())])
    assert [record.state for record in ledger.cells(table, START, START + DAY)] == [
        CellState.PLANNED,
        CellState.FAILED,
    ]
    assert ledger.quarantined(table) == ()
    ledger.commit_cells(leases, [])


def test_a_failure_is_recorded_without_a_lease_and_with_its_reason(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    ledger.release(leases)
    ledger.fail_batch(batch, "Harper said 503 for 10 minutes")
    (failed,) = ledger.history(table)
    assert (failed.state, failed.error) == (BatchState.FAILED, "Harper said 503 for 10 minutes")
    assert failed.ended_at is not None

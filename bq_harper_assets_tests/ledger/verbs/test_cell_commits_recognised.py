"""What a transactional target has taken, and its run did not record, is committed once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.ledger.errors import ConservationBroken, LeaseLost, UnknownBatches
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    AppliedBatch,
    Batch,
    BatchState,
    CellState,
    Intent,
    Leases,
    LedgerRoute,
)
from bq_harper_assets_tests.ledger.sample import START, TTL, LetTimePass, T, cell, copy, result

DAY = timedelta(days=1)
LATER = TTL + timedelta(seconds=1)
ALL = (0, 1, 2, 3)


def planned(ledger: Ledger, table: LedgerRoute, *slices: int) -> tuple[Batch, ...]:
    """A batch of the first hour in each slice, by a run that then dies."""
    leases = ledger.acquire(table, slices, "ann", TTL)
    return ledger.plan(leases, T, 1, [copy(cell(slice=each)) for each in slices], "run-1")


def heir(ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass) -> Leases:
    """All slices, for the next owner."""
    let_time_pass(LATER)
    return ledger.acquire(table, ALL, "bob", TTL)


def taken(batches: Sequence[Batch]) -> list[AppliedBatch]:
    """What the target says of them."""
    return [AppliedBatch.of(batch, "run-1", result(10)) for batch in batches]


def states(ledger: Ledger, table: LedgerRoute) -> list[BatchState]:
    """Of the batches, the oldest first."""
    return [batch.state for batch in sorted(ledger.history(table), key=lambda each: each.seq)]


def test_what_the_target_has_taken_is_committed_under_a_later_lease(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    batches = planned(ledger, table, 0, 2)
    leases = heir(ledger, table, let_time_pass)
    assert set(ledger.recognise(leases, taken(batches))) == {batch.seq for batch in batches}
    assert states(ledger, table) == [BatchState.APPLIED] * 2
    records = ledger.cells(table, START, START + DAY)
    assert [(each.cell, each.state) for each in records] == [
        (cell(slice=0), CellState.SYNCED),
        (cell(slice=2), CellState.SYNCED),
    ]
    commits = [each.commit for each in records if each.commit]
    assert {(each.t, each.rows, each.digest) for each in commits} == {(T, 10, "digest")}


def test_it_is_recognised_once(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    batches = planned(ledger, table, 0)
    leases = heir(ledger, table, let_time_pass)
    assert ledger.recognise(leases, taken(batches)) == (batches[0].seq,)
    records = ledger.cells(table, START, START + DAY)
    assert ledger.recognise(leases, taken(batches)) == ()
    assert ledger.cells(table, START, START + DAY) == records


def test_a_target_that_has_taken_nothing_commits_nothing(
    ledger: Ledger, table: LedgerRoute
) -> None:
    planned(ledger, table, 0)
    leases = ledger.acquire(table, [1], "bob", TTL)
    assert ledger.recognise(leases, []) == ()
    assert states(ledger, table) == [BatchState.PLANNED]


def test_a_batch_between_those_that_the_target_has_taken_stays_planned(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    first, between, last = planned(ledger, table, 0, 1, 2)
    leases = heir(ledger, table, let_time_pass)
    assert set(ledger.recognise(leases, taken([first, last]))) == {first.seq, last.seq}
    wanted = [BatchState.APPLIED, BatchState.PLANNED, BatchState.APPLIED]
    assert states(ledger, table) == wanted
    assert between.seq == first.seq + 1


def test_a_batch_of_a_slice_that_is_not_leased_is_left_alone(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    batches = planned(ledger, table, 0, 1)
    let_time_pass(LATER)
    leases = ledger.acquire(table, [1], "bob", TTL)
    assert ledger.recognise(leases, taken(batches)) == (batches[1].seq,)
    assert states(ledger, table) == [BatchState.PLANNED, BatchState.APPLIED]


def test_a_batch_that_another_has_superseded_stays_failed(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    batches = planned(ledger, table, 0)
    leases = heir(ledger, table, let_time_pass)
    ledger.plan(leases, T, 1, [copy(cell())], "run-2")
    assert ledger.recognise(leases, taken(batches)) == ()
    assert states(ledger, table) == [BatchState.FAILED, BatchState.PLANNED]


def test_nothing_is_recognised_under_a_lease_that_was_lost(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    batches = planned(ledger, table, 0)
    leases = heir(ledger, table, let_time_pass)
    let_time_pass(LATER)
    with pytest.raises(LeaseLost, match="cannot recognise batches"):
        ledger.recognise(leases, taken(batches))
    assert states(ledger, table) == [BatchState.PLANNED]


@pytest.mark.parametrize(
    "of_another",
    [
        {"cell": cell(hour=1)},
        {"cell": cell(slice=1)},
        {"t": T + timedelta(microseconds=1)},
        {"epoch": 2},
        {"run_id": "run-2"},
        {"seq": 2},
    ],
    ids=str,
)
def test_batches_that_another_ledger_has_planned_are_not_taken_for_ones_of_these_numbers(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass, of_another: dict[str, Any]
) -> None:
    batches = planned(ledger, table, 0)
    leases = heir(ledger, table, let_time_pass)
    [own] = taken(batches)
    other = replace(own, **of_another)
    with pytest.raises(UnknownBatches, match=rf"has taken batch {other.seq}, .*not planned it so"):
        ledger.recognise(leases, [other])
    with pytest.raises(UnknownBatches, match=r"has taken batches 7, 8, .*not planned them so"):
        ledger.recognise(leases, [own, replace(own, seq=7), replace(own, seq=8)])
    assert states(ledger, table) == [BatchState.PLANNED]


def test_a_batch_that_does_not_add_up_is_not_recognised(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    batches = planned(ledger, table, 0)
    leases = heir(ledger, table, let_time_pass)
    [own] = taken(batches)
    with pytest.raises(ConservationBroken):
        ledger.recognise(leases, [replace(own, result=replace(own.result, written=9))])
    assert states(ledger, table) == [BatchState.PLANNED]


@pytest.mark.parametrize("allowed", [True, False])
def test_deletes_that_someone_allowed_stay_allowed(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass, allowed: bool
) -> None:
    leases = ledger.acquire(table, [0, 1], "ann", TTL)
    wanted = [copy(cell(slice=each)) for each in (0, 1)]
    batches = ledger.plan(leases, T, 1, wanted, "run-1")
    ledger.intend_deletes(leases, [Intent(batches[0], 5, 10)], allowed=allowed)
    ledger.recognise(heir(ledger, table, let_time_pass), taken(batches))
    found = {batch.seq: batch.deletes_allowed for batch in ledger.history(table)}
    assert found == {batches[0].seq: allowed, batches[1].seq: False}

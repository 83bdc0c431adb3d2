"""The engine moves cells into a target of another kind: one that takes a turn at once.

Each test runs twice: with cells that are cut by time, and the same rows in cells cut by key.

Nothing of it ships. It shows that the engine leans on sync/protocols.py alone, and what it does
with a transactional target: no copies of leases, and a batch is taken whole or not at all.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.ledger.errors import TableChanged
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import BatchState, CellState
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder
from bq_harper_assets.sync.errors import TargetMoved, TurnFailed
from bq_harper_assets.sync.ledger_facts import recorded_cut
from bq_harper_assets.sync.turn.turn_transaction import TurnTransaction
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.sync.changing_table import ROWS
from bq_harper_assets_tests.sync.second_route import SecondRoute
from bq_harper_assets_tests.sync.sql_target import (
    UNWANTED,
    connected,
)

pytestmark = [pytest.mark.bigquery, pytest.mark.spark]


def test_cells_arrive_at_once_with_receipts_quarantine_digests_and_a_proof(
    second: SecondRoute,
) -> None:
    second.change(f"UPDATE T SET name = '{UNWANTED}' WHERE number = 60")
    report = second.run()
    assert sum(cell.result.written for cell in report.cells) == 179
    [refused] = [each for cell in report.cells for each in cell.result.rejections]
    assert (refused.row_id, refused.reason) == ("60", "not wanted here")
    assert second.held == {n: name for n, name in second.wanted.items() if n != 60}
    assert [record.state for record in second.records()] == [CellState.SYNCED] * 6
    assert second.turns == 1
    assert second.proofs() == {ProofStatus.PROVED}
    again = second.run()
    assert sum(cell.result.unchanged for cell in again.cells) == 179
    assert [a.result.digest for a in again.cells] == [b.result.digest for b in report.cells]


def test_a_change_of_three_cells_is_one_transaction(second: SecondRoute) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.change("DELETE FROM T WHERE number = 3660")
    second.change(
        "INSERT INTO T (number, ts, name) VALUES (9, TIMESTAMP '2026-01-05 02:30:09', 'new')"
    )
    second.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 01:00:01' WHERE number = 180")
    report = second.run()
    assert sum(cell.result.written for cell in report.cells) == 3
    assert sum(cell.result.deleted for cell in report.cells) == 1
    assert second.held == second.wanted
    assert second.turns == 2
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_row_whose_time_changes_moves_in_a_time_cut_and_stays_in_its_key_range(
    second: SecondRoute,
) -> None:
    second.run()
    second.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 01:00:01' WHERE number = 180")
    second.change(
        "INSERT INTO T (number, ts, name) VALUES (9, TIMESTAMP '2026-01-05 00:30:09', 'new')"
    )
    by_key = isinstance(second.route.cut, KeyCut)
    some = [
        cell for cell in second.cells if cell.range.axis_start == second.cells[0].range.axis_start
    ]
    report = second.run(some)
    assert sum(cell.result.moved for cell in report.cells) == (0 if by_key else 1)
    assert sum(cell.result.written for cell in report.cells) == (2 if by_key else 1)
    marked = {record.cell for record in second.records() if record.marks}
    assert len(marked) == (0 if by_key else 1)
    assert second.held == second.wanted
    second.run()
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_change_and_a_delete_in_one_range_write_nothing_in_another(second: SecondRoute) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.change("DELETE FROM T WHERE number = 180")
    report = second.run()
    touched = [cell for cell in report.cells if cell.result.written or cell.result.deleted]
    assert {cell.cell.range for cell in touched} == {second.cells[0].range}
    assert [sum(c.result.written for c in touched), sum(c.result.deleted for c in touched)] == [
        1,
        1,
    ]
    assert second.held == second.wanted


def test_many_rows_may_go_only_if_they_are_past_their_retention(second: SecondRoute) -> None:
    second.change(
        f"INSERT INTO T (number, ts, name) {ROWS.format(last=10_799, step=5)} WHERE MOD(n, 60) > 0"
    )
    second.run()
    second.change("DELETE FROM T WHERE number >= 3600")
    with pytest.raises(TurnFailed, match="would lose"):
        second.run()
    kept = second.contract.model_copy(update={"deletes_older_than": timedelta(days=1)})
    second = replace(second, route=replace(second.route, contract=kept))
    assert sum(cell.result.deleted for cell in second.run().cells) == 1_440
    assert second.held == second.wanted


def test_a_proof_finds_the_range_whose_rows_are_others(second: SecondRoute) -> None:
    second.run()
    with connected(second.route.file) as sql:
        sql.execute("DELETE FROM held WHERE id = '3660'")
        sql.execute("UPDATE held SET id = '7201' WHERE id = '7260'")
    for deep in (False, True):
        found = [
            proof for proof in second.proved(deep=deep) if proof.status is not ProofStatus.PROVED
        ]
        assert {proof.status for proof in found} == {ProofStatus.DIFFERS}
        assert sum(proof.missing for proof in found) == 2
        assert sum(proof.phantom for proof in found) == 1
        assert {proof.cell.range for proof in found} == {c.range for c in second.cells[2:]}


def test_a_turn_killed_between_the_targets_commit_and_the_ledgers_is_recognised_and_recorded_once(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number IN (120, 3720, 7320)")
    with second.killed_in(monkeypatch, Ledger, "commit_cells"):
        second.run()
    assert second.held == second.wanted
    assert (second.turns, second.batches(BatchState.PLANNED)) == (2, 6)
    second.let_leases_expire()
    said: list[str] = []
    report = second.run(say=said.append)
    name = second.contract.id
    assert (
        f"{name}: 6 cells that an earlier run had written and not recorded are committed now"
        in said
    )
    assert sum(cell.result.written for cell in report.cells) == 0
    assert second.batches(BatchState.APPLIED) == 18  # three turns of six cells, each recorded once
    assert second.batches(BatchState.FAILED) == 0
    assert second.proofs() == {ProofStatus.PROVED}
    said.clear()
    second.run(say=said.append)
    assert not [line for line in said if "earlier run" in line]


@pytest.mark.parametrize("second", ["key"], indirect=True)
def test_a_route_keeps_the_key_ranges_that_it_was_first_cut_into(second: SecondRoute) -> None:
    second.run()
    ledger, told = second.route.ledger, second.held
    assert recorded_cut(ledger, second.table, KeyOrder.NUMBERS) == second.route.cut
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    cut = KeyCut(("60", "7200"), KeyOrder.NUMBERS)
    other = replace(second, route=replace(second.route, cut=cut))
    with pytest.raises(TableChanged, match="was cut into 3 key ranges"):
        other.run()
    assert second.held == told
    again = recorded_cut(ledger, second.table, KeyOrder.NUMBERS)
    replace(second, route=replace(second.route, cut=again)).run()
    assert second.held == second.wanted


def test_nothing_is_taken_if_somebody_else_wrote_meanwhile(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    before = second.held
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    take = TurnTransaction.take

    def after_another(self: TurnTransaction, *args: Any) -> None:
        assert self.before is not None
        self.transaction.apply(replace(self.before, batches=()), self.before, {})
        take(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(TurnTransaction, "take", after_another)
        with pytest.raises(TargetMoved, match="has taken another turn; nothing was written"):
            second.run()
    assert second.held == before
    second.run()
    assert second.held == second.wanted

"""What becomes of a turn into a transactional target that fails, dies or is not alone.

A cell gets all of its batch or nothing, a committed cell holds what the ledger says of it, and what
is staged belongs to one lease.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import BatchState, CellState, Mode, Wanted
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.errors import NotAllStaged, OutOfStep, TargetAhead, TurnFailed
from bq_harper_assets.sync.lease.keeper import LEASE_LASTS
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.sync.second_route import SecondRoute
from bq_harper_assets_tests.sync.sql_target import (
    UNWANTED,
    SqlRemoval,
    SqlTransaction,
    connected,
)

pytestmark = [pytest.mark.bigquery, pytest.mark.spark]


class AnswerLost(BqhError):
    """Nobody knows whether the store did it."""


def numbers_of(slice_: int, hour: int) -> list[int]:
    """The numbers of an hour's rows that are in this slice."""
    numbers = list(range(3_600 * hour, 3_600 * (hour + 1), 60))
    slices = slice_of(id_hashes(pa.array(map(str, numbers), pa.string()), keyless=False), 2)
    return [number for number, each in zip(numbers, slices, strict=True) if each == slice_]


def fails_of(number: int) -> Callable[..., None]:
    """A removal that takes this row out, and whose answer is lost."""
    remove = SqlRemoval.remove

    def of(self: SqlRemoval, *args: Any) -> None:
        remove(self, *args)
        if any(str(number) in ids for ids in args if isinstance(ids, list)):
            raise AnswerLost("the answer was lost")

    return of


def test_a_cell_that_fails_beside_a_good_one_loses_no_row(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    before = second.held
    second.change("DELETE FROM T WHERE number = 180")
    second.change("UPDATE T SET name = 'changed' WHERE number = 7320")
    with monkeypatch.context() as patch:
        patch.setattr(SqlRemoval, "remove", fails_of(180))
        with pytest.raises(TurnFailed, match="1 of 6 cells are not done"):
            second.run()
    assert second.held == before | {7320: "changed"}
    states = [record.state for record in second.records()]
    assert (states.count(CellState.SYNCED), states.count(CellState.FAILED)) == (5, 1)
    second.run()
    assert second.held == second.wanted
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_cell_whose_rows_are_refused_in_numbers_keeps_what_it_had(second: SecondRoute) -> None:
    second.run()
    before = second.held
    some = numbers_of(0, hour=0)[:2]
    second.change(f"UPDATE T SET name = '{UNWANTED}' WHERE number IN ({some[0]}, {some[1]})")
    second.change("UPDATE T SET name = 'changed' WHERE number = 7320")
    strict = second.contract.model_copy(
        update={"quarantine_limit": type(second.contract.quarantine_limit)(rows=1)}
    )
    with pytest.raises(TurnFailed, match="more than 1 rows of"):
        replace(second, route=replace(second.route, contract=strict)).run()
    assert second.held == before | {7320: "changed"}
    second.run()
    assert second.held == {n: name for n, name in second.wanted.items() if n not in some}
    assert second.proofs() == {ProofStatus.PROVED}


@pytest.mark.parametrize("second", ["time"], indirect=True)
def test_a_cell_is_not_committed_while_a_row_that_left_it_waits_for_another_cell(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    left, later, gone = numbers_of(0, hour=0)[1], *numbers_of(0, hour=2)[1:3]
    second.change(f"UPDATE T SET ts = TIMESTAMP '2026-01-05 01:00:01' WHERE number = {left}")
    second.change(f"UPDATE T SET ts = TIMESTAMP '2026-01-05 01:00:02' WHERE number = {later}")
    second.change(f"DELETE FROM T WHERE number = {gone}")
    origins = [*second.cells[:2], *second.cells[4:]]
    with monkeypatch.context() as patch:
        patch.setattr(SqlRemoval, "remove", fails_of(gone))
        with pytest.raises(TurnFailed, match="2 of 4 cells are not done"):
            second.run(origins)
    assert ProofStatus.DIFFERS not in second.proofs()
    second.run()
    assert second.held == second.wanted
    assert second.proofs() == {ProofStatus.PROVED}


def test_leases_are_kept_while_nobody_knows_whether_the_target_took_the_turn(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    apply = SqlTransaction.apply

    def unanswered(self: SqlTransaction, *args: Any) -> None:
        apply(self, *args)
        raise AnswerLost("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(SqlTransaction, "apply", unanswered)
        with pytest.raises(AnswerLost):
            second.run()
    with pytest.raises(LeaseHeld):
        second.run()
    second.let_leases_expire()
    report = second.run()
    assert sum(cell.result.written for cell in report.cells) == 0
    assert second.batches(BatchState.FAILED) == 0
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_proof_leaves_alone_what_a_turn_has_staged(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.change("DELETE FROM T WHERE number = 180")
    apply, said = SqlTransaction.apply, []

    def proved_first(self: SqlTransaction, *args: Any) -> None:
        said.append(second.proofs())
        apply(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(SqlTransaction, "apply", proved_first)
        second.run(second.cells[:2])
    assert said == [{ProofStatus.MOVING, ProofStatus.PROVED}]
    assert second.held == second.wanted
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_killed_turn_of_one_slice_is_recognised_by_a_turn_of_another(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    one, two = numbers_of(0, hour=1)[1], numbers_of(1, hour=1)[1]
    second.change(f"UPDATE T SET name = 'changed' WHERE number IN ({one}, {two})")
    of_slice: list[list[Cell]] = [[c for c in second.cells if c.slice == n] for n in (0, 1)]
    with second.killed_in(monkeypatch, Ledger, "commit_cells"):
        second.run(of_slice[0])
    second.let_leases_expire()
    said: list[str] = []
    second.run(of_slice[1], say=said.append)
    assert any(" 3 cells that an earlier run had written and not recorded" in line for line in said)
    assert [record.state for record in second.records()] == [CellState.SYNCED] * 6
    assert second.batches(BatchState.FAILED) == 0
    assert second.held == second.wanted
    assert second.proofs() == {ProofStatus.PROVED}


def test_turns_of_other_slices_wait_for_each_other(second: SecondRoute) -> None:
    second.run()
    leases = second.route.ledger.acquire(second.table, [1], "another", LEASE_LASTS)
    with pytest.raises(LeaseHeld, match="slice 1: another"):
        second.run([cell for cell in second.cells if cell.slice == 0])
    second.route.ledger.release(leases)
    second.run([cell for cell in second.cells if cell.slice == 0])


def test_a_target_that_another_ledger_fills_is_left_alone(
    second: SecondRoute, tmp_path: Path
) -> None:
    second.run()
    before, turns = second.held, second.turns
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    with open_ledger(f"sqlite:///{tmp_path / 'other.db'}") as ledger:
        other = replace(second, route=replace(second.route, ledger=ledger))
        with pytest.raises(OutOfStep, match="kept by the ledger"):
            other.run()
    assert (second.held, second.turns) == (before, turns)


def test_a_target_that_a_ledger_restored_from_a_backup_does_not_know_is_left_alone(
    second: SecondRoute,
) -> None:
    second.run()
    ledger = second.ledger_url.removeprefix("sqlite:///")
    second.route.ledger.close()
    kept = Path(ledger).read_bytes()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.run()
    before, turns = second.held, second.turns
    second.route.ledger.close()
    Path(ledger).write_bytes(kept)
    with pytest.raises(OutOfStep, match="as if it was restored from a backup"):
        second.run()
    assert (second.held, second.turns) == (before, turns)


@pytest.mark.parametrize("second", ["key"], indirect=True)
def test_a_target_whose_batches_the_ledger_has_planned_otherwise_is_left_alone(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    ledger = second.ledger_url.removeprefix("sqlite:///")
    second.route.ledger.close()
    kept = Path(ledger).read_bytes()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.run()
    second.route.ledger.close()
    Path(ledger).write_bytes(kept)
    # Batches of the same numbers, which the target does not have.
    leases = second.route.ledger.acquire(second.table, [0, 1], "second", LEASE_LASTS)
    t = max(each.commit.t for each in second.records() if each.commit) + timedelta(seconds=1)
    wanted = [
        Wanted(cell=cell_key(cell), mode=Mode.COPY, fingerprint="of other rows")
        for cell in second.cells
    ]
    second.route.ledger.plan(leases, t, 1, wanted, "second")
    second.let_leases_expire()
    with pytest.raises(OutOfStep, match="as if it was restored from a backup"):
        second.run()
    assert {record.state for record in second.records()} == {CellState.PLANNED}


@pytest.mark.parametrize(
    ("column", "bent", "why"),
    [
        ("position", "2999-01-01T00:00:00.000000Z", "and the source is only at 20"),
        ("position_kind", "gtid", "nobody can say which of the two is the newer"),
    ],
)
@pytest.mark.parametrize("second", ["key"], indirect=True)
def test_a_target_ahead_of_its_source_stops_the_turn(
    second: SecondRoute, column: str, bent: str, why: str
) -> None:
    second.run()
    with connected(second.route.file) as sql:
        sql.execute(f"UPDATE turns SET {column} = ?", (bent,))
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    batches = len(second.route.ledger.history(second.table))
    with pytest.raises(TargetAhead, match=why):
        second.run()
    assert second.turns == 1
    assert len(second.route.ledger.history(second.table)) == batches


@pytest.mark.parametrize("lost", ["DELETE FROM staged", "UPDATE staged SET epoch = epoch - 1"])
@pytest.mark.parametrize("second", ["key"], indirect=True)
def test_a_turn_whose_staging_is_not_whole_is_not_taken(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    second.run()
    before = second.held
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    apply = SqlTransaction.apply

    def after_a_loss(self: SqlTransaction, *args: Any) -> None:
        with connected(self.file) as sql:
            sql.execute(lost)
        apply(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(SqlTransaction, "apply", after_a_loss)
        with pytest.raises(NotAllStaged, match=r"0 rows of batch .* 1 were sent"):
            second.run()
    assert (second.held, second.turns) == (before, 1)
    second.let_leases_expire()
    second.run()
    assert second.held == second.wanted


@pytest.mark.parametrize("second", ["key"], indirect=True)
def test_what_a_dead_turn_has_staged_is_cleared_by_the_next(
    second: SecondRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.run()
    second.change("UPDATE T SET name = 'changed' WHERE number = 120")
    second.change("DELETE FROM T WHERE number = 180")
    with second.killed_in(monkeypatch, SqlTransaction, "apply"):
        second.run()
    assert (second.staged, second.batches(BatchState.APPLIED)) == (2, 6)
    second.let_leases_expire()
    second.run([cell for cell in second.cells if cell.range != second.cells[0].range])
    assert second.staged == 0
    second.run()
    assert second.held == second.wanted


@pytest.mark.parametrize("policy", ["keep", "flag"])
@pytest.mark.parametrize("second", ["time"], indirect=True)
def test_rows_that_are_gone_stay_where_that_is_asked_for(second: SecondRoute, policy: str) -> None:
    kept = second.contract.model_copy(update={"deletes": policy})
    second = replace(second, route=replace(second.route, contract=kept))
    second.run()
    second.change("DELETE FROM T WHERE number = 180")
    report = second.run()
    results = [cell.result for cell in report.cells]
    assert sum(result.flagged for result in results) == (policy == "flag")
    assert sum(result.kept for result in results) == (policy == "keep")
    assert second.held.keys() - second.wanted.keys() == {180}
    with connected(second.route.file) as sql:
        flagged = sql.execute("SELECT id FROM held WHERE flagged").fetchall()
    assert flagged == ([("180",)] if policy == "flag" else [])
    assert second.proofs() == {ProofStatus.PROVED}


def test_a_proof_names_the_row_and_the_column_that_differ(second: SecondRoute) -> None:
    second.run()
    with connected(second.route.file) as sql:
        bent = "UPDATE held SET hash = '00', body = json_set(body, '$.name', 'bent')"
        sql.execute(f"{bent} WHERE id = '3660'")
    for deep in (False, True):
        [found] = [p for p in second.proved(deep=deep) if p.status is not ProofStatus.PROVED]
        assert (found.status, found.changed) == (ProofStatus.DIFFERS, 1)
        [row] = found.differences
        assert (row.id, row.columns) == ("3660", {"name": ("name 3660", "bent")})

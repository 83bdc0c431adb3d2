"""A plan decides before any write, in one transaction, what each cell's batch may do."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.ledger.errors import LeaseLost, LedgerConflict, PlanRefused
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    BatchState,
    CellState,
    Leases,
    LedgerRoute,
    Mode,
    Wanted,
)
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    TTL,
    LetTimePass,
    T,
    cell,
    commit_cell,
    copy,
    result,
)

SECOND = timedelta(seconds=1)


@pytest.fixture
def leases(ledger: Ledger, table: LedgerRoute) -> Leases:
    return ledger.acquire(table, [0, 1], "ann", TTL)


def test_a_cell_that_no_batch_ever_named_may_be_copied(ledger: Ledger, leases: Leases) -> None:
    wanted = [copy(cell(hour, slice)) for hour in (0, 1) for slice in (0, 1)]
    batches = ledger.plan(leases, T, 1, wanted, "run-1")
    assert [batch.cell for batch in batches] == [want.cell for want in wanted]
    assert {batch.mode for batch in batches} == {Mode.COPY}
    assert [batch.seq for batch in batches] == [1, 2, 3, 4]
    assert {batch.epoch for batch in batches} == {1}


@pytest.mark.parametrize("ending", ["planned", "failed", "applied"])
def test_a_batch_in_any_state_rules_copy_out(ledger: Ledger, leases: Leases, ending: str) -> None:
    (first,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    if ending == "failed":
        ledger.fail_batch(first, "Harper went away")
    if ending == "applied":
        commit_cell(ledger, leases, first, result())
    again, other = ledger.plan(leases, T, 1, [copy(cell()), copy(cell(1))], "run-2")
    assert (again.mode, other.mode) == (Mode.RECONCILE, Mode.COPY)


def test_number_and_reconcile_are_taken_as_told_and_what_was_touched_is_reconciled(
    ledger: Ledger, leases: Leases
) -> None:
    wanted = [
        Wanted(cell=cell(0), mode=Mode.NUMBER, fingerprint="fp"),
        Wanted(cell=cell(1), mode=Mode.RECONCILE, fingerprint="fp"),
    ]
    first = ledger.plan(leases, T, 1, wanted, "run-1")
    assert [batch.mode for batch in first] == [Mode.NUMBER, Mode.RECONCILE]
    again = ledger.plan(leases, T, 1, wanted, "run-2")
    assert [batch.mode for batch in again] == [Mode.RECONCILE, Mode.RECONCILE]


def test_a_batch_left_planned_ends_as_failed_and_can_no_longer_commit(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    (left,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    (heir,) = ledger.plan(leases, T, 1, [copy(cell())], "run-2")
    assert [(batch.seq, batch.state) for batch in ledger.history(table)] == [
        (2, BatchState.PLANNED),
        (1, BatchState.FAILED),
    ]
    with pytest.raises(LedgerConflict, match=r"is failed already: left planned by ann .* batch 2"):
        commit_cell(ledger, leases, left, result())
    with pytest.raises(LedgerConflict, match="is failed already"):
        ledger.fail_batch(left, "late")
    commit_cell(ledger, leases, heir, result())


def test_a_plan_leaves_the_cells_between_its_own_alone(ledger: Ledger, leases: Leases) -> None:
    places = [cell(0), cell(1), cell(2), cell(0, slice=1)]
    _, between, _, beside = ledger.plan(leases, T, 1, [copy(key) for key in places], "run-1")
    ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(2)), copy(cell(2, slice=1))], "run-2")
    ledger.commit_cells(leases, [(between, result()), (beside, result())])


def test_the_position_does_not_go_back_within_a_slice_whoever_owns_it(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    commit_cell(ledger, leases, batch, result())
    ledger.release(leases)
    mine = ledger.acquire(table, [0, 1], "bob", TTL)
    with pytest.raises(PlanRefused, match="later position"):
        ledger.plan(mine, T - timedelta(microseconds=1), 1, [copy(cell(1))], "run-2")
    ledger.plan(mine, T, 1, [copy(cell(1))], "run-2")
    ledger.plan(mine, T - HOUR, 1, [copy(cell(0, slice=1))], "run-2")


def test_the_position_does_not_go_back_even_if_every_cell_is_to_be_compared(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    ledger.release(leases)
    ledger.distrust(table, [], epoch=0, batch=0)
    mine = ledger.acquire(table, [0], "bob", TTL)
    with pytest.raises(PlanRefused, match=f"at the later position {T:%F %T}"):
        ledger.plan(mine, T - HOUR, 1, [copy(cell())], "run-2")


def test_the_schema_version_does_not_go_back_within_a_slice(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    ledger.record_schema(table, {"columns": ["ts", "speed"]}, 1)
    ledger.plan(leases, T, 2, [copy(cell())], "run-1")
    with pytest.raises(PlanRefused, match="under schema version 2, not 1"):
        ledger.plan(leases, T, 1, [copy(cell(1))], "run-1")
    ledger.plan(leases, T, 1, [copy(cell(1, slice=1))], "run-1")


def test_an_unknown_schema_version_is_refused(ledger: Ledger, leases: Leases) -> None:
    with pytest.raises(PlanRefused, match="no schema version 7"):
        ledger.plan(leases, T, 7, [copy(cell())], "run-1")


def test_a_slice_is_moved_at_one_snapshot_at_a_time(ledger: Ledger, leases: Leases) -> None:
    first, second = ledger.plan(leases, T, 1, [copy(cell(0)), copy(cell(1))], "run-1")
    commit_cell(ledger, leases, first, result())
    with pytest.raises(PlanRefused, match="1 of those batches are still being moved"):
        ledger.plan(leases, T + SECOND, 1, [copy(cell(2))], "run-1")
    ledger.fail_batch(second, "Harper went away")
    ledger.plan(leases, T + SECOND, 1, [copy(cell(2))], "run-1")


def test_what_a_dead_owner_left_planned_does_not_hold_its_successor_back(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    dead = ledger.acquire(table, [0], "ann", TTL)
    ledger.plan(dead, T, 1, [copy(cell(0)), copy(cell(1))], "run-1")
    let_time_pass(TTL)
    heir = ledger.acquire(table, [0], "bob", TTL)
    (batch,) = ledger.plan(heir, T + SECOND, 1, [copy(cell(1))], "run-2")
    assert batch.mode is Mode.RECONCILE
    with pytest.raises(LeaseLost, match="cannot plan batches for positions"):
        ledger.plan(dead, T + SECOND, 1, [copy(cell(2))], "run-1")


START, END = cell().window_start, cell().window_end


def test_a_synced_cell_that_is_planned_again_is_not_trusted_until_it_is_committed(
    ledger: Ledger, table: LedgerRoute, leases: Leases
) -> None:
    (first,) = ledger.plan(leases, T, 1, [copy(cell(), "old")], "run-1")
    commit_cell(ledger, leases, first, result(10))
    (second,) = ledger.plan(leases, T + SECOND, 1, [copy(cell(), "new")], "run-2")
    (record,) = ledger.cells(table, START, END)
    assert record.state is CellState.PLANNED
    assert record.commit is not None
    assert (record.commit.batch, record.commit.fingerprint) == (1, "old")
    commit_cell(ledger, leases, second, result(11))
    (record,) = ledger.cells(table, START, END)
    assert record.state is CellState.SYNCED
    assert record.commit is not None
    assert (record.commit.batch, record.commit.fingerprint) == (2, "new")
    assert (record.commit.t, record.commit.rows) == (T + SECOND, 11)


def test_a_plan_is_one_entry_in_the_audit(ledger: Ledger) -> None:
    wide = ledger.register_route(
        replace(FACTS, name="wide", table="wide", target="Wide", slices=17)
    )
    ledger.record_schema(wide, {"columns": ["ts"]}, 0)
    leases = ledger.acquire(wide, range(17), "ann", TTL)
    ledger.plan(leases, T, 1, [copy(cell(0, slice=number)) for number in (16, 8, 0)], "run-1")
    (entry, *_) = ledger.audit(wide, kind="plan")
    assert (entry.subject, entry.outcome) == ("batches 1 to 3", "planned")
    assert entry.detail == {
        "owner": "ann",
        "run_id": "run-1",
        "t": T.isoformat(),
        "slices": [0, 8, 16],
    }


def test_a_batch_of_a_cell_that_is_not_on_record_ends_with_an_error(
    ledger: Ledger, ledger_url: str, leases: Leases
) -> None:
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    database = Database(SecretStr(ledger_url))
    with database.writing() as connection:
        connection.execute(text("DELETE FROM cells"))
    database.close()
    with pytest.raises(LedgerConflict, match="no batch of positions was ever planned for cell"):
        ledger.fail_batch(batch, "Harper went away")

"""A table can be given another number of slices: every cell is reconciled under the new one."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import select

from bq_harper_assets.ledger.errors import (
    LeaseHeld,
    LeaseLost,
    LedgerConflict,
    PlanRefused,
    TableChanged,
)
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import (
    BatchState,
    CellState,
    LedgerRoute,
    Mark,
    Mode,
    Rejection,
)
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.ledger.store.tables import LEASES
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
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
BAD = Rejection("7", "not a number", "{}")


def _sync(ledger: Ledger, table: LedgerRoute, hour: int, slices: list[int]) -> None:
    leases = ledger.acquire(table, slices, "ann", TTL)
    batches = ledger.plan(leases, T, 1, [copy(cell(hour, slice)) for slice in slices], "run")
    ledger.commit_cells(leases, [(batch, result(10, BAD)) for batch in batches])
    ledger.mark(
        leases, InstantPosition(T), [Mark(cell(hour, slices[0]), cell(hour).window_start, "moved")]
    )
    ledger.release(leases)


@pytest.mark.promise("N7")
@pytest.mark.parametrize("slices", [1, 2, 6])
def test_every_window_gets_cells_of_the_new_slices_that_are_to_be_reconciled(
    ledger: Ledger, table: LedgerRoute, slices: int
) -> None:
    _sync(ledger, table, 0, [0, 1, 2, 3])
    _sync(ledger, table, 1, [3])  # a lagging table: only one slice knows this window
    changed = ledger.change_slices(table, slices)
    assert changed == replace(table, facts=replace(FACTS, slices=slices))
    assert ledger.register_route(replace(FACTS, slices=slices)) == changed
    records = ledger.cells(changed, START, START + DAY)
    assert [record.cell for record in records] == [
        cell(hour, slice) for hour in (0, 1) for slice in range(slices)
    ]
    assert {(one.state, one.commit, one.marks) for one in records} == {(CellState.TOUCHED, None, 0)}
    assert len(ledger.quarantined(changed)) == min(slices, 4) + (slices > 3)
    assert ledger.progress(changed, START).synced_until == START
    leases = ledger.acquire(changed, range(slices), "bob", TTL)
    wanted = [copy(cell(hour, slice)) for hour in (0, 1, 2) for slice in range(slices)]
    batches = ledger.plan(leases, T, 1, wanted, "run-2")
    assert [batch.mode for batch in batches] == (
        [Mode.RECONCILE] * 2 * slices + [Mode.COPY] * slices
    )
    ledger.commit_cells(leases, [(batch, result()) for batch in batches])
    assert ledger.progress(changed, START).synced_until == START + 3 * HOUR
    assert ledger.quarantined(changed) == ()


def test_what_was_done_stays_on_record(ledger: Ledger, table: LedgerRoute) -> None:
    _sync(ledger, table, 0, [0, 1, 2, 3])
    changed = ledger.change_slices(table, 2)
    assert [batch.cell for batch in ledger.history(changed, limit=2)] == [
        cell(slice=3),
        cell(slice=2),
    ]
    assert len(ledger.history(changed, cell(slice=3))) == 1
    entry = ledger.audit(changed)[0]
    assert (entry.kind, entry.subject, entry.outcome) == ("slices", "4 to 2", "changed")


def test_no_slice_goes_back_to_an_older_epoch_position_or_schema(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.record_schema(table, {"columns": ["ts", "speed"]}, 1)
    for _ in range(3):
        leases = ledger.acquire(table, [3], "ann", TTL)
        (batch,) = ledger.plan(leases, T + HOUR, 2, [copy(cell(slice=3))], "run")
        commit_cell(ledger, leases, batch, result())
        ledger.release(leases)
    epochs = []
    for slices in (2, 6, 5):
        table = ledger.change_slices(table, slices)
        rows = ledger.leases(table)
        assert {(row.t, row.schema_version, row.owner) for row in rows} == {(T + HOUR, 2, None)}
        assert [row.slice for row in rows] == list(range(slices))
        (epoch,) = {row.epoch for row in rows}
        epochs.append(epoch)
    assert epochs == [4, 5, 6]
    leases = ledger.acquire(table, [0], "ann", TTL)
    with pytest.raises(PlanRefused, match="at the later position"):
        ledger.plan(leases, T, 2, [copy(cell())], "run")


def test_slices_that_were_never_used_may_take_any_position(
    ledger: Ledger, table: LedgerRoute
) -> None:
    changed = ledger.change_slices(table, 5)
    assert ledger.cells(changed, START, START + DAY) == ()
    leases = ledger.acquire(changed, [4], "ann", TTL)
    (batch,) = ledger.plan(leases, START, 1, [copy(cell(slice=4))], "run")
    assert batch.mode is Mode.COPY


@pytest.mark.promise("N7")
def test_a_table_that_is_being_moved_keeps_its_slices(
    ledger: Ledger, table: LedgerRoute, let_time_pass: LetTimePass
) -> None:
    leases = ledger.acquire(table, [2], "ann", TTL)
    (batch,) = ledger.plan(leases, T, 1, [copy(cell(slice=2))], "run")
    with pytest.raises(LeaseHeld, match=r"slice 2: ann until .*: bqh slices set positions 6$"):
        ledger.change_slices(table, 6)
    assert ledger.find_route("positions") == table
    let_time_pass(TTL + timedelta(seconds=1))
    changed = ledger.change_slices(table, 6)
    assert [done.state for done in ledger.history(changed)] == [BatchState.FAILED]
    with pytest.raises(LeaseLost):
        commit_cell(ledger, leases, batch, result())
    with pytest.raises(LedgerConflict, match="another number of slices"):
        ledger.fail_batch(batch, "late")


def test_a_run_that_counts_the_slices_as_they_were_gets_no_lease(
    ledger: Ledger, table: LedgerRoute
) -> None:
    changed = ledger.change_slices(table, 2)
    for slices in ([0], [0, 1, 2, 3]):
        with pytest.raises(TableChanged, match="has been given 2 slices instead of 4"):
            ledger.acquire(table, slices, "ann", TTL)
    assert [row.owner for row in ledger.leases(changed)] == [None, None]


def test_the_same_number_changes_nothing_and_none_is_refused(
    ledger: Ledger, table: LedgerRoute
) -> None:
    _sync(ledger, table, 0, [0])
    assert ledger.change_slices(table, 4) == table
    assert ledger.cells(table, START, START + DAY)[0].state is CellState.SYNCED
    with pytest.raises(LedgerConflict, match="cannot have 0 slices"):
        ledger.change_slices(table, 0)


def test_tables_beside_it_keep_their_slices(ledger: Ledger, table: LedgerRoute) -> None:
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    _sync(ledger, other, 0, [0, 1, 2, 3])
    before = (ledger.cells(other, START, START + DAY), ledger.leases(other))
    ledger.change_slices(table, 2)
    assert (ledger.cells(other, START, START + DAY), ledger.leases(other)) == before
    assert len(ledger.quarantined(other)) == 4


def test_of_changes_and_runs_at_once_nobody_works_with_a_count_that_is_gone(
    ledger_url: str, ledger: Ledger, table: LedgerRoute
) -> None:
    other, locked = Database(SecretStr(ledger_url)), threading.Event()

    def hold() -> None:
        with other.writing() as connection:
            connection.execute(select(LEASES).with_for_update()).all()
            locked.set()
            threading.Event().wait(0.5)

    def change(slices: int) -> int | None:
        try:
            return ledger.change_slices(table, slices).facts.slices
        except (LedgerConflict, LeaseHeld):
            return None

    def acquire() -> bool:
        try:
            ledger.acquire(table, [0], "ann", TTL)
        except TableChanged:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        holder = pool.submit(hold)
        assert locked.wait(20)
        changes = [pool.submit(change, slices) for slices in (2, 6)]
        run = pool.submit(acquire)
        holder.result()
        changed = [call.result() for call in changes]
        moving = run.result()
    other.close()
    (now,) = ledger.routes()
    assert len(ledger.leases(now)) == now.facts.slices
    if moving:
        assert (changed, now.facts.slices) == ([None, None], 4)
    else:
        assert now.facts.slices in [slices for slices in changed if slices]

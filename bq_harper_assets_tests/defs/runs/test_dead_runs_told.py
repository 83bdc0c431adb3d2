"""What is said of runs that have left cells or leases behind."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus, job, op
from pydantic import SecretStr
from sqlalchemy import text

from bq_harper_assets.defs.runs.dead_runs import clear_the_way, end_dead_runs, was_found_dead
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.defs.runs.run_process import GONE_AFTER_S, HOST, PID, RUN, SEEN, STARTED
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.ledger.store.database import Database
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, registered, ships

CELLS = [Cell(Window(DAY + n * MINUTE, DAY + (n + 5) * MINUTE), 0) for n in (0, 5)]
STARTED_NOW, CANCELING = DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING


@job
def sync_orders() -> None:
    """Named as the job of the table is."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return empty_ledger(tmp_path / "ledger.db")


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with open_ledger(url) as opened:
        yield opened


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


def run_of(
    instance: DagsterInstance, status: DagsterRunStatus, *, silent_s: float | None = None
) -> str:
    """A run on another host, which was seen so many seconds ago."""
    run = instance.create_run_for_job(sync_orders, status=status)
    if silent_s is not None:
        seen = datetime.now(UTC).timestamp() - silent_s
        told = {HOST: "far", PID: "7", STARTED: "then", RUN: run.run_id, SEEN: f"{seen:.0f}"}
        instance.add_run_tags(run.run_id, told)
    return run.run_id


def leave(ledger: Ledger, run_id: str, *minutes: int) -> datetime:
    """Plans cells in the name of a run; returns until when it holds the lease."""
    leases = ledger.acquire(registered(ledger, ships()), [0], run_id, 3 * MINUTE)
    cells = [CellKey.of_window(DAY + n * MINUTE, DAY + (n + 5) * MINUTE, 0) for n in minutes]
    wanted = [Wanted(cell=each, mode=Mode.COPY, fingerprint="fp") for each in cells]
    ledger.plan(leases, ledger.now(), 1, wanted, run_id)
    return leases.held[0].expires_at


def let_leases_expire(url: str) -> None:
    database = Database(SecretStr(url))
    with database.writing() as connection:
        connection.execute(text("UPDATE leases SET expires_at = expires_at - 600000000"))
    database.close()


def test_a_run_that_died_is_ended_and_what_it_left_is_taken_up(
    instance: DagsterInstance, ledger: Ledger
) -> None:
    dead = run_of(instance, STARTED_NOW, silent_s=GONE_AFTER_S + 3_600)
    until = leave(ledger, dead, 0, 5)
    before = datetime.now(UTC)
    [line] = clear_the_way(instance, ledger, ships(), CELLS)
    assert line.startswith(f"run {dead[:8]} (process 7 on far, last seen at ")
    died = line.partition(") died at ")[2][:5]  # not before it has planned its cells
    assert died in {f"{before - MINUTE:%H:%M}", f"{before:%H:%M}", f"{datetime.now(UTC):%H:%M}"}
    assert line.endswith(
        f"UTC; its 2 cells are taken up again, once its lease has expired at {until:%T} UTC"
    )
    run = instance.get_run_by_id(dead)
    assert run
    assert run.status is DagsterRunStatus.FAILURE
    assert was_found_dead(instance, dead)


def test_cells_that_nobody_asks_for_now_are_told_with_what_to_type(
    instance: DagsterInstance, ledger: Ledger, url: str
) -> None:
    leave(ledger, run_of(instance, STARTED_NOW, silent_s=GONE_AFTER_S + 60), 0, 10, 15)
    let_leases_expire(url)
    [line] = clear_the_way(instance, ledger, ships(), CELLS)
    assert line.endswith("; 1 of its 3 cells are taken up again, the others by: bqh sync orders")


def test_a_run_that_works_is_left_alone(instance: DagsterInstance, ledger: Ledger) -> None:
    works = run_of(instance, STARTED_NOW, silent_s=1)
    leave(ledger, works, 0)
    assert clear_the_way(instance, ledger, ships(), CELLS) == []
    assert not was_found_dead(instance, works)


def test_the_run_that_asks_is_not_told_of_its_own_lease(
    instance: DagsterInstance, ledger: Ledger
) -> None:
    asks = run_of(instance, DagsterRunStatus.FAILURE)
    leave(ledger, asks, 0)
    assert clear_the_way(instance, ledger, ships(), CELLS, asks) == []
    assert len(clear_the_way(instance, ledger, ships(), CELLS)) == 1


def test_a_run_of_another_dagster_works_while_it_holds_its_lease(
    instance: DagsterInstance, ledger: Ledger, url: str
) -> None:
    leave(ledger, "0123456789", 0)
    assert clear_the_way(instance, ledger, ships(), CELLS) == []
    let_leases_expire(url)
    assert clear_the_way(instance, ledger, ships(), CELLS) == [
        "run 01234567 of another Dagster did not end; its 1 cells are taken up again"
    ]


def test_runs_that_were_stopped_are_told_as_such(instance: DagsterInstance, ledger: Ledger) -> None:
    stopped = run_of(instance, DagsterRunStatus.CANCELED)
    leases = ledger.acquire(registered(ledger, ships()), [0], stopped, MINUTE)
    [line] = clear_the_way(instance, ledger, ships(), CELLS)
    until = leases.held[0].expires_at
    assert line == (
        f"run {stopped[:8]} was stopped; it had planned nothing yet, once its lease has expired at"
        f" {until:%T} UTC"
    )


def test_dead_runs_that_left_nothing_are_told_with_their_job(
    instance: DagsterInstance, ledger: Ledger
) -> None:
    dead = run_of(instance, CANCELING, silent_s=GONE_AFTER_S + 60)
    [line] = clear_the_way(instance, ledger, ships(), CELLS)
    assert line.startswith(f"run {dead[:8]} (process 7 on far")
    assert line.endswith("UTC, in sync_orders")
    run = instance.get_run_by_id(dead)
    assert run
    assert run.status is DagsterRunStatus.CANCELED
    assert end_dead_runs(instance) == []


def test_a_run_that_failed_is_told_as_such(instance: DagsterInstance, ledger: Ledger) -> None:
    @op
    def fail() -> None:
        raise ValueError("Harper was away")

    @job
    def sync_ports() -> None:
        fail()

    failed = sync_ports.execute_in_process(
        instance=instance, raise_on_error=False, run_config=QUIET
    ).run_id
    leave(ledger, failed, 0)
    [line] = clear_the_way(instance, ledger, ships(), CELLS)
    assert line.startswith(f"run {failed[:8]} failed; its 1 cells are taken up again")

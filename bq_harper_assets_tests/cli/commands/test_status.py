"""`bqh status`: figures that add up, how far each slice is, and who is at work; by the ledger."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterRunStatus, job, op
from dagster._core.utils import make_new_run_id

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.defs.runs.run_process import PID, STARTED, tags_of_this_process
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.records import CellKey, Leases, LedgerRoute, Mode, Wanted
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.ledger.sample import result
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

TTL = timedelta(minutes=3)
START = hours_ago(5)


@op
def do_nothing() -> None:
    pass


@job
def nothing() -> None:
    do_nothing()


@pytest.fixture
def declared(serverless: TemporaryProject) -> Project:
    """One table of two slices, of whose windows the last is still open."""
    return serverless.declare(_table())


def _table(**declared: Any) -> dict[str, Any]:
    # Half of the newest window is over, whatever the minute is.
    lag = (datetime.now(UTC).minute - 30) % 60
    ships = TableRef("p", "sea", "ships")
    return table(ships, START, **{"id": "ships", "safetyLag": f"{lag}m", **declared})


def known(project: Project, ledger: Ledger) -> tuple[TableContract, LedgerRoute]:
    """The table as a first run registers it."""
    [ships] = project.tables
    found = ledger.register_route(table_facts(ships, project.bigquery.project))
    if ledger.newest_schema(found) is None:
        ledger.record_schema(found, {"columns": []}, 0)
    return ships, found


def plan(
    ledger: Ledger, leases: Leases, hours: range, slices: range, upto: datetime | None = None
) -> list[Any]:
    """Cells of these hours, of which the last may go only so far."""
    wanted = []
    for hour in hours:
        key = START + hour * HOUR
        for part in slices:
            cell = CellKey.of_window(key, key + HOUR, part)
            end = upto if upto and cell.window_start <= upto < cell.window_end else key + HOUR
            wanted.append(Wanted(cell=cell, mode=Mode.COPY, fingerprint="fp", upto=end))
    return list(ledger.plan(leases, ledger.now(), 1, wanted, leases.owner))


@pytest.mark.promise("M5")
def test_open_cells_are_counted_apart_and_each_slice_says_how_far_it_is(declared: Project) -> None:
    with open_ledger(declared.ledger.url) as ledger:
        ships, found = known(declared, ledger)
        half = ledger.now() - ships.safety_lag
        newest = (half - START) // HOUR  # windows before the open one
        leases = ledger.acquire(found, [0, 1], "first-run", TTL)
        batches = plan(ledger, leases, range(newest + 1), range(2), upto=half)
        behind = batches[-3]  # slice 1 of the last closed window
        done = [(batch, result(10)) for batch in batches if batch is not behind]
        ledger.commit_cells(leases, done)
        ledger.fail_batch(behind, "Harper said no")
        ledger.release(leases)
        state = {"status": "healthy", "metadata": {"rows_before_start": 0, "rows_in_future": 0}}
        state["metadata"]["rows_without_time"] = 3  # type: ignore[index]
        note = Note("validation", "ships", "healthy", {"checks": {"progress": state}})
        ledger.record_audit(found, note)

    shown = typed_well("status")
    closed = 2 * newest
    reach = "synced, and what was committed reaches without a gap until"
    assert f"  {closed - 1} of {closed} cells of closed windows {reach} " in shown
    assert f"  2 of 2 cells of windows still open synced, up to {half:%F %T} UTC\n" in shown
    assert f"  {10 * (closed + 1)} rows, 0 quarantined" in shown
    lines = [line.split() for line in shown.splitlines() if line.startswith("    s0")]
    until = START + (newest - 1) * HOUR
    assert [line[:3] for line in lines] == [
        ["s00", f"{half:%F}", f"{half:%T}"],
        ["s01", f"{until:%F}", f"{until:%T}"],
    ]
    assert [line[-1] for line in lines] == [str(10 * (newest + 1)), str(10 * newest)]
    assert "  cells due: 1 failed; to sync them, type: bqh sync ships --changed\n" in shown
    assert "  failed: 1 cell; type: bqh sync ships --changed\n" in shown
    assert "  not copied: 3 rows without ts (as of " in shown
    assert "\nships -> " in typed_well("status", "ships")
    assert "did you mean ships?" in typed("status", "shipps").stderr
    [programs] = told("status")["tables"]
    assert programs["cells"] == {"synced": closed - 1, "failed": 1}
    assert programs["cells_open"] == {"synced": 2}
    assert sum(programs["cells"].values()) <= programs["cells_due"] == closed
    assert sum(each["rows"] for each in programs["slices"]) == programs["rows"]


def test_cells_of_another_window_length_or_start_are_not_counted_against_those_declared(
    serverless: TemporaryProject, declared: Project
) -> None:
    with open_ledger(declared.ledger.url) as ledger:
        _, found = known(declared, ledger)
        leases = ledger.acquire(found, [0, 1], "first-run", TTL)
        batches = plan(ledger, leases, range(4), range(2))
        ledger.commit_cells(leases, [(batch, result(10)) for batch in batches])
        ledger.release(leases)
    serverless.declare(_table(window="1d", slices=1))
    shown = typed_well("status")
    assert "says window: 1d, and the table is synced by windows of 60m, which cannot be" in shown
    assert "  8 of " in shown
    serverless.declare(_table(slices=3))
    shown = typed_well("status")
    assert "says slices: 3, and the table is synced with 2; type: bqh slices set ships 3" in shown
    later = START + 2 * HOUR
    serverless.declare(_table(sync={"startTimestamp": f"{later:%FT%TZ}"}))
    shown = typed_well("status")
    assert "  4 cells lie before the first window" in shown
    assert "  4 of " in shown


def test_while_a_run_is_at_work_nothing_is_advised_and_a_dead_run_is_told(
    declared: Project,
) -> None:
    with open_ledger(declared.ledger.url) as ledger:
        _, found = known(declared, ledger)
        leases = ledger.acquire(found, [0, 1], "run-9f56", TTL)
        assert "the first sync goes on\n" in typed_well("status")
        plan(ledger, leases, range(4), range(2))
        shown = typed_well("status")
        assert "  run run-9f56 has been at work since " in shown
        assert "and the next run takes its cells up\n" in shown
        assert "  planned: 8 cells\n" in shown
        assert "bqh sync" not in shown
        [programs] = told("status")["tables"]
        [worker] = programs["workers"]
        assert (worker["owner"], worker["cells"], worker["left"]) == ("run-9f56", 8, 8)
        ledger.release(leases)

        leases = ledger.acquire(found, [0, 1], "run-dead", timedelta(milliseconds=300))
        plan(ledger, leases, range(4, 5), range(1))
        while ledger.now() <= leases.held[0].expires_at:
            pass
    shown = typed_well("status")
    assert "  run run-dead is not at work any more: its lease ran out at " in shown
    assert "and the next run takes up its 1 cell: bqh sync ships --changed\n" in shown


def test_a_run_that_has_ended_is_not_at_work_though_its_lease_has_not_expired(
    declared: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    with project_instance(declared.root) as instance:
        stopped = instance.create_run_for_job(nothing, status=DagsterRunStatus.CANCELED)
        gone_id = make_new_run_id()
        gone = {**tags_of_this_process(gone_id), STARTED: "another process of that id"}
        instance.create_run_for_job(
            nothing, run_id=gone_id, status=DagsterRunStatus.STARTED, tags=gone
        )
    with open_ledger(declared.ledger.url) as ledger:
        _, found = known(declared, ledger)
        plan(ledger, ledger.acquire(found, [0], stopped.run_id, TTL), range(3), range(1))
        ledger.acquire(found, [1], gone_id, TTL)
        shown = typed_well("status")
        assert f"  run {stopped.run_id[:8]} was stopped; its lease ends at " in shown
        assert "and then the next run takes up its 3 cells: bqh sync ships --changed\n" in shown
        assert f"  run {gone_id[:8]} (process {gone[PID]} on " in shown
        assert "at work" not in shown
        assert "Start with: bqh sync ships\n" in shown
        assert told("status")["tables"][0]["ended"][stopped.run_id].endswith(" was stopped")


def test_cells_that_were_synced_while_their_window_was_open_are_not_counted_as_done(
    declared: Project,
) -> None:
    with open_ledger(declared.ledger.url) as ledger:
        _, found = known(declared, ledger)
        leases = ledger.acquire(found, [0, 1], "first-run", TTL)
        half = START + HOUR + timedelta(minutes=30)
        batches = plan(ledger, leases, range(2), range(2), upto=half)
        ledger.commit_cells(leases, [(batch, result(10)) for batch in batches])
        ledger.release(leases)
    shown = typed_well("status")
    assert "  2 of " in shown
    assert "  4 of " not in shown
    assert " 2 closed_since; " in shown

"""A live table in Dagster: the sensor keeps one run going, and each run files a cell once."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dagster import DagsterEventType, DagsterRun, DagsterRunStatus, RunsFilter
from dagster._core.utils import make_new_run_id

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.evaluations import PER_PARTITION
from bq_harper_assets.defs.partitions import build_partitions
from bq_harper_assets.defs.runs.early_end import execute_stoppably
from bq_harper_assets.defs.runs.launch import launch
from bq_harper_assets.defs.runs.run_process import tags_of
from bq_harper_assets.errors import Stopped
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.local.processes import Process
from bq_harper_assets.stores.harper.mirror.checkpoints import checkpoint_id
from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.shown import shown
from bq_harper_assets_tests.defs.ticking import Ticking
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def lag_until(moment: datetime) -> str:
    """The safety lag with which a sync stands at the moment now."""
    return f"{int((datetime.now(UTC) - moment).total_seconds())}s"


def checkpoint(dagster: Dagster, contract: TableContract) -> dict[str, Any]:
    """Of the first slice, as Harper shows it."""
    [row] = dagster.harper.search_by_id(CHECKPOINTS.name, [checkpoint_id(contract.id, 0)], ("*",))
    return row


@pytest.mark.promise("H6", "M5")
def test_a_live_run_tops_up_the_open_window_until_it_has_closed_and_files_each_cell_once(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    hour = hours_ago(2)
    key, keys = f"{hour:%FT%H:%M}", {f"{hour:%FT%H:%M}|s0{number}" for number in (0, 1)}
    source = tables.make_from(
        f"SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '{hour:%F %T}+00', INTERVAL n SECOND) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 3599)) AS n"
    )
    declared = table(source, hour, safetyLag=lag_until(hour + HOUR / 2))
    [contract] = project.declare(declared).tables
    cells = [Cell(Window(hour, hour + HOUR), number) for number in (0, 1)]
    launched = launch(dagster.definitions(), dagster.instance, contract, cells)
    assert launched.error is None
    for metadata in launched.done.values():
        assert metadata["window"] == f"open until {(hour + HOUR).isoformat()}"
        upto = datetime.fromisoformat(metadata["snapshot"]) - contract.safety_lag
        assert metadata["synced_upto"] == upto.isoformat()
        assert hour + HOUR / 2 <= upto < hour + HOUR
    assert 1800 <= len(dagster.rows(contract)) < 3600

    soon = timedelta(seconds=15)  # the window closes when the live run has just begun
    [contract] = project.declare(declared | {"safetyLag": lag_until(hour + HOUR - soon)}).tables
    live = Ticking(dagster=dagster, contract=contract, kind="live")
    [request] = live.tick()
    assert request.run_key == f"{key}#1"
    assert live.run(request)
    job = live.definitions.resolve_job_def(f"live_{contract.id}")
    [run] = dagster.instance.get_runs(RunsFilter(job_name=job.name))
    logs = dagster.instance.all_logs(run.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
    filed = {
        event.partition: event.step_materialization_data.materialization.metadata
        for event in (log.get_dagster_event() for log in logs)
    }
    assert len(logs) == len(filed) == 2
    assert set(filed) == keys
    assert {each["window"].value for each in filed.values()} == {"closed"}
    ends = {each["synced_upto"].value for each in filed.values()}
    assert ends == {(hour + HOUR).isoformat()}
    assert sorted(dagster.rows(contract)) == list(range(3600))
    held = sum(int(str(each["dagster/partition_row_count"].value)) for each in filed.values())
    assert held == 3600
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        assert known is not None
        batches = ledger.history(known)
    of_run = [batch.mode for batch in reversed(batches) if batch.run_id == run.run_id]
    assert of_run[:2] == [Mode.TOPUP] * 2
    assert of_run[-2:] == [Mode.RECONCILE] * 2
    mirrored = checkpoint(dagster, contract)
    assert mirrored["lastTimestamp"] == f"{hour + HOUR:%FT%T.000000Z}"

    checked = dagster.instance.all_logs(run.run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION)
    verdicts = [log.get_dagster_event().asset_check_evaluation_data for log in checked]
    passed: dict[str, set[str | None]] = {}
    for each in verdicts:
        assert each.passed, each
        passed.setdefault(each.check_name, set()).add(each.partition)
    of_table = {name: {None} for name in ("progress", "smoke", "spot", "proof")}
    assert passed == {**of_table, PER_PARTITION: set(keys)}

    revisit = Ticking(dagster=dagster, contract=contract)
    assert revisit.tick() == ()
    assert revisit.cursor["windows_compared"] == 1
    [request] = live.tick()
    assert request.run_key == f"{hour + HOUR:%FT%H:%M}#1"
    going_on = dagster.instance.create_run_for_job(job, status=DagsterRunStatus.STARTED)
    assert live.tick() == ()
    assert live.skipped == "a live run goes on"
    dagster.instance.delete_run(going_on.run_id)
    [request] = live.tick()
    assert request.run_key == f"{hour + HOUR:%FT%H:%M}#2"
    one_poll = {f"follow_{contract.id}": {"config": {"seconds": 1}}}
    assert live.run(request, ops=one_poll)  # which finds no rows
    [newest] = dagster.instance.get_runs(RunsFilter(job_name=job.name), limit=1)
    for check in ("progress", "smoke", "spot", "proof"):
        told = dagster.evaluations(contract, check, newest.run_id)
        assert [(each.partition, each.passed) for each in told] == [(None, True)]
    assert dagster.evaluations(contract, PER_PARTITION, newest.run_id) == []
    empty = checkpoint(dagster, contract)
    assert empty["recordsIngested"] == mirrored["recordsIngested"]
    assert empty["lastSyncTime"] > mirrored["lastSyncTime"]
    assert empty["lastTimestamp"] > mirrored["lastTimestamp"]
    partitions = build_partitions(contract, hour)
    assert f"{hours_ago(0):%FT%H:%M}|s00" in partitions.get_partition_keys()


def test_terminate_ends_a_live_run_between_two_polls_and_keeps_what_they_did(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    hour = hours_ago(2)
    source = tables.make_from(numbered_rows(hour))
    slow = {"startTimestamp": f"{hour:%FT%TZ}", "pollInterval": 1_200_000}
    declared = table(source, hour, safetyLag=lag_until(hour + HOUR / 2), sync=slow)
    [contract] = project.declare(declared).tables
    run_id = make_new_run_id()

    def terminate() -> None:
        give_up = time.monotonic() + 300
        while not any(
            "rows at" in entry.user_message for entry in dagster.instance.all_logs(run_id)
        ):
            assert time.monotonic() < give_up, "the run has told of no poll"
            time.sleep(0.1)
        run = dagster.instance.get_run_by_id(run_id)
        assert run
        dagster.instance.report_run_canceling(run)

    job = dagster.definitions().resolve_job_def(f"live_{contract.id}")
    with ThreadPoolExecutor(1) as pool:
        clicked = pool.submit(terminate)
        with pytest.raises(Stopped, match="all is safe") as stopped:
            execute_stoppably(
                dagster.instance,
                run_id,
                lambda: job.execute_in_process(
                    instance=dagster.instance, run_id=run_id, raise_on_error=False
                ),
                lambda: "all is safe",
            )
        clicked.result(60)
    assert stopped.value.exit_code == 128 + signal.SIGTERM
    ended = dagster.instance.get_run_by_id(run_id)
    assert ended
    assert ended.status is DagsterRunStatus.CANCELED
    assert len(dagster.materialised(contract)) == 2
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        assert known
        assert not any(lease.is_live for lease in ledger.leases(known))


@pytest.mark.promise("H6", "O3")
def test_an_open_partition_has_passed_so_far_and_is_never_called_proved(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    hour = hours_ago(2)
    source = tables.make_from(numbered_rows(hour - HOUR, rows=120, minutes=1))
    declared = table(source, hour - HOUR, safetyLag=lag_until(hour + HOUR / 2))
    [contract] = project.declare(declared).tables
    closed, still_open = (
        [Cell(Window(start, start + HOUR), number) for number in (0, 1)]
        for start in (hour - HOUR, hour)
    )
    launched = launch(dagster.definitions(), dagster.instance, contract, closed + still_open)
    assert launched.error is None
    filed = {
        each.partition: (each.passed, each.severity.value, each.metadata["status"].value)
        for each in dagster.evaluations(contract, PER_PARTITION, launched.run_id)
    }
    assert filed == {
        **{cell.key: (True, "WARN", "proved") for cell in closed},
        **{cell.key: (True, "WARN", "open") for cell in still_open},
    }
    seen = shown(dagster.root, dagster.instance, contract)
    assert seen.partitions() == {cell.key: "succeeded" for cell in closed + still_open}
    for check in ("progress", "smoke", "spot", "proof", PER_PARTITION):
        assert seen.listed(check) == "succeeded"
    proof = seen.metadata("proof")
    assert (proof["cells_proved"], proof["cells_open"]) == (2, 2)
    assert proof["message"].endswith("; 2 were open at their sync")
    assert launched.proof is not None
    assert launched.proof.is_equal
    assert launched.proof.message == "4 cells: 2 open, 2 proved by stored hash"
    audits = dagster.harper.search_by_value("SyncAudit", "tableId", contract.id, ("*",))
    [kept] = [row for row in audits if row["check"] == "all"]
    [told] = json.loads(kept["checkResults"]).values()
    assert told["proof"]["metadata"]["cells"] == {"proved": 2, "open": 2}
    assert [row["message"] for row in audits if row["status"] == "failed"] == []
    assert kept["status"] == "healthy"


def test_a_live_run_that_failed_is_not_asked_for_again_at_once(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    [contract] = project.declare(table(tables.make("ts TIMESTAMP"), hour)).tables
    live = Ticking(dagster=dagster, contract=contract, kind="live")
    job = live.definitions.resolve_job_def(f"live_{contract.id}")
    dagster.instance.create_run_for_job(job, status=DagsterRunStatus.FAILURE)
    assert live.tick() == ()
    assert "failed" in (live.skipped or "")


def test_a_live_run_that_was_killed_is_followed_by_the_next_which_says_so(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    [contract] = project.declare(table(tables.make("ts TIMESTAMP"), hour)).tables
    live = Ticking(dagster=dagster, contract=contract, kind="live")
    job = live.definitions.resolve_job_def(f"live_{contract.id}")
    gone = Process(pid=os.getpid(), started="before the reboot 1")

    def killed() -> DagsterRun:
        run = dagster.instance.create_run_for_job(job, status=DagsterRunStatus.STARTED)
        dagster.instance.add_run_tags(run.run_id, tags_of(run.run_id, gone))
        return run

    dead = killed()
    [request] = live.tick()  # nobody waits five minutes, for it did not fail by itself
    ended = dagster.instance.get_run_by_id(dead.run_id)
    assert ended
    assert ended.status is DagsterRunStatus.FAILURE
    dead = killed()
    assert live.run(request, ops={f"follow_{contract.id}": {"config": {"seconds": 1}}})
    [newest] = dagster.instance.get_runs(RunsFilter(job_name=job.name), limit=1)
    said = [entry.user_message for entry in dagster.instance.all_logs(newest.run_id)]
    assert any(line.startswith(f"run {dead.run_id[:8]} (process {gone.pid}") for line in said)

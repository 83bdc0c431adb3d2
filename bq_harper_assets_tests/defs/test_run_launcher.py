"""Run monitoring learns from our launcher which runs are dead: by host, process id and start time.

The processes are real; the daemon's own code judges them.
"""

import logging
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from dagster import (
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    job,
    op,
)
from dagster._core.events import EngineEventData
from dagster._core.instance.config import PoolGranularity
from dagster._core.storage.tags import MAX_RUNTIME_SECONDS_TAG
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster._daemon.monitoring import run_monitoring
from dagster._daemon.monitoring.concurrency import execute_concurrency_slots_iteration
from dagster._daemon.monitoring.run_monitoring import execute_run_monitoring_iteration

from bq_harper_assets.cli.commands.doctor import dagster_finding
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.defs import run_launcher
from bq_harper_assets.defs.instance_settings import (
    BEGINS_WITHIN_S,
    what_it_means,
)
from bq_harper_assets.defs.run_launcher import WatchedRunLauncher
from bq_harper_assets.defs.runs import dead_runs, run_process
from bq_harper_assets.defs.runs.dead_runs import end_dead_runs
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.defs.runs.run_process import (
    PID,
    Pulse,
    pulse_of,
    tags_of_host,
)
from bq_harper_assets.local import processes
from bq_harper_assets.local.processes import Process
from bq_harper_assets_tests.temporary_project import TemporaryProject

POOL = "harper/Orders"


@op(pool=POOL)
def nothing() -> None:
    pass


@job
def sync_orders() -> None:
    nothing()


@pytest.fixture
def instance(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterInstance]:
    """With the settings of the project's own dagster.yaml."""
    monkeypatch.setenv("DAGSTER_HOME", "")
    project = TemporaryProject.at(tmp_path / "project", project_root, None)
    with project_instance(project.root) as opened:
        yield opened


@pytest.fixture
def start() -> Iterator[Callable[[], "subprocess.Popen[bytes]"]]:
    """Starts processes that do nothing, and ends them after the test."""
    with ExitStack() as started:

        def sleeping() -> "subprocess.Popen[bytes]":
            process = started.enter_context(subprocess.Popen(["sleep", "600"]))
            started.callback(process.kill)
            return process

        yield sleeping


def found(process: "subprocess.Popen[bytes]") -> Process:
    running = processes.find_process(process.pid)
    assert running
    return running


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def run_in(
    instance: DagsterInstance,
    status: DagsterRunStatus = DagsterRunStatus.STARTED,
    recorded: Process | None = None,
    **tags: str,
) -> DagsterRun:
    """A run that is executed by the process, as far as its tags say."""
    run = instance.create_run_for_job(sync_orders, status=status)
    told = run_process.tags_of(run.run_id, recorded) if recorded else {}
    instance.add_run_tags(run.run_id, told | tags)
    return again(instance, run)


def again(instance: DagsterInstance, run: DagsterRun) -> DagsterRun:
    found = instance.get_run_by_id(run.run_id)
    assert found
    return found


def monitor(instance: DagsterInstance) -> None:
    """One round of the daemon's run monitoring."""
    logger = logging.getLogger("monitoring")
    with WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as workspace:
        for error in execute_run_monitoring_iteration(workspace, logger):
            assert error is None, error
        for error in execute_concurrency_slots_iteration(workspace, logger):
            assert error is None, error


def test_dagster_yaml_names_our_launcher_and_monitors_with_it(instance: DagsterInstance) -> None:
    assert isinstance(instance.run_launcher, WatchedRunLauncher)
    assert instance.run_launcher.supports_check_run_worker_health
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_poll_interval_seconds <= 60


def test_an_older_dagster_yaml_is_told_with_what_to_write(
    tmp_path: Path,
    project_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "kept"
    home.mkdir()
    settings = home / "dagster.yaml"
    settings.write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    project = TemporaryProject.at(tmp_path / "project", project_root, None)
    with project_instance(project.root):
        pass
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(
        f"warning: the dagster.yaml of {home} lacks settings of ours: a run that"
    )
    told = dagster_finding(load_project(project.root))
    assert (told.verdict, told.detail) == ("warn", what_it_means(home))
    # What it says is enough.
    written = said.partition("Write there: ")[2].replace("; ", "\n")
    assert told.next_step.endswith(written.replace("\n", "; "))
    settings.write_text(written, encoding="utf-8")
    with project_instance(project.root) as instance:
        assert isinstance(instance.run_launcher, WatchedRunLauncher)
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_start_timeout_seconds == BEGINS_WITHIN_S
        pools = instance.get_concurrency_config().pool_config
        assert pools.pool_granularity is PoolGranularity.RUN
    assert capsys.readouterr().err == ""
    assert dagster_finding(load_project(project.root)).verdict == "ok"


def test_a_run_is_failed_when_its_process_was_killed_and_not_before(
    instance: DagsterInstance, start: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    working, killed = start(), start()
    alive = run_in(instance, recorded=found(working))
    dead = run_in(instance, recorded=found(killed))
    monitor(instance)
    assert not again(instance, dead).is_finished
    kill(killed)
    monitor(instance)
    assert again(instance, alive).status is DagsterRunStatus.STARTED
    assert again(instance, dead).status is DagsterRunStatus.FAILURE
    said = [entry.message for entry in instance.all_logs(dead.run_id)]
    gone = f"Its process is gone: process {killed.pid} on {processes.here()}."
    assert any(gone in line for line in said)


def test_a_run_that_ended_while_its_process_was_looked_for_stays_as_it_ended(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(instance: DagsterInstance, run: DagsterRun) -> Pulse:
        instance.run_storage.add_run_tags(run.run_id, {"looked": "at"})
        instance.report_dagster_event(
            DagsterEvent(DagsterEventType.RUN_SUCCESS.value, run.job_name), run.run_id
        )
        return Pulse.GONE

    for module, end in (
        (dead_runs, lambda run: end_dead_runs(instance)),
        (run_launcher, lambda run: instance.run_launcher.terminate(run.run_id)),
    ):
        monkeypatch.setattr(module, "pulse_of", look)
        run = run_in(instance)
        end(run)
        assert again(instance, run).tags["looked"] == "at"
        assert again(instance, run).status is DagsterRunStatus.SUCCESS


def test_a_run_that_takes_minutes_to_begin_is_not_called_failed(
    instance: DagsterInstance,
    start: Callable[[], "subprocess.Popen[bytes]"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `bqh sync` of thousands of partitions, whose events Dagster writes before it begins."""
    run = run_in(instance, DagsterRunStatus.NOT_STARTED, recorded=found(start()))
    later = time.time() + 50 * 60
    monkeypatch.setattr(run_monitoring, "get_current_timestamp", lambda: later)
    monitor(instance)
    assert again(instance, run).status is DagsterRunStatus.NOT_STARTED


def test_a_run_whose_launcher_died_too_is_known_by_dagsters_own_event(
    instance: DagsterInstance,
    start: Callable[[], "subprocess.Popen[bytes]"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = start()
    run = run_in(instance, **tags_of_host())
    assert PID not in run.tags
    assert pulse_of(instance, run) is Pulse.UNKNOWN
    # As Dagster's code server does it in the run's process.
    instance.report_engine_event("Started process", run, EngineEventData.in_process(process.pid))
    assert pulse_of(instance, run) is Pulse.ALIVE
    with monkeypatch.context() as patched:
        # As if the event had been written a minute before the process began: it is another one.
        patched.setattr(run_process, "_CLOCK_STEP_S", -60.0)
        assert pulse_of(instance, run) is Pulse.GONE
    kill(process)
    assert pulse_of(instance, run) is Pulse.GONE


@pytest.mark.parametrize(
    ("status", "becomes"),
    [
        (DagsterRunStatus.NOT_STARTED, DagsterRunStatus.FAILURE),
        (DagsterRunStatus.STARTING, DagsterRunStatus.FAILURE),
        (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED),
    ],
)
def test_a_run_that_was_killed_while_it_began_or_ended_is_ended_too(
    instance: DagsterInstance,
    start: Callable[[], "subprocess.Popen[bytes]"],
    status: DagsterRunStatus,
    becomes: DagsterRunStatus,
) -> None:
    process = start()
    run = run_in(instance, status, recorded=found(process))
    assert end_dead_runs(instance) == []
    kill(process)
    assert [each.run_id for each in end_dead_runs(instance)] == [run.run_id]
    assert again(instance, run).status is becomes


def test_a_dead_run_keeps_no_slot_of_a_pool(
    instance: DagsterInstance, start: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    process = start()
    run = run_in(instance, recorded=found(process))
    storage = instance.event_log_storage
    storage.set_concurrency_slots(POOL, 1)  # as an instance has them whose pools count steps
    assert storage.claim_concurrency_slot(POOL, run.run_id, "nothing").is_claimed
    kill(process)
    end_dead_runs(instance)
    assert not storage.get_concurrency_run_ids()
    assert storage.claim_concurrency_slot(POOL, "another", "nothing").is_claimed


def test_a_run_takes_no_slot_of_its_pool(instance: DagsterInstance) -> None:
    seen = []

    @op(pool=POOL)
    def look() -> None:
        seen.append(instance.event_log_storage.get_concurrency_info(POOL).active_slot_count)

    @job
    def looking() -> None:
        look()

    assert looking.execute_in_process(instance=instance).success
    assert seen == [0]


def test_terminate_ends_a_run_whose_process_is_gone(
    instance: DagsterInstance, start: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    process = start()
    run = run_in(instance, recorded=found(process), **{MAX_RUNTIME_SECONDS_TAG: "9999"})
    kill(process)
    assert instance.run_launcher.terminate(run.run_id)
    assert again(instance, run).status is DagsterRunStatus.CANCELED

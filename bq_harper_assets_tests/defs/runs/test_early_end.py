"""How a run hears that it is to end, also where Dagster's storage or the ledger does not answer."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    OpExecutionContext,
    RunsFilter,
    job,
    op,
)

from bq_harper_assets.activity import doing, now_doing
from bq_harper_assets.defs.runs import early_end, run_watch
from bq_harper_assets.defs.runs.early_end import (
    ENDED_AT_ONCE,
    IN_SHORT,
    execute_stoppably,
    stoppable,
)
from bq_harper_assets.defs.runs.launch import QUIET, project_instance
from bq_harper_assets.errors import Stopped
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.temporary_project import TemporaryProject

RUN_ID = "9f56a1b2-0000-4000-8000-000000000000"


@pytest.fixture
def project(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> TemporaryProject:
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    return TemporaryProject.at(tmp_path / "project", project_root, None)


@pytest.fixture
def instance(project: TemporaryProject) -> Iterator[DagsterInstance]:
    with project_instance(project.root) as opened:
        yield opened


class Storage:
    """Of Dagster, which is away: what is asked of it fails, or is never answered."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer
        self.asked = 0

    def get_run_by_id(self, run_id: str) -> Any:
        self.asked += 1
        return self._answer()


def fails() -> Any:
    raise OSError("the database is away")


@contextmanager
def soon(send: Callable[[], None]) -> Iterator[None]:
    timer = threading.Timer(0.3, send)
    timer.start()
    yield
    timer.join()


def signalled(signum: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), signum)


def test_a_stop_ends_in_time_though_no_storage_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_end, "ENDS_WITHIN_S", 1.0)
    monkeypatch.setattr(early_end, "_ANSWERS_WITHIN_S", 0.5)
    never = threading.Event()
    hangs: Any = Storage(lambda: never.wait(60))
    began = time.monotonic()
    with soon(signalled(signal.SIGTERM)), pytest.raises(Stopped) as stopped:
        execute_stoppably(hangs, RUN_ID, lambda: never.wait(60), lambda: str(never.wait(60)))
    assert time.monotonic() - began < 4
    assert (str(stopped.value), stopped.value.exit_code) == (IN_SHORT, 128 + signal.SIGTERM)
    never.set()


def test_a_stop_without_terminal_storage_and_ledger_has_the_signals_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone:
        def write(self, text: str) -> None:
            raise BrokenPipeError

    stop_seen = threading.Event()

    def work() -> None:
        stop = early_end._STOPS[RUN_ID]
        give_up = time.monotonic() + 60
        while not stop.is_asked:
            assert time.monotonic() < give_up, "the signal was not heard"
            time.sleep(0.01)
        stop_seen.set()

    away: Any = Storage(fails)
    monkeypatch.setattr(sys, "stderr", Gone())
    with soon(signalled(signal.SIGINT)), pytest.raises(Stopped) as stopped:
        execute_stoppably(away, RUN_ID, work, fails)
    assert stop_seen.is_set()
    assert (str(stopped.value), stopped.value.exit_code) == (IN_SHORT, 128 + signal.SIGINT)


def test_a_command_that_a_script_starts_with_and_goes_on_at_ctrl_c() -> None:
    """The shell lets it ignore SIGINT, which is meant for the script."""
    nothing: Any = Storage(lambda: None)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with soon(signalled(signal.SIGINT)):
            worked = execute_stoppably(nothing, RUN_ID, lambda: time.sleep(1) or "done", str)
    finally:
        signal.signal(signal.SIGINT, before)
    assert worked == "done"


def cancel(instance: DagsterInstance) -> None:
    """As Terminate does it of a run whose code server does not hear."""
    [run] = instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.STARTED]))
    instance.report_run_canceling(run)


def test_a_worker_of_the_ui_hears_of_terminate_by_the_status_of_its_run(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.05)
    begun = threading.Event()
    second_steps = []

    def work(stop: Stop) -> None:
        begun.set()
        stop.sleep(120)

    @op
    def first(context: OpExecutionContext) -> None:
        stoppable(context, work)

    @op
    def second(context: OpExecutionContext) -> None:
        stoppable(context, lambda stop: second_steps.append(stop))

    @job
    def two_steps() -> None:
        first()
        second()

    def terminate() -> None:
        assert begun.wait(60)
        cancel(instance)

    with ThreadPoolExecutor(1) as pool:
        clicked = pool.submit(terminate)
        began = time.monotonic()
        ended = two_steps.execute_in_process(QUIET, instance, raise_on_error=False)
        clicked.result()
    assert time.monotonic() - began < 60
    assert second_steps == []
    run = instance.get_run_by_id(ended.run_id)
    assert run
    assert run.status is DagsterRunStatus.CANCELED


def test_while_a_run_is_being_stopped_a_terminal_shows_just_that() -> None:
    shown: list[str] = []
    ended = threading.Event()

    def work() -> None:
        with doing("writing rows of 6 cells"):
            pass
        stop = early_end._STOPS[RUN_ID]
        while not stop.is_asked:
            time.sleep(0.01)
        with doing("committing 6 cells"):
            pass
        shown.append(str(now_doing()))
        ended.set()

    away: Any = Storage(fails)
    with (
        doing("Dagster files its events of 6 partitions"),
        soon(signalled(signal.SIGTERM)),
        pytest.raises(Stopped),
    ):
        execute_stoppably(away, RUN_ID, work, fails)
    assert ended.is_set()
    assert shown == ["stopping"]


def test_a_second_signal_ends_the_process_at_once_and_says_what_is_safe() -> None:
    script = (
        "import os, signal, threading, time\n"
        "from bq_harper_assets.defs.runs.early_end import execute_stoppably\n"
        "class Away:\n"
        "    def get_run_by_id(self, run_id): raise OSError\n"
        "def twice():\n"
        "    for _ in range(2):\n"
        "        time.sleep(1)\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=twice).start()\n"
        "execute_stoppably(Away(), 'run', lambda: time.sleep(60), str)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stderr.splitlines() == [
        "stopping; a second signal ends it at once",
        ENDED_AT_ONCE,
    ]

"""How a run hears that it is to end, also where Dagster's storage or the ledger does not answer."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    Failure,
    OpExecutionContext,
    RunsFilter,
    job,
    op,
)
from dagster_pyspark import LazyPySparkResource

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.checks import deep_proofs, validation_run
from bq_harper_assets.defs.checks.validation_run import Validation, validate_cells
from bq_harper_assets.defs.resources import LedgerResource, RunResources
from bq_harper_assets.defs.runs import early_end, run_watch
from bq_harper_assets.defs.runs.early_end import IN_SHORT, execute_stoppably, stoppable
from bq_harper_assets.defs.runs.launch import QUIET, project_instance
from bq_harper_assets.defs.runs.run_process import PID, RUN, SEEN
from bq_harper_assets.errors import Stopped
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

RUN_ID = "9f56a1b2-0000-4000-8000-000000000000"
SOON_S = 10.0


@pytest.fixture
def project(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> TemporaryProject:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
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


def test_a_run_works_on_while_dagsters_storage_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.01)
    away: Any = Storage(fails)

    def work() -> str:
        give_up = time.monotonic() + 60
        while away.asked < 3:
            assert time.monotonic() < give_up, "the storage is not asked again"
            time.sleep(0.01)
        return "done"

    assert execute_stoppably(away, RUN_ID, work, lambda: "") == "done"


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


def test_a_run_says_that_it_works_also_between_its_steps(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.02)
    monkeypatch.setattr(run_watch, "SEEN_EVERY_S", 0.02)
    tags: list[dict[str, str]] = []

    @op
    def step(context: OpExecutionContext) -> None:
        stoppable(context, lambda stop: None)
        # It writes its results now, which takes minutes for thousands of partitions.
        give_up = time.monotonic() + SOON_S
        while SEEN not in (tags[-1] if tags else ()) and time.monotonic() < give_up:
            run = context.instance.get_run_by_id(context.run.run_id)
            assert run
            tags.append(run.tags)
        context.instance.add_run_tags(context.run.run_id, {SEEN: "0"})
        while tags[-1][SEEN] in ("0", *[each.get(SEEN) for each in tags[:-1]]):
            assert time.monotonic() < give_up
            run = context.instance.get_run_by_id(context.run.run_id)
            assert run
            tags.append(run.tags)

    @job
    def long() -> None:
        step()

    ended = long.execute_in_process(QUIET, instance)
    assert tags[-1][RUN] == ended.run_id
    assert tags[-1][PID] == str(os.getpid())
    assert abs(time.time() - int(tags[-1][SEEN])) < 60
    give_up = time.monotonic() + SOON_S
    while ended.run_id in run_watch._WATCHES:
        assert time.monotonic() < give_up, "it still watches a run that has ended"
        time.sleep(0.02)


@pytest.fixture
def contract(
    project: TemporaryProject, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> TableContract:
    """Whose stores are not asked."""
    for name in ("BIGQUERY_EMULATOR_HOST", "OPERATIONSAPI_URL"):
        monkeypatch.setenv(name, nowhere)
    for name in ("GOOGLE_CLOUD_PROJECT", "OPERATIONSAPI_USER", "OPERATIONSAPI_PASS"):
        monkeypatch.setenv(name, "nobody")
    [declared] = project.declare(
        table(TableRef("p", "d", "orders"), hours_ago(30), slices=1)
    ).tables
    return declared


def test_terminate_ends_a_deep_proof_and_not_only_its_day(
    instance: DagsterInstance,
    project: TemporaryProject,
    contract: TableContract,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.05)
    days = {date(2026, 11, day): [(cell(), hours_ago(2))] for day in (1, 2, 3)}
    proved, looked = [], []

    def prove(context: OpExecutionContext, *args: object, **options: object) -> Validation:
        def work(stop: Stop) -> Validation:
            cancel(instance)
            stop.sleep(120)
            return Validation()

        proved.append(context.run.run_id)
        return stoppable(context, work)

    monkeypatch.setattr(deep_proofs, "closed_cells_by_day", lambda *args: days)
    monkeypatch.setattr(deep_proofs, "whose_turn", lambda *args: list(days))
    monkeypatch.setattr(deep_proofs, "validate_cells", prove)
    monkeypatch.setattr(deep_proofs, "look_for_lost_rows", lambda *args: looked.append(args))
    definitions = build_definitions(project.root)
    proof = definitions.resolve_job_def(f"deep_proof_{contract.id}")
    ended = proof.execute_in_process(QUIET, instance, raise_on_error=False)
    assert proved == [ended.run_id]
    assert looked == []
    run = instance.get_run_by_id(ended.run_id)
    assert run
    assert run.status is DagsterRunStatus.CANCELED


def cell() -> Cell:
    start = hours_ago(5)
    return Cell(Window(start, start + HOUR), 0)


def test_no_check_begins_after_terminate(
    instance: DagsterInstance,
    project: TemporaryProject,
    contract: TableContract,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.05)
    checked, told = [], []

    def check(name: str, *args: object) -> None:
        checked.append(name)
        cancel(instance)
        time.sleep(2)  # which looks every moment whether it is to end

    monkeypatch.setattr(validation_run, "check_named", check)
    of_project = build_definitions(project.root).resources

    @op
    def validate(
        context: OpExecutionContext,
        bigquery: BigQueryConnectionResource,
        harper: HarperResource,
        ledger: LedgerResource,
        spark: LazyPySparkResource,
    ) -> None:
        try:
            resources = RunResources(bigquery, harper, ledger, spark)
            validate_cells(context, contract, [cell()], resources)
        except Failure as failure:
            told.append(failure.description)
            raise

    @job
    def validate_it() -> None:
        validate()

    validate_it.execute_in_process(QUIET, instance, raise_on_error=False, resources=of_project)
    assert checked == ["progress"]
    assert told == ["the run was stopped, and what comes next was not begun"]

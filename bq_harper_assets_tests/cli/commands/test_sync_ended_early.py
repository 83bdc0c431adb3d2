"""`bqh sync` in a process of its own, ended early: by a signal, by two, by Terminate in the UI."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from dagster import DagsterRun, DagsterRunStatus

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import range_tags
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.questions.status import LeaseRecord
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.defs.bqh_apart import bqh_apart
from bq_harper_assets_tests.defs.shown import loadable
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
BEGINS_WITHIN_S = 240.0  # Python, Dagster and Spark on a machine that has other things to do
ENDS_WITHIN_S = 15.0  # what users are promised
AT_ONCE_S = 4.0
LEASE_S = 20.0


@dataclass
class Typed:
    """A command that goes on beside the test."""

    process: "subprocess.Popen[bytes]"
    log: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        limit = time.monotonic() + BEGINS_WITHIN_S
        while not is_so():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < limit, self.said
            time.sleep(0.05)

    def ended_with(self, within_s: float = ENDS_WITHIN_S) -> int:
        """Its exit code, if it ends as soon as it must."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {within_s} s: {self.said}")


@contextmanager
def typed_beside(*arguments: str, log: Path, program: str = "bqh") -> Iterator[Typed]:
    """Killed at the end of the block, should it still run."""
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield Typed(process, log)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def declared(project: TemporaryProject, tables: SmallTables) -> Project:
    start = hours_ago(5)
    return project.declare(table(tables.make_from(numbered_rows(start)), start, slices=1))


@pytest.fixture
def never(proxy: FaultProxy, declared: Project) -> threading.Event:
    """Harper takes no row before it is set."""
    event = threading.Event()
    [contract] = declared.tables
    proxy.on(Delay(event), operation="upsert", table=contract.target_table, times=99)
    return event


def is_writing(proxy: FaultProxy, contract: TableContract) -> bool:
    return bool(proxy.seen(operation="upsert", table=contract.target_table))


def run_of(declared: Project) -> DagsterRun:
    with project_instance(declared.root) as instance:
        [run] = instance.get_runs()
        return run


def live_leases(declared: Project) -> list[LeaseRecord]:
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.find_table(declared.tables[0].id)
        assert known
        return [lease for lease in ledger.leases(known) if lease.is_live]


def test_a_signal_in_the_middle_of_a_write_ends_the_run_uncommitted(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    [contract] = declared.tables
    with typed_beside("sync", contract.id, log=tmp_path / "said") as typed:
        typed.wait_until(lambda: is_writing(proxy, contract))
        typed.process.send_signal(signal.SIGTERM)
        assert typed.ended_with() == 128 + signal.SIGTERM, typed.said
    [lease] = live_leases(declared)  # a row may still arrive: nobody else may begin
    assert lease.expires_at
    run = run_of(declared)
    assert lease.owner == run.run_id
    assert run.status is DagsterRunStatus.CANCELED
    found = re.search(r"stopped: 0 of (\d) cells", typed.said)
    assert found, typed.said
    assert typed.said.endswith(
        f"stopped: 0 of {found[1]} cells of {contract.id} are committed; the others are not, and"
        " are written again by the next run, which has to wait until"
        f" {lease.expires_at:%H:%M:%S} UTC for the lease. Next: bqh sync {contract.id}\n"
    )
    # Neither Java nor Spark says a word between the product's own.
    for line in typed.said.splitlines():
        assert line.startswith(
            (f"syncing {contract.id}: 0 of", "stopping; a second", "stopped: ", "waits for ")
        )
    spark_log = local_folder(declared.root) / "spark.log"
    assert spark_log.stat().st_mode & 0o777 == 0o600


def test_a_java_process_that_dies_is_replaced_at_once_and_the_run_comes_to_its_end(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    [contract] = declared.tables
    with bqh_apart(tmp_path / "said", "sync", contract.id, lease_s=LEASE_S) as process:
        typed = Typed(process, tmp_path / "said")
        typed.wait_until(lambda: is_writing(proxy, contract))
        [java] = _java_of(typed)
        java.kill()
        typed.wait_until(lambda: "tries again in 0 s, 1 of 3: Spark's Java" in _log_of(declared))
        # The lease of the first try is left to expire; the second has a new Spark.
        typed.wait_until(lambda: any(each.pid != java.pid for each in _java_of(typed)))
        proxy.heal()
        never.set()
        assert typed.ended_with(BEGINS_WITHIN_S) == 0, typed.said
    told = f"Spark's Java process is gone while it worked on {contract.id}, "
    assert told in _log_of(declared)
    assert "Connection refused" not in typed.said
    assert "Traceback" not in typed.said
    assert run_of(declared).status is DagsterRunStatus.SUCCESS


def test_terminate_in_the_ui_ends_a_run_of_its_own_worker(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    """A worker of the UI runs the job in its main thread, and is sent an interrupt."""
    [contract] = declared.tables
    start = hours_ago(5)
    cells = [Cell(Window(start, start + HOUR), 0)]
    with project_instance(declared.root):
        pass  # its home is made, with the project's settings
    arguments = ("job", "execute", "-f", str(loadable(declared.root)))
    arguments += ("-j", f"sync_{contract.id}", "--tags", json.dumps(range_tags(cells)))
    with typed_beside(*arguments, log=tmp_path / "said", program="dagster") as typed:
        typed.wait_until(lambda: is_writing(proxy, contract))
        with project_instance(declared.root) as instance:
            [run] = instance.get_runs()
            instance.report_run_canceling(run)
        typed.process.send_signal(signal.SIGINT)
        typed.ended_with()
    assert run_of(declared).status is DagsterRunStatus.CANCELED
    assert f"stopped: 0 of 1 cells of {contract.id} are committed" in typed.said
    assert "UP_FOR_RETRY" not in typed.said
    assert [lease.owner for lease in live_leases(declared)] == [run.run_id]


def test_a_second_signal_ends_the_process_at_once_and_the_next_sync_recovers(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    [contract] = declared.tables
    log = tmp_path / "said"
    with bqh_apart(log, "sync", contract.id, lease_s=LEASE_S) as process:
        typed = Typed(process, log)
        typed.wait_until(lambda: is_writing(proxy, contract))
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(signal.SIGINT)
        typed.wait_until(lambda: "stopping; a second signal ends it at once" in typed.said)
        process.send_signal(signal.SIGINT)
        # The first signal alone would take ten seconds: Harper does not answer.
        assert typed.ended_with(AT_ONCE_S) == 128 + signal.SIGINT, typed.said
    _, left = psutil.wait_procs(children, timeout=ENDS_WITHIN_S)
    assert left == []
    assert live_leases(declared)
    proxy.heal()
    never.set()
    with bqh_apart(tmp_path / "next", "sync", contract.id, lease_s=LEASE_S) as process:
        again = Typed(process, tmp_path / "next")
        assert again.ended_with(BEGINS_WITHIN_S) == 0, again.said
    assert re.search(r"^run \w{8} .*are taken up again", again.said, re.MULTILINE), again.said


def test_a_run_that_waits_for_a_lease_is_ended_by_ctrl_c_and_has_changed_nothing(
    declared: Project, tmp_path: Path
) -> None:
    [contract] = declared.tables
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.register_table(table_facts(contract, declared.bigquery))
        ledger.acquire(known, [0], "another-run", timedelta(minutes=10))
    with typed_beside("sync", contract.id, log=tmp_path / "said") as typed:
        typed.wait_until(lambda: "waits" in _log_of(declared))
        os.kill(typed.process.pid, signal.SIGINT)
        assert typed.ended_with() == 128 + signal.SIGINT, typed.said
    assert "are written again by the next run. Next: bqh sync" in typed.said
    assert run_of(declared).status is DagsterRunStatus.CANCELED
    assert [lease.owner for lease in live_leases(declared)] == ["another-run"]


def test_terminate_in_the_ui_ends_a_run_that_a_terminal_started_on_a_cluster(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    profile = declared.root / "config" / "profiles" / "local.yaml"
    text = profile.read_text(encoding="utf-8")
    # Executors are processes of their own, as on other machines.
    profile.write_text(text.replace("local[*]", "local-cluster[1,1,1024]"), encoding="utf-8")
    [contract] = declared.tables
    with typed_beside("sync", contract.id, log=tmp_path / "said") as typed:
        typed.wait_until(lambda: is_writing(proxy, contract))
        with project_instance(declared.root) as instance:
            [run] = instance.get_runs()
            assert instance.run_coordinator.cancel_run(run.run_id)  # as the button does
        assert typed.ended_with() == 128 + signal.SIGTERM, typed.said
    assert "stopped: 0 of" in typed.said
    assert run_of(declared).status is DagsterRunStatus.CANCELED


def _log_of(declared: Project) -> str:
    with project_instance(declared.root) as instance:
        logs = [instance.all_logs(run.run_id) for run in instance.get_runs()]
        return "\n".join(entry.user_message for entries in logs for entry in entries)


def _java_of(typed: Typed) -> list[psutil.Process]:
    children = psutil.Process(typed.process.pid).children()
    return [child for child in children if child.name() == "java"]

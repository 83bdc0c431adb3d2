"""`bqh` in a process of its own, at work on a table of which Harper takes no row."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from dagster import DagsterRun

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.questions.status import LeaseRecord
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

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
    proxy.on(Delay(event), operation="upsert", table=contract.target.table, times=99)
    return event


def is_writing(proxy: FaultProxy, contract: TableContract) -> bool:
    return bool(proxy.seen(operation="upsert", table=contract.target.table))


def run_of(declared: Project) -> DagsterRun:
    with project_instance(declared.root) as instance:
        [run] = instance.get_runs()
        return run


def live_leases(declared: Project) -> list[LeaseRecord]:
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.find_route(declared.tables[0].id)
        assert known
        return [lease for lease in ledger.leases(known) if lease.is_live]


def log_of(declared: Project) -> str:
    with project_instance(declared.root) as instance:
        logs = [instance.all_logs(run.run_id) for run in instance.get_runs()]
        return "\n".join(entry.user_message for entries in logs for entry in entries)

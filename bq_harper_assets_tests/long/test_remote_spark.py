"""`bqh sync` on a Spark of other processes: ended by one signal, and with copies of slow tasks."""

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster import DagsterRunStatus

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.questions.status import BatchRecord, LeaseRecord
from bq_harper_assets.ledger.records import BatchState
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.conftest import PROJECT_ROOT
from bq_harper_assets_tests.defs.bqh_apart import bqh_apart
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy, Seen
from bq_harper_assets_tests.long.standalone_spark import (
    HOSTS,
    StandaloneSpark,
    executors_of,
    standalone_spark,
)
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
ROWS, MINUTES = 60, 2
WIDTH = 40_000  # characters of each row: BigQuery reads less than a megabyte in one stream
TASKS = len(HOSTS)
ROWS_PER_REQUEST = 5
LEASE_S = 20.0
WITHIN_S = 600.0  # Python, Dagster and Spark on a machine that has other things to do
ENDS_WITHIN_S = 15.0  # what users are promised
NOTHING_LEFT_WITHIN_S = 15.0  # of a run that has ended, on the cluster
# A task is slow as soon as the other one has ended.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A project whose Spark is a cluster, and whose requests to Harper can be held up."""

    project: TemporaryProject
    tables: SmallTables
    cluster: StandaloneSpark
    proxy: FaultProxy
    harper: HarperClient
    folder: Path

    def declare(self, **settings: str) -> tuple[Project, TableRef]:
        """One table of closed windows, with two tasks and these settings of Spark."""
        profile = self.project.root / "config" / "profiles" / "local.yaml"
        known = yaml.safe_load(profile.read_text(encoding="utf-8"))
        known["spark"]["master"] = self.cluster.master
        known["spark"]["settings"] |= settings
        known["harper"] = {"requestsInFlight": TASKS}
        profile.write_text(yaml.safe_dump(known), encoding="utf-8")
        start = hours_ago(5)
        source = self.tables.make_from(
            f"SELECT TIMESTAMP_ADD(TIMESTAMP '{start:%F %T}+00', INTERVAL n * {MINUTES} MINUTE)"
            " AS ts, n AS number, 'first' AS name,"
            f" REPEAT('x', {WIDTH}) AS cargo FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
        )
        sync = {"startTimestamp": f"{start:%FT%TZ}", "initialBatchSize": ROWS_PER_REQUEST}
        self.project.declare(table(source, start, key=["number"], slices=1, sync=sync))
        return load_project(self.project.root), source

    def upserts(self, contract: TableContract) -> list[Seen]:
        """The requests that wrote rows of the table, so far."""
        return self.proxy.seen(operation="upsert", table=contract.target.table)

    def contents(self, contract: TableContract) -> set[bytes]:
        """Of those requests that have come in whole; one that is sent again counts once."""
        return {each.body for each in self.upserts(contract) if each.records}

    def held(self, contract: TableContract) -> list[tuple[int, str]]:
        """Number and name of every row that Harper has."""
        found = self.harper.search_by_value(
            contract.target.table, contract.timestamp_column, "*", ("number", "name")
        )
        return sorted((row["number"], row["name"]) for row in found)

    def wanted(self, source: TableRef) -> list[tuple[int, str]]:
        """The same of BigQuery."""
        rows = self.tables.queries.run(f"SELECT * FROM {source.sql}", doing="reading").rows
        return sorted((row["number"], row["name"]) for row in rows)

    @contextmanager
    def syncing(self, contract: TableContract, log: str) -> "Iterator[Syncing]":
        """The command that a user types, beside the test."""
        place = self.folder / log
        with bqh_apart(place, "sync", contract.id, lease_s=LEASE_S) as process:
            yield Syncing(process, place)


@dataclass(frozen=True)
class Syncing:
    """A `bqh sync` at work."""

    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        def is_so_while_it_works() -> bool:
            assert self.process.poll() is None, self.said
            return is_so()

        soon(is_so_while_it_works, lambda: self.said)

    def ended_with(self, within_s: float = WITHIN_S) -> int:
        """Its exit code, if it ends as soon as it must."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {within_s} s: {self.said}")


def soon(
    is_so: Callable[[], bool], otherwise: Callable[[], object], within_s: float = WITHIN_S
) -> None:
    give_up = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < give_up, otherwise()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(
    project_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneSpark]:
    with standalone_spark(project_root, tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture
def remote(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    cluster: StandaloneSpark,
    harper_connection: HarperConnection,
    bigquery_connection: BigQueryConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Remote]:
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT_ROOT))
    with FaultProxy(stack.harper_url) as proxy, HarperClient(harper_connection) as harper:
        addresses = stack.model_copy(update={"harper_url": proxy.url})
        project = TemporaryProject.at(tmp_path / "project", project_root, addresses)
        tables = SmallTables.at(bigquery_connection)
        yield Remote(
            project=project,
            tables=tables,
            cluster=cluster,
            proxy=proxy,
            harper=harper,
            folder=tmp_path,
        )


def batches(declared: Project, run_id: str | None = None) -> list[BatchRecord]:
    """Those of the table that were committed."""
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.find_route(declared.tables[0].id)
        assert known
        return [
            batch
            for batch in ledger.history(known)
            if batch.state is BatchState.APPLIED and run_id in (None, batch.run_id)
        ]


def total(records: list[BatchRecord], name: str) -> int:
    return sum(getattr(batch, name) for batch in records)


def lease_of(declared: Project) -> LeaseRecord:
    """Of the only slice; one that was given back has no owner, one left to expire keeps it."""
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.find_route(declared.tables[0].id)
        assert known
        [lease] = ledger.leases(known)
        return lease


def runs(declared: Project) -> dict[str, DagsterRunStatus]:
    """The status of each run by its id, newest first."""
    with project_instance(declared.root) as instance:
        return {run.run_id: run.status for run in instance.get_runs()}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_one_signal_ends_a_run_whose_tasks_are_on_other_machines(
    remote: Remote, signum: signal.Signals
) -> None:
    declared, source = remote.declare()
    [contract] = declared.tables
    cluster = remote.cluster
    later = threading.Event()
    remote.proxy.on(Delay(later), operation="upsert", table=contract.target.table, times=99)
    with remote.syncing(contract, "stopped") as stopped:
        # Both tasks have sent rows, each of its own, and Harper does not answer.
        stopped.wait_until(lambda: len(remote.contents(contract)) == TASKS)
        [app] = cluster.state()["activeapps"]
        assert app["cores"] == TASKS
        assert all(executors_of(worker) for worker in cluster.workers)
        began = time.monotonic()
        stopped.process.send_signal(signum)
        assert stopped.ended_with(ENDS_WITHIN_S) == 128 + signum, stopped.said
        print(f"ended {time.monotonic() - began:.1f} s after {signum.name}")
    [run_id] = runs(declared)
    assert runs(declared)[run_id] is DagsterRunStatus.CANCELED
    lease = lease_of(declared)
    assert lease.owner == run_id  # what was sent may still take effect: nobody else may begin
    assert lease.expires_at
    found = re.search(r"stopped: 0 of (\d+) cells", stopped.said)
    assert found, stopped.said
    assert stopped.said.endswith(
        f"stopped: 0 of {found[1]} cells of {contract.id} are committed; the others are not, and"
        " are written again by the next run, which has to wait until"
        f" {lease.expires_at:%H:%M:%S} UTC for the lease. Next: bqh sync {contract.id}\n"
    )
    soon(
        lambda: not cluster.state()["activeapps"] and not cluster.executors(),
        lambda: f"left on the cluster: {cluster.executors()}, {cluster.state()}",
        NOTHING_LEFT_WITHIN_S,
    )
    # What was sent takes effect late; a task that lived on would be answered, and send the next.
    dead = remote.upserts(contract)
    assert len(dead) == TASKS, dead
    remote.tables.run(f"UPDATE {source.sql} SET name = 'second' WHERE MOD(number, 3) = 0")
    later.set()
    soon(lambda: all(each.forwarded for each in dead), lambda: dead)
    remote.proxy.heal()
    with remote.syncing(contract, "next") as after:
        assert after.ended_with() == 0, after.said
    assert remote.held(contract) == remote.wanted(source)
    assert len(remote.held(contract)) == ROWS
    # Each row that reached Harper since then is one that the next run has counted.
    [next_id] = runs(declared).keys() - {run_id}
    assert {batch.run_id for batch in batches(declared)} == {next_id}
    sent = remote.upserts(contract)[len(dead) :]
    print(f"the next run sent {len(sent)} requests")
    assert sum(each.records or 0 for each in sent) == total(batches(declared), "rows_written")
    soon(lambda: not cluster.executors(), cluster.executors, NOTHING_LEFT_WITHIN_S)


@pytest.mark.promise("O6")
def test_a_task_that_spark_runs_twice_at_once_writes_and_counts_each_row_once(
    remote: Remote,
) -> None:
    events = remote.folder / "events"
    events.mkdir()
    declared, source = remote.declare(**SPECULATION, **logged_to(events))
    [contract] = declared.tables
    slow_try(remote, declared, "first")
    [first] = runs(declared)
    assert speculative_starts(events)
    assert counted(declared, first) == {"read": ROWS, "written": ROWS, "deleted": 0}
    assert remote.held(contract) == remote.wanted(source)
    assert len(remote.held(contract)) == ROWS

    remote.tables.run(f"DELETE FROM {source.sql} WHERE MOD(number, 10) = 1")
    remote.tables.run(f"UPDATE {source.sql} SET name = 'second' WHERE MOD(number, 10) IN (2, 5)")
    before = len(speculative_starts(events))
    slow_try(remote, declared, "second")  # it waits for the lease of the first
    [second] = runs(declared).keys() - {first}
    assert len(speculative_starts(events)) > before
    tenth = ROWS // 10
    assert counted(declared, second) == {
        "read": ROWS - tenth,
        "written": 2 * tenth,
        "deleted": tenth,
    }
    assert remote.held(contract) == remote.wanted(source)
    assert len(remote.held(contract)) == ROWS - tenth


def slow_try(remote: Remote, declared: Project, log: str) -> None:
    """A sync of which Harper holds up one request until the run has ended without its answer."""
    [contract] = declared.tables
    later = threading.Event()
    remote.proxy.on(Delay(later), operation="upsert", table=contract.target.table)
    earlier = len(remote.upserts(contract))
    with remote.syncing(contract, log) as syncing:
        assert syncing.ended_with() == 0, syncing.said
    sent = remote.upserts(contract)[earlier:]
    [held] = [each for each in sent if each.fault]
    assert not held.forwarded
    # The copy has sent the rows of that request too, and the ledger counts them once.
    newest = next(iter(runs(declared)))
    records = sum(each.records or 0 for each in sent)
    assert held.records
    assert records == counted(declared, newest)["written"] + held.records
    # The try that was killed may still take effect. Two rules see to it: Spark's setting, and that
    # the receipt is not of the task's first try.
    assert lease_of(declared).owner == newest
    later.set()
    soon(lambda: held.status is not None, lambda: held)


def counted(declared: Project, run_id: str) -> dict[str, int]:
    """The rows that the ledger says that a run has read, written and deleted."""
    records = batches(declared, run_id)
    return {name: total(records, f"rows_{name}") for name in ("read", "written", "deleted")}


def logged_to(folder: Path) -> dict[str, str]:
    """Settings by which Spark writes down what it does, as lines of JSON."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def speculative_starts(folder: Path) -> list[dict[str, Any]]:
    """The second copies of tasks that Spark has begun, each on another host than the first."""
    found = []
    for file in folder.iterdir():
        if file.name.startswith("."):
            continue  # a checksum
        lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        starts = [each for each in lines if each["Event"] == "SparkListenerTaskStart"]
        firsts = {_place(each): each for each in starts if not each["Task Info"]["Speculative"]}
        for each in starts:
            if each["Task Info"]["Speculative"]:
                assert each["Task Info"]["Host"] != firsts[_place(each)]["Task Info"]["Host"]
                found.append(each)
    return found


def _place(start: dict[str, Any]) -> tuple[int, int, int]:
    return start["Stage ID"], start["Stage Attempt ID"], start["Task Info"]["Index"]

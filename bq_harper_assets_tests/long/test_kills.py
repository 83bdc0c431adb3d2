"""kill -9 at random moments: nobody lends a hand, and every row arrives.

What follows a kill is only what a user types (`bqh sync`, `bqh ui`) or has switched on (a sensor).
"""

import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from dagster import DagsterInstance, RunsFilter

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.runs.dead_runs import WITH_A_PROCESS
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.defs.runs.run_process import PID
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.local import processes
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.conftest import PROJECT_ROOT
from bq_harper_assets_tests.defs.bqh_apart import bqh_apart
from bq_harper_assets_tests.defs.dagster_dev import DagsterDev, dagster_dev
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy, Stall
from bq_harper_assets_tests.long.conftest import HowLong
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
SEED = 13
ROWS, WINDOWS = 120, 6
LEASE_S = 20.0
WITHIN_S = 600.0  # of a machine that does other things too
ORPHANS_END_WITHIN_S = 60.0
SAYS_WITHIN_S = 5.0  # after its first line, what it waits for; a core that is not free is no delay
WRITES_WITHIN_S = 240.0  # after the kill
TURN_ON = """
mutation ($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) {
  ... on Sensor { sensorState { status } }
  ... on PythonError { message }
} }
"""


def soon(ask: Callable[[], Any], what: str, within_s: float = WITHIN_S) -> Any:
    """The first answer that is true."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        if found := ask():
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {within_s:g} s")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A project whose writes are slow enough to be hit in their midst."""

    project: TemporaryProject
    tables: SmallTables
    instance: DagsterInstance
    harper: HarperClient
    proxy: FaultProxy  # before Harper
    folder: Path
    chance: random.Random

    def declare(self, count: int) -> list[TableContract]:
        """So many tables, each with all its rows in windows that have closed."""
        start = hours_ago(WINDOWS + 1)
        rows = numbered_rows(start, rows=ROWS, minutes=WINDOWS * 60 // ROWS)
        sync = {"startTimestamp": f"{start:%FT%TZ}", "initialBatchSize": 5, "pollInterval": 5000}
        sources = [self.tables.make_from(rows) for _ in range(count)]
        declared = [table(each, start, live=False, sync=sync) for each in sources]
        return list(self.project.declare(*declared).tables)

    def planned(self, contract: TableContract) -> int:
        """How many cells a run has planned and not ended."""
        with open_ledger(load_project(self.project.root).ledger.url) as ledger:
            known = ledger.find_route(contract.id)
            left = ledger.left_over(known) if known else ()
            return sum(len(each.cells) for each in left)

    def rows(self, contract: TableContract) -> list[int]:
        """Those that Harper holds."""
        if self.harper.describe_table(contract.target.table) is None:
            return []
        time_column = contract.timestamp_column
        found = self.harper.search_by_value(contract.target.table, time_column, "*", ("number",))
        return sorted(row["number"] for row in found)

    def assert_recovered(self, contract: TableContract, killed_at: float) -> None:
        """All rows are there, each once, and nothing of a dead run is left.

        A sensor may have asked for other runs since: when an hour closes, each table has a window.
        """
        assert self.rows(contract) == list(range(ROWS))
        active = self.instance.get_run_records(RunsFilter(statuses=list(WITH_A_PROCESS)))
        left = [each for each in active if each.create_timestamp.timestamp() < killed_at]
        assert [(each.dagster_run.run_id, each.dagster_run.status) for each in left] == []
        assert not self.instance.event_log_storage.get_concurrency_run_ids()


@pytest.fixture
def scene(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    harper_connection: HarperConnection,
    bigquery_connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Scene]:
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT_ROOT))
    with FaultProxy(stack.harper_url) as proxy, HarperClient(harper_connection) as harper:
        proxy.on(Delay(0.3), operation="upsert", times=1_000_000)
        addresses = stack.model_copy(update={"harper_url": proxy.url})
        project = TemporaryProject.at(tmp_path / "project", project_root, addresses)
        tables = SmallTables.at(bigquery_connection)
        with project_instance(project.root) as instance:
            yield Scene(
                project=project,
                tables=tables,
                instance=instance,
                harper=harper,
                proxy=proxy,
                folder=tmp_path,
                chance=random.Random(SEED),
            )


def descendant(process: "subprocess.Popen[bytes]", word: str) -> int | None:
    """One that the process has started, itself or by others, and whose command has the word."""
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if word in " ".join(child.cmdline()):
                    return child.pid
    return None


VICTIMS = {
    "driver": lambda process: process.pid,
    "worker": lambda process: descendant(process, "pyspark.daemon"),
    "JVM": lambda process: descendant(process, "org.apache.spark"),
}


def test_a_sync_that_is_typed_again_recovers_from_every_kill(
    scene: Scene, how_long: HowLong
) -> None:
    kills = how_long.choose(short=["driver"], full=list(VICTIMS) * 4)
    unharmed, *contracts = scene.declare(len(kills) + 1)
    log = scene.folder / "typed.log"

    def sync(contract: TableContract) -> float:
        began = time.monotonic()
        with bqh_apart(log, "sync", contract.id, lease_s=LEASE_S) as typed:
            code = typed.wait(WITHIN_S)
        assert code == 0, log.read_text(encoding="utf-8")
        return time.monotonic() - began

    lasts = sync(unharmed)
    for victim, contract in zip(kills, contracts, strict=True):
        with bqh_apart(scene.folder / "killed.log", "sync", contract.id, lease_s=LEASE_S) as typed:
            pid = soon(lambda: VICTIMS[victim](typed), victim)  # noqa: B023
            moment = scene.chance.uniform(0, lasts)
            time.sleep(moment)
            with suppress(ProcessLookupError):  # the run was quicker this time
                os.kill(pid, 9)
            killed = time.monotonic()
            code = typed.wait(WITHIN_S)
        left = scene.planned(contract)
        print(f"{victim} killed {moment:.1f} s after its start: {code}, {left} cells planned")
        took = sync(contract)
        said = log.read_text(encoding="utf-8")
        recovered = time.monotonic() - killed
        print(f"  recovered after {recovered:.1f} s; the next sync took {took:.1f} s: {said}")
        if victim == "driver" and left:
            died = r"^run \w{8} \(process \d+ on .+\) died at \d\d:\d\d UTC; its "
            assert re.search(f"{died}{left} cells are taken up again", said, re.MULTILINE), said
        scene.assert_recovered(contract, killed_at=time.time())


def waited_for_a_core(process: "subprocess.Popen[bytes]") -> float:
    """The seconds in which its main thread could have run, and others were using all cores."""
    told = Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii")
    return int(told.split()[1]) / 1e9


def test_after_a_kill_the_next_sync_says_at_once_what_it_waits_for_and_writes_within_four_minutes(
    scene: Scene, how_long: HowLong
) -> None:
    if how_long.is_short:
        pytest.skip("it waits for a lease as long as a user's, three minutes: only in full")
    [contract] = scene.declare(1)
    target = contract.target.table
    # Nothing of the killed run arrives, so that the first row is the next one's.
    scene.proxy.heal()
    scene.proxy.on(Stall(), operation="upsert", table=target, times=1_000_000)
    with bqh_apart(scene.folder / "killed.log", "sync", contract.id, lease_s=None) as typed:
        soon(lambda: scene.proxy.seen(operation="upsert", table=target), "a write")
        children = psutil.Process(typed.pid).children(recursive=True)
        typed.kill()
        killed, killed_at = time.monotonic(), time.time()
        typed.wait()
    assert psutil.wait_procs(children, ORPHANS_END_WITHIN_S)[1] == []
    scene.proxy.heal()
    left = scene.planned(contract)
    assert left

    log = scene.folder / "typed.log"
    with bqh_apart(log, "sync", contract.id, lease_s=None) as typed:
        soon(lambda: log.stat().st_size, "the first line of the next sync")
        began, queued_s = time.monotonic(), waited_for_a_core(typed)
        # Who holds the lease, since when it is dead, and until when it is waited for.
        died = r"^run \w{8} \(process \d+ on .+\) died at \d\d:\d\d UTC; its "
        holder = rf"{died}{left} cells are taken up again, once its lease has expired at "
        found = soon(
            lambda: re.search(rf"{holder}(\d\d:\d\d:\d\d) UTC$", log.read_text("utf-8"), re.M),
            "the run that was killed, and its lease",
            WRITES_WITHIN_S,
        )
        said_s = time.monotonic() - began
        queued_s = waited_for_a_core(typed) - queued_s
        print(f"said {said_s:.1f} s after the first line, {queued_s:.1f} s queued: {found[0]}")
        assert said_s - queued_s < SAYS_WITHIN_S
        assert scene.rows(contract) == []
        left_s = WRITES_WITHIN_S - (time.monotonic() - killed)
        soon(lambda: scene.rows(contract), "a row of the next sync", left_s)
        print(f"wrote {time.monotonic() - killed:.1f} s after the kill")
        code = typed.wait(WITHIN_S)
    said = log.read_text(encoding="utf-8")
    assert code == 0, said
    waits = rf"^waits for the lease of {contract.id}, held by run \S+ on .+, which must renew it or"
    assert re.search(rf"{waits} lose it at {found[1]} UTC, since ", said, re.MULTILINE), said
    scene.assert_recovered(contract, killed_at)


def running(scene: Scene, contract: TableContract) -> int | None:
    """The process of the table's run; None if none is at work."""
    for run in scene.instance.get_runs(RunsFilter(job_name=f"sync_{contract.id}")):
        if PID in run.tags and not run.is_finished:
            return int(run.tags[PID])
    return None


def server(dev: DagsterDev, word: str) -> int:
    """One of Dagster's own servers."""
    [found] = [
        child.pid
        for child in psutil.Process(dev.pid).children()
        if word in " ".join(child.cmdline())
    ]
    return found


def test_a_sensor_recovers_from_every_kill(scene: Scene, how_long: HowLong) -> None:
    victims = ["run", "dagster dev", "daemon", "run"]
    kills = how_long.choose(short=["run"], full=victims * 2)
    contracts = scene.declare(len(kills))
    first = f"from {hurry_module()} import hurry; hurry({LEASE_S})"
    home = Path(os.environ["DAGSTER_HOME"])
    with ExitStack() as devs:

        def type_ui(number: int) -> DagsterDev:
            log = scene.folder / f"ui-{number}.log"
            return devs.enter_context(dagster_dev(scene.project.root, home, log, first))

        dev = type_ui(0)
        for number, (victim, contract) in enumerate(zip(kills, contracts, strict=True), 1):
            name = f"revisit_{contract.id}"
            turned_on = dev.ask(TURN_ON, sensor=dev.selector(sensorName=name))
            assert turned_on["sensorState"]["status"] == "RUNNING"
            pid = soon(lambda: running(scene, contract), "a run of the sensor")  # noqa: B023
            moment = scene.chance.uniform(0, 20)
            time.sleep(moment)
            killed_at = time.time()
            if victim == "run":
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
            else:
                os.kill(dev.pid if victim == "dagster dev" else server(dev, "dagster._daemon"), 9)
                # Without its daemon Dagster ends by itself, and the user has the prompt again.
                soon(lambda: processes.find_process(dev.pid) is None, "the end of Dagster")  # noqa: B023
                dev = type_ui(number)
            print(f"{victim} killed {moment:.1f} s after the run's start")
            began = time.monotonic()
            all_rows = list(range(ROWS))
            soon(lambda: scene.rows(contract) == all_rows, "all rows")  # noqa: B023
            soon(lambda: running(scene, contract) is None, "the end of the run")  # noqa: B023
            print(f"  recovered within {time.monotonic() - began:.1f} s")
            scene.assert_recovered(contract, killed_at)


def hurry_module() -> str:
    """Which Dagster's code server imports, so that a test need not wait for minutes."""
    return bqh_apart.__module__

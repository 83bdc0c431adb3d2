"""After kill -9 of a run nobody lends a hand: the next run says what it found, and goes on."""

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus, job, op

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.defs.runs.dead_runs import clear_the_way
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.typed import typed
from bq_harper_assets_tests.defs.bqh_apart import bqh_apart
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

LEASE_S = 20.0
SOON_S = 180.0


@pytest.fixture
def proxy(stack: StackAddresses) -> Iterator[FaultProxy]:
    with FaultProxy(stack.harper_url) as running:
        yield running


@pytest.fixture
def project(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> TemporaryProject:
    """Whose requests to Harper can be held up, so that a run is in their midst for certain."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    addresses = stack.model_copy(update={"harper_url": proxy.url})
    return TemporaryProject.at(tmp_path / "project", project_root, addresses)


def wait_for(ask: Callable[[], bool], process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.monotonic() + SOON_S
    while not ask():
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < give_up, log.read_text(encoding="utf-8")
        time.sleep(0.1)


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_sync_goes_on_where_one_was_killed_and_says_so(
    project: TemporaryProject,
    proxy: FaultProxy,
    tables: SmallTables,
    harper_connection: HarperConnection,
    tmp_path: Path,
) -> None:
    start = hours_ago(4)
    [ships] = project.declare(
        table(tables.make_from(numbered_rows(start)), start, live=False)
    ).tables
    span = ("--from", f"{start:%FT%H:%M}", "--to", f"{start + 2 * HOUR:%FT%H:%M}")
    log, go_on = tmp_path / "killed.log", threading.Event()
    proxy.on(Delay(go_on), operation="upsert", table=ships.target_table, times=99)
    with bqh_apart(log, "sync", ships.id, *span, lease_s=LEASE_S) as killed:
        writes = lambda: bool(proxy.seen(operation="upsert", table=ships.target_table))  # noqa: E731
        wait_for(writes, killed, log)
        killed.kill()
        killed.wait()
    proxy.heal()
    go_on.set()

    with (
        project_instance(project.root) as instance,
        HarperClient(harper_connection) as harper,
    ):
        [dead] = instance.get_runs()
        assert dead.status is DagsterRunStatus.STARTED
        ended = typed("sync", ships.id, *span)
        assert ended.exit_code == 0, (ended.output, ended.exception)
        found = re.search(
            rf"^run {dead.run_id[:8]} \(process {killed.pid} on .+\) died at \d\d:\d\d UTC; its 4"
            r" cells are taken up again, once its lease has expired at \d\d:\d\d:\d\d UTC$",
            ended.stderr,
            re.MULTILINE,
        )
        assert found, ended.output
        newest, oldest = instance.get_runs()
        assert (newest.status, oldest.status) == (
            DagsterRunStatus.SUCCESS,
            DagsterRunStatus.FAILURE,
        )
        assert oldest.run_id == dead.run_id
        assert not instance.event_log_storage.get_concurrency_run_ids()
        told = [entry.user_message for entry in instance.all_logs(newest.run_id)]
        assert found[0] in told
        rows = Dagster(project.root, instance, harper).rows(ships)
        assert sorted(rows) == list(range(40))
        again = typed("sync", ships.id, *span)
        assert again.exit_code == 0
        assert " died at " not in again.output


@op
def nothing() -> None:
    pass


@job
def sync_orders() -> None:
    nothing()


def test_a_run_that_was_stopped_is_not_said_to_have_failed(tmp_path: Path) -> None:
    orders, hour = contract(slices=1), hours_ago(4)
    with (
        DagsterInstance.ephemeral() as instance,
        open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger,
    ):
        known = ledger.register_route(table_facts(orders, "p"))
        ledger.record_schema(known, {"columns": []}, 0)
        leases = ledger.acquire(known, [0], "a run", timedelta(minutes=1))
        told = {}
        for number, status in enumerate((DagsterRunStatus.CANCELED, DagsterRunStatus.FAILURE)):
            run = instance.create_run_for_job(sync_orders, status=status)
            start = hour + number * orders.window
            wanted = [
                Wanted(
                    cell=CellKey.of_window(start, start + orders.window, 0),
                    mode=Mode.COPY,
                    fingerprint="fp",
                )
            ]
            ledger.plan(leases, hours_ago(0), 1, wanted, run.run_id)
            told[status] = f"run {run.run_id[:8]} "
        stopped, died, *_ = clear_the_way(instance, ledger, orders, [])
    again = f"0 of its 1 cells are taken up again, the others by: bqh sync {orders.id}"
    assert stopped == f"{told[DagsterRunStatus.CANCELED]}was stopped; {again}"
    assert died.startswith(told[DagsterRunStatus.FAILURE])
    assert " died at " in died

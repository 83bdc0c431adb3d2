"""A disk that fills up while `bqh sync` writes: one sentence, and the next sync does the rest."""

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dagster import RunsFilter

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.defs.runs.dead_runs import WITH_A_PROCESS
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.defs.bqh_apart import bqh_apart
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy
from bq_harper_assets_tests.small_disks import fill, full_disk
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
LEASE_S = 20.0
WITHIN_S = 600.0  # of a machine that does other things too


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Small; the project with its ledger, and Dagster's storage, lie on it."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "disk" / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "disk" / "dagster"))
    with full_disk(tmp_path / "disk", "32m") as mounted:
        yield mounted


def wait_for(ask: Callable[[], bool], process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.monotonic() + WITHIN_S
    while not ask():
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < give_up, log.read_text(encoding="utf-8")
        time.sleep(0.1)


def test_a_sync_whose_disk_filled_up_is_told_in_words_and_the_next_one_leaves_no_trace_of_it(
    disk: Path,
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    proxy: FaultProxy,
    tables: SmallTables,
    harper_connection: HarperConnection,
) -> None:
    addresses = stack.model_copy(update={"harper_url": proxy.url})
    project = TemporaryProject.at(disk / "project", project_root, addresses)
    start = hours_ago(4)
    declared = project.declare(table(tables.make_from(numbered_rows(start)), start, live=False))
    [contract] = declared.tables
    there_is_no_room = threading.Event()
    target = contract.target.table
    proxy.on(Delay(there_is_no_room), operation="upsert", table=target, times=99)

    log = tmp_path / "filled.log"
    with bqh_apart(log, "sync", contract.id, lease_s=LEASE_S) as process:
        wait_for(lambda: bool(proxy.seen(operation="upsert", table=target)), process, log)
        fill(disk)
        there_is_no_room.set()
        code = process.wait(WITHIN_S)
    said = log.read_text(encoding="utf-8")
    assert code == 1, said
    assert "Traceback" not in said
    assert re.search(
        r"^error: .*disk.* is full.*safe.*Free some space, then type the same command again$",
        said,
        re.MULTILINE,
    ), said

    proxy.heal()
    (disk / "filler").unlink()
    log = tmp_path / "next.log"
    with bqh_apart(log, "sync", contract.id, lease_s=LEASE_S) as process:
        code = process.wait(WITHIN_S)
    said = log.read_text(encoding="utf-8")
    assert code == 0, said
    assert re.search(r"^run \w{8} .*; its \d+ cells are taken up again", said, re.MULTILINE), said
    with HarperClient(harper_connection) as harper:
        rows = harper.search_by_value(target, "ts", "*", ("number",))
    assert sorted(row["number"] for row in rows) == list(range(40))
    with project_instance(project.root) as instance:
        assert len(instance.get_runs()) == 2
        assert instance.get_runs(RunsFilter(statuses=list(WITH_A_PROCESS))) == []
        assert not instance.event_log_storage.get_concurrency_run_ids()
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        assert known
        assert ledger.left_over(known) == ()
        assert [lease for lease in ledger.leases(known) if lease.is_live] == []

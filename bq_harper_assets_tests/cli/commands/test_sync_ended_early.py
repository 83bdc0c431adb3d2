"""`bqh sync` in a process of its own, ended early: by a signal, or by Terminate in the UI."""

import json
import os
import re
import signal
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import DagsterRunStatus

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.partitions import range_tags
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.held_up import (
    is_writing,
    live_leases,
    log_of,
    run_of,
    typed_beside,
)
from bq_harper_assets_tests.defs.shown import loadable
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    hours_ago,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
SAYS_WITHIN_S = 5.0  # that it waits, and for what


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


def test_a_run_that_waits_for_a_lease_says_so_at_once_and_is_ended_by_ctrl_c_without_a_change(
    declared: Project, tmp_path: Path
) -> None:
    [contract] = declared.tables
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.register_route(table_facts(contract, declared.bigquery.project))
        ledger.acquire(known, [0], "another-run", timedelta(minutes=10))
    with typed_beside("sync", contract.id, log=tmp_path / "said") as typed:
        typed.wait_until(lambda: "waits for the lease of" in log_of(declared))
        os.kill(typed.process.pid, signal.SIGINT)
        assert typed.ended_with() == 128 + signal.SIGINT, typed.said
    assert 0 <= _told_after_s(declared, "waits for the lease of") < SAYS_WITHIN_S
    assert "are written again by the next run. Next: bqh sync" in typed.said
    assert run_of(declared).status is DagsterRunStatus.CANCELED
    assert [lease.owner for lease in live_leases(declared)] == ["another-run"]


def _told_after_s(declared: Project, wait: str) -> float:
    """How long a run had waited when it first said so, by its own clock and the stamp of its log.

    How long the machine took to come to the wait does not count.
    """
    run = run_of(declared)
    with project_instance(declared.root) as instance:
        entries = instance.all_logs(run.run_id)
    first = next(each for each in entries if wait in each.user_message)
    since = re.search(r", since (\d\d):(\d\d):(\d\d) UTC", first.user_message)
    assert since, first.user_message
    hours, minutes, seconds = map(int, since.groups())
    return (first.timestamp - (hours * 3600 + minutes * 60 + seconds)) % 86_400

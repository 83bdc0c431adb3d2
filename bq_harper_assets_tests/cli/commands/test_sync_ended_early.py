"""`bqh sync` in a process of its own, ended early: by a signal, or by Terminate in the UI."""

import json
import os
import re
import signal
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import DagsterRunStatus, job, op

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.partitions import range_tags
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellKey, CellState, Mode, Wanted
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
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.defs.shown import loadable
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
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
    safe = f"stopped: 0 of 1 cells of {contract.id} are committed"
    assert safe in typed.said, typed.said
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


def test_what_an_ended_run_has_left_is_due_and_what_another_writes_now_is_named(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(6)
    source = tables.make_from(numbered_rows(start))
    [ships] = project.declare(table(source, start, live=False)).tables
    span = ("--to", f"{start + 3 * HOUR:%FT%H:%M}")
    typed_well("sync", ships.id, "--to", f"{start + HOUR:%FT%H:%M}")
    with project_instance(project.root) as instance:
        stopped = instance.create_run_for_job(nothing, status=DagsterRunStatus.CANCELED)
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_route(ships.id)
        assert known
        hours = (start + HOUR, start + 2 * HOUR)
        for number, owner, seconds in ((0, stopped.run_id, 30), (1, "another-run", 600)):
            leases = ledger.acquire(known, [number], owner, timedelta(seconds=seconds))
            cells = [CellKey.of_window(hour, hour + HOUR, number) for hour in hours]
            wanted = [Wanted(cell=cell, mode=Mode.COPY, fingerprint="fp") for cell in cells]
            ledger.plan(leases, ledger.now(), 1, wanted, owner)

        ended = typed("sync", ships.id, "--changed", *span)
        assert ended.exit_code == ExitCode.PARTLY, (ended.output, ended.exception)
        due, left, *_, working = ended.stdout.partition("looking at ")[2].splitlines()[1:4]
        assert due == f"2 of 6 cells of {ships.id} are due:"
        assert left.startswith("  2 left undone by a run that has ended: 2 windows, ")
        assert working == "  2 that a run is writing now are not judged"
        short = stopped.run_id[:8]
        assert f"run {short} was stopped; its 2 cells are taken up again, once its" in ended.stderr
        windows = ", ".join(f"{hour:%FT%H:%M}" for hour in hours)
        assert ended.stderr.endswith(
            f"error: cells of {ships.id} are not judged: 2 that run another- is writing now"
            f" (2 windows, {windows}). Once that has ended, type: bqh sync {ships.id} --changed\n"
        )
        states = [record.state for record in ledger.cells(known, start, start + 3 * HOUR)]
        assert states.count(CellState.SYNCED) == 4
        again = told("sync", ships.id, "--changed", *span, code=4)
        assert again["cells"] == 0
        assert [len(keys) for keys in again["not_judged"].values()] == [2]


@op
def do_nothing() -> None:
    pass


@job
def nothing() -> None:
    do_nothing()


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

"""`bqh sync` and `bqh status` as a user types them: what they print, and their exit codes."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bq_harper_assets.cli.output.progress_bar import bar
from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.cli.typed import typed
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

TERMINAL: dict[str, Any] = {"force_terminal": True, "width": 200}


def typed_elsewhere(*arguments: str, root: Path) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("bqh")), *arguments]
    environ = {**os.environ, "BQH_HOME": str(root)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def table_status() -> dict[str, Any]:
    """Of the only table there is."""
    shown = typed("status", "--output", "json")
    assert shown.exit_code == 0
    [found] = json.loads(shown.stdout)["tables"]
    assert isinstance(found, dict)
    return found


def _closed_windows(contract: TableContract, start: datetime) -> int:
    """As many as have closed by now; one more in the next hour."""
    return (datetime.now(UTC) - contract.safety_lag - start) // HOUR


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_the_exit_code_of_a_sync_says_whether_none_some_or_all_cells_are_done(
    project: TemporaryProject, proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    start = hours_ago(4)
    source = SmallTables.at(bigquery_connection).make_from(numbered_rows(start))
    sync = {"startTimestamp": f"{start:%FT%TZ}", "initialBatchSize": 5}
    declared = project.declare(table(source, start, slices=1, sync=sync))
    [ships] = declared.tables
    target, first, second = ships.target_table, f"{start:%FT%H}:", f"{start + HOUR:%FT%H}:"
    until = (start + 2 * HOUR).replace(tzinfo=None)
    span = ("--from", f"{first}00", "--to", f"{until:%FT%H:%M}")
    assert table_status()["cells"] == {}
    assert f"nothing synced yet. Start with: bqh sync {ships.id}" in typed("status").stdout

    refusal = Answer(403, {"error": "not for you"})
    proxy.on(refusal, operation="upsert", table=target, times=99)
    none = typed("sync", ships.id, *span)
    assert none.exit_code == 1, none.output
    assert none.stdout.startswith(f"syncing {ships.id}: 0 of 2 cells done\n")
    assert "\x1b" not in none.stdout
    assert "0 of 2" in none.stdout
    assert f"Next: bqh sync {ships.id}" in none.stderr
    assert table_status()["cells"] == {"failed": 2}

    proxy.heal()
    late = f'"ts":"{second}'.encode()
    proxy.on(refusal, operation="upsert", table=target, matching=lambda s: late in s.body, times=99)
    some = typed("sync", target.upper(), *span, "--output", "json")
    assert some.exit_code == 4, some.output
    told = json.loads(some.stdout)
    assert (told["cells"], told["done"]) == (2, 1)
    assert told["partitions"][f"{first}00|s00"]["rows_written"] == 20
    assert "not for you" in told["error"]
    states = table_status()
    assert states["cells"] == {"synced": 1, "failed": 1}
    assert states["synced_until"].startswith(f"{second}00")

    proxy.heal()
    with bar("syncing", 2, Console(file=(terminal := io.StringIO()), **TERMINAL)):
        whole = typed("sync", ships.id, *span)
        _wait_for(lambda: "2 of 2 cells done, 40 rows read" in terminal.getvalue())
    assert "0 of 2 cells done" in terminal.getvalue()
    assert "1 of 2 cells done" not in terminal.getvalue()  # that was the run before
    assert whole.exit_code == 0, whole.output
    [figures] = [line.split() for line in whole.stdout.splitlines() if line.startswith(ships.id)]
    assert figures[1:-1] == ["2", "40", "20", "20", "0", "0"]
    assert "proof: 2 cells: 2 proved by stored hash\n" in whole.stdout
    before = _closed_windows(ships, start)
    states = table_status()
    assert (states["cells"], states["rows"], states["quarantined"]) == ({"synced": 2}, 40, 0)
    assert before <= states["cells_due"] <= _closed_windows(ships, start)
    assert 2 * 3600 <= states["lag_s"] < 3 * 3600 + 60
    assert (states["phase"], states["leases"]) == ("initial", [])
    assert (states["batch_size"], states["windows_per_run"]) == (5, 96)
    assert states["next_poll_within_s"] == 10
    assert states["due"] == {"missing": states["cells_due"] - 2}

    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.find_route(ships.id)
        assert known
        ledger.acquire(known, [0], "another-run", timedelta(minutes=1))
    [held] = table_status()["leases"]
    assert (held["slice"], held["owner"]) == (0, "another-run")
    shown = typed("status").stdout
    assert f"2 of {states['cells_due']} cells of closed windows synced, and what" in shown
    assert "40 rows, 0 quarantined" in shown
    assert "run another-run has been at work since " in shown
    assert "  5 rows per request, 96 windows per run; its sensors look every 10 s" in shown
    assert f"cells due: {states['cells_due'] - 2} missing" in shown


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_sync_whose_cells_are_done_and_cannot_be_proved_says_so_and_ends_with_6(
    project: TemporaryProject, proxy: FaultProxy, bigquery_connection: BigQueryConnection
) -> None:
    start = hours_ago(4)
    source = SmallTables.at(bigquery_connection).make_from(numbered_rows(start))
    [ships] = project.declare(table(source, start, slices=1)).tables
    # A first copy reads nothing back; the proof does.
    refusal = Answer(403, {"error": "not for you"})
    proxy.on(refusal, operation="search_by_conditions", table=ships.target_table, times=99)
    unproved = typed("sync", ships.id, "--to", f"{start + 2 * HOUR:%FT%H:%M}")
    assert unproved.exit_code == 6, unproved.output
    assert "all cells are done, and the proof after them could not be made: " in unproved.stderr
    assert "not for you" in unproved.stderr
    assert f"Next: bqh verify {ships.id}\n" in unproved.stderr
    assert table_status()["cells"] == {"synced": 2}


def test_what_cannot_be_meant_ends_with_2_and_says_what_can(
    tmp_path: Path, project_root: Path
) -> None:
    project = TemporaryProject.at(tmp_path, project_root, None)
    source, start = TableRef("p", "sea", "ships"), hours_ago(2)
    [ships] = project.declare(table(source, start, id="ships")).tables
    for arguments, expected in (
        (("shipps",), "declares no table 'shipps'; did you mean ships?"),
        (("orders",), "declares no table 'orders'; there are: ships"),
        (("ships", "--from", "yesterday"), "'yesterday' does not match the formats"),
        ((ships.target_table,), "bqh up"),
    ):
        ended = typed_elsewhere("sync", *arguments, root=project.root)
        assert ended.returncode == 2, ended.stderr
        assert expected in " ".join(ended.stderr.split())
        assert "Traceback" not in ended.stderr
    (project.root / "config" / "tables.yaml").write_text("tables: 7\n", encoding="utf-8")
    ended = typed_elsewhere("status", root=project.root)
    assert ended.returncode == 2
    assert "local stack in" in ended.stdout
    assert "config/tables.yaml" in ended.stderr


def _wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that within 20 s"
        time.sleep(0.05)

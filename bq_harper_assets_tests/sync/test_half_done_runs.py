"""A run that fails half way: ledger, Dagster and Harper name the same finished cells."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance
from pyspark.sql import SparkSession

from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.runs import step_retries
from bq_harper_assets.defs.runs.launch import Launched, launch
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.fault_proxy import Answer, Fault, FaultProxy
from bq_harper_assets_tests.stores.small_tables import DATASET, SmallTables, utc

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
DAY, HOURS = utc(2026, 1, 5), utc(2026, 1, 5, 3)
# A request holds just the rows of one window.
SELECT = (
    "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n * 36 SECOND) AS ts, n AS number"
    " FROM UNNEST(GENERATE_ARRAY(0, 299)) AS n"
)
FIRST_WINDOW = {"2026-01-05T00:00|s00", "2026-01-05T00:00|s01"}


@pytest.fixture
def proxy(stack: StackAddresses) -> Iterator[FaultProxy]:
    with FaultProxy(stack.harper_url) as proxy:
        yield proxy


@pytest.fixture
def project(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    proxy: FaultProxy,
    tables: SmallTables,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """One table, whose Harper is behind the proxy; retries come at once."""
    monkeypatch.setattr(step_retries, "WAITS_S", (0.0,))
    root = tmp_path / "project"
    shutil.copytree(project_root / "config", root / "config")
    source = tables.make_from(SELECT)
    declared = {
        "id": source.table,
        "dataset": DATASET,
        "table": source.table,
        "timestampColumn": "ts",
        "targetTable": source.table.title().replace("_", ""),
        "slices": 2,
        "sync": {"startTimestamp": "2026-01-05T00:00:00Z", "initialBatchSize": 100},
    }
    bigquery = {"projectId": stack.bigquery_project, "tables": [declared]}
    text = yaml.safe_dump({"bigquery": bigquery})
    (root / "config/tables.yaml").write_text(text, encoding="utf-8")
    local_folder(root).mkdir()
    write_addresses(local_folder(root), stack.model_copy(update={"harper_url": proxy.url}))
    return load_project(root)


def _spoil_the_second_window(proxy: FaultProxy, fault: Fault, times: int) -> None:
    proxy.on(
        fault,
        operation="upsert",
        matching=lambda seen: b'"2026-01-05T01:' in seen.body,
        times=times,
    )


def _sync(project: Project, instance: DagsterInstance) -> Launched:
    (contract,) = project.tables
    cells = [
        Cell(window, part)
        for window in windows_between(DAY, HOURS, contract.window)
        for part in range(contract.slices)
    ]
    return launch(build_definitions(project.root), instance, contract, cells)


def _finished(project: Project) -> tuple[set[str], set[int]]:
    """The cells that the ledger calls done, and the numbers that Harper holds."""
    (contract,) = project.tables
    with open_ledger(project.ledger.url) as ledger, HarperClient(project.harper) as harper:
        table = ledger.find_route(contract.id)
        assert table is not None
        cells = ledger.cells(table, DAY, HOURS)
        rows = harper.search_by_value(contract.target.table, "ts", "*", ("number",))
    done = {str(cell.cell) for cell in cells if cell.state is CellState.SYNCED}
    return done, {row["number"] for row in rows}


def _retries(instance: DagsterInstance, launched: Launched) -> int:
    logs = instance.all_logs(launched.run_id)
    return sum(entry.user_message.startswith("tries again in") for entry in logs)


def test_finished_cells_are_kept_everywhere_and_a_refusal_is_not_tried_again(
    project: Project, proxy: FaultProxy, spark: SparkSession
) -> None:
    (contract,) = project.tables
    _spoil_the_second_window(proxy, Answer(403, {"error": "not for you"}), times=99)
    with DagsterInstance.ephemeral() as instance:
        launched = _sync(project, instance)
        assert set(launched.done) == FIRST_WINDOW, launched.error
        assert instance.get_materialized_partitions(target_key(contract)) == FIRST_WINDOW
        assert _retries(instance, launched) == 0
    assert _finished(project) == (FIRST_WINDOW, set(range(100)))
    assert launched.error is not None
    assert "4 of 6 cells are not done: 4 failed. The other 2 are committed" in launched.error
    assert "The first that failed is 2026-01-05T01:00|s00" in launched.error
    assert "not for you" in launched.error
    assert launched.error.endswith(f"Next: bqh sync {contract.id}")
    proxy.heal()
    with DagsterInstance.ephemeral() as instance:
        assert len(_sync(project, instance).done) == 6
    assert _finished(project)[1] == set(range(300))


def test_a_harper_that_is_away_for_a_while_is_tried_again_by_the_same_run(
    project: Project, proxy: FaultProxy, spark: SparkSession
) -> None:
    """Nothing was left unanswered, so that its lease does not stand in its own way."""
    full = {"error": "Commit failed (see commitError for details)"}
    away = Answer(500, full, headers={"Retry-After": "0"})
    _spoil_the_second_window(proxy, away, times=6)  # as often as one call tries
    with DagsterInstance.ephemeral() as instance:
        launched = _sync(project, instance)
        assert _retries(instance, launched) == 1
        (contract,) = project.tables
        assert len(instance.get_materialized_partitions(target_key(contract))) == 6
    assert len(_finished(project)[0]) == 6
    assert _finished(project)[1] == set(range(300))

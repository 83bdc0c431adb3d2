"""Whole configurations as users write them: each becomes rows in Harper."""

import shutil
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from bq_harper_assets.contract.fields.column_lists import ALL_COLUMNS
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.runs import step_retries
from bq_harper_assets.defs.runs.launch import launch, project_instance
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
ROWS = 40
OWN = {"id", "_syncedAt", "_batch", "_hash"}
EXAMPLES = {
    "events-and-logs": {"UserEvents", "AppLogs"},
    "orders-and-payments": {"Orders", "Payments"},
    "selected-columns": {"Events"},
    "single-table": {"BigQueryData"},
}


def cells_from(contract: TableContract, start: datetime) -> list[Cell]:
    """Of two hours."""
    return [
        Cell(window, number)
        for window in windows_between(start, start + 2 * HOUR, contract.window)
        for number in range(contract.slices)
    ]


def select(contract: TableContract, start: datetime) -> str:
    """Rows with every column that the contract names, and with one that only `*` takes along."""
    named = () if contract.columns == ALL_COLUMNS else contract.columns
    time = contract.timestamp_column
    moment = f"TIMESTAMP_ADD(TIMESTAMP '{start:%F %T}+00', INTERVAL n * 3 MINUTE) AS {time}"
    texts = [f"FORMAT('{name} %d', n) AS {name}" for name in named if name != time]
    columns = ", ".join([moment, *texts, "n AS number"])
    return f"SELECT {columns} FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"


@pytest.mark.promise("G10", "G12")
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_shipped_example_syncs_as_it_is(
    example: str, dagster: Dagster, project: TemporaryProject, project_root: Path
) -> None:
    start = hours_ago(4)
    shutil.copy(
        project_root / f"config/examples/{example}.yaml", project.root / "config/tables.yaml"
    )
    declared = load_project(project.root)
    source = SmallTables.at(declared.bigquery)
    for contract in declared.tables:
        source.queries.client.create_dataset(contract.source.dataset, exists_ok=True)
        name = f"`{declared.bigquery.project}.{contract.source.dataset}.{contract.source.table}`"
        source.run(f"CREATE OR REPLACE TABLE {name} AS {select(contract, start)}")
    definitions = dagster.definitions()
    for contract in declared.tables:
        launched = launch(definitions, dagster.instance, contract, cells_from(contract, start))
        assert launched.error is None
        assert sum(metadata["rows_written"] for metadata in launched.done.values()) == ROWS
        rows = dagster.harper.search_by_value(
            contract.target.table, contract.timestamp_column, "*", ("*",)
        )
        assert len(rows) == ROWS
        everything = {contract.timestamp_column, "number"}
        named = everything if contract.columns == ALL_COLUMNS else {*contract.columns}
        assert {frozenset(row) for row in rows} == {frozenset(named | OWN)}
    assert {contract.target.table for contract in declared.tables} == EXAMPLES[example]


@pytest.mark.promise("G9")
def test_retries_and_their_delay_as_written_in_the_file_are_what_bigquery_sees(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    tables: SmallTables,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_retries, "WAITS_S", ())
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    start, source = hours_ago(4), tables.make("ts TIMESTAMP")
    with FaultProxy(stack.bigquery_url) as proxy:
        addresses = stack.model_copy(update={"bigquery_url": proxy.url})
        project = TemporaryProject.at(tmp_path / "project", project_root, addresses)
        [contract] = project.declare(
            table(source, start), maxRetries=2, initialRetryDelay=100
        ).tables
        proxy.on(
            Answer(503, {"error": {"code": 503, "message": "busy"}}),
            matching=lambda seen: source.table in seen.path,
            times=99,
        )
        with project_instance(project.root) as instance:
            cells = cells_from(contract, start)
            launched = launch(build_definitions(project.root), instance, contract, cells)
        asked = [seen.at for seen in proxy.seen() if source.table in seen.path]
    assert launched.error is not None
    assert "busy" in launched.error
    first, second = (later - before for before, later in pairwise(asked))
    assert 0.1 <= first < 1  # the least that is waited where nothing is written
    assert 0.2 <= second < 2

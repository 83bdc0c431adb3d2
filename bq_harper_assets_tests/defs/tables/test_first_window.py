"""The oldest row is looked for by the first who needs it, never by loading definitions."""

from datetime import UTC, datetime, timedelta

import pytest
from dagster import AssetKey, MultiPartitionsDefinition

from bq_harper_assets.cli.runs.asked_cells import cells_between
from bq_harper_assets.cli.runs.ranged_runs import run_cells
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import RANGE_START
from bq_harper_assets.defs.runs.launch import launch
from bq_harper_assets.defs.tables.revisit_sensor import NOT_LOADED
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.ticking import Ticking
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject, numbered_rows, table

DAY = timedelta(days=1)
OLDEST = 5 * DAY  # before the partitions of a table whose start nobody knows yet


@pytest.fixture
def midnight() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def declared(project: TemporaryProject, tables: SmallTables, midnight: datetime) -> Project:
    """A table without a start, whose oldest row is some days old."""
    source = tables.make_from(numbered_rows(midnight - OLDEST + DAY / 2, rows=3))
    return project.declare(table(source, midnight, sync=None, window="1d", safetyLag="0s"))


def first_partition(dagster: Dagster, contract: TableContract) -> str:
    graph = dagster.definitions().resolve_asset_graph()
    partitions = graph.get(AssetKey(["harper", contract.target.table])).partitions_def
    assert isinstance(partitions, MultiPartitionsDefinition)
    windows = partitions.time_window_dimension.partitions_def
    assert hasattr(windows, "start")
    return f"{windows.start:%F}"


def recorded(declared: Project, contract: TableContract) -> datetime | None:
    with open_ledger(declared.ledger.url) as ledger:
        return ledger.start_of(contract.id)


def test_the_first_tick_records_the_start_and_the_next_load_has_the_partitions(
    dagster: Dagster, declared: Project, midnight: datetime
) -> None:
    [contract] = declared.tables
    ticking = Ticking(dagster=dagster, contract=contract)
    assert recorded(declared, contract) is None
    asked = ticking.tick()
    assert recorded(declared, contract) == midnight - OLDEST
    # Nothing before the loaded start is asked for: to Dagster it would be no partition.
    assert all(each.tags[RANGE_START] >= f"{midnight - 2 * DAY:%F}" for each in asked)
    # It asks for runs, and says in the same tick that others need a reload.
    assert asked
    for said in (ticking.cursor["not_loaded"], *(each.tags[NOT_LOADED] for each in asked)):
        assert f"from {midnight - OLDEST:%F}T00:00 to {midnight - 2 * DAY:%F}T00:00" in said
        assert "Reload the code location" in said
    for request in asked:
        ticking.run(request)
    assert ticking.later(is_time_to_look=False) == ()
    assert "Reload the code location" in (ticking.skipped or "")

    assert first_partition(dagster, contract) == f"{midnight - OLDEST:%F}"
    reloaded = Ticking(dagster=dagster, contract=contract)
    [request, *_] = reloaded.tick()
    assert request.tags[RANGE_START].startswith(f"{midnight - OLDEST:%F}")
    assert NOT_LOADED not in request.tags
    assert reloaded.cursor["not_loaded"] == ""


def test_the_first_sync_records_the_start(
    dagster: Dagster, declared: Project, midnight: datetime
) -> None:
    [contract] = declared.tables
    definitions = dagster.definitions()
    assert recorded(declared, contract) is None
    cells = cells_between(contract, midnight, None, None, None)
    assert launch(definitions, dagster.instance, contract, cells).error is None
    assert recorded(declared, contract) == midnight - OLDEST


def test_the_job_of_all_tables_syncs_from_the_start_that_it_finds(
    dagster: Dagster, declared: Project, midnight: datetime
) -> None:
    [contract] = declared.tables
    job = dagster.definitions().resolve_job_def("sync_all_tables")
    config = {f"sync_newest_{contract.id}": {"config": {"windows": 9}}}
    job.execute_in_process(run_config={"ops": config}, instance=dagster.instance)
    assert recorded(declared, contract) == midnight - OLDEST
    assert len(dagster.rows(contract)) == 3


def test_cells_of_a_command_are_partitions_of_its_runs_though_nobody_knew_the_start(
    dagster: Dagster, declared: Project, midnight: datetime
) -> None:
    [contract] = declared.tables
    oldest = Window(midnight - OLDEST, midnight - OLDEST + DAY)
    cells = [Cell(oldest, number) for number in range(contract.slices)]
    [run] = run_cells("syncing", declared, contract, cells, "json").runs
    assert run.error is None
    assert len(run.done) == len(cells)
    assert len(dagster.rows(contract)) == 3

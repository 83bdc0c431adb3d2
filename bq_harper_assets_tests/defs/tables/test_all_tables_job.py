"""One job for all tables, whatever their partitions."""

import pytest

from bq_harper_assets.defs.checks.evaluations import PER_PARTITION
from bq_harper_assets.defs.partitions import newest_closed
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.shown import shown
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
@pytest.mark.promise("G11")
def test_one_job_syncs_the_newest_windows_of_all_tables_whatever_their_partitions(
    dagster: Dagster,
    project: TemporaryProject,
    tables: SmallTables,
) -> None:
    start = hours_ago(6)
    rows = numbered_rows(start, rows=100, minutes=5)  # beyond now, whatever the minute
    hourly, quarterly, broken = project.declare(
        table(tables.make_from(rows), start),
        table(tables.make_from(rows), start, window="15m", slices=1),
        table(tables.new_name(), start),
    ).tables
    config = {f"sync_newest_{hourly.id}": {"config": {"windows": 2}}}
    ended = (
        dagster.definitions()
        .resolve_job_def("sync_all_tables")
        .execute_in_process(
            run_config={"ops": config}, instance=dagster.instance, raise_on_error=False
        )
    )
    assert not ended.success
    [failed] = [event for event in ended.all_events if event.is_step_failure]
    assert failed.step_key == f"sync_newest_{broken.id}"
    for contract, windows in ((hourly, 2), (quarterly, 1)):
        keys = dagster.materialised(contract)
        cells = [Cell.parse(key, contract.window) for key in keys]
        assert len(cells) == windows * contract.slices
        assert len({cell.window for cell in cells}) == windows
        run = dagster.instance.get_run_record_by_id(ended.run_id)
        assert run
        newest = newest_closed(contract, run.create_timestamp)
        assert max(cell.window for cell in cells) >= newest
        filed = dagster.evaluations(contract, PER_PARTITION, ended.run_id)
        of_cells = {each.partition: each.passed for each in filed}
        assert of_cells == dict.fromkeys(keys, True)
        partitions = shown(dagster.root, dagster.instance, contract).partitions()
        assert set(partitions.values()) == {"succeeded"}
        held = [row["ts"] for row in dagster.rows(contract).values()]
        assert held
        first = min(cell.window.start for cell in cells)
        assert min(held) >= f"{first:%FT%T}"

"""A Harper table as an asset: one partition, a range of them, and what Dagster keeps of both."""

from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest
from dagster import AssetKey, DagsterEventType
from dagster_shared.serdes import serialize_value

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.defs.partitions import build_partitions
from bq_harper_assets.defs.runs.launch import launch
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("G5", "O1", "O2")
def test_a_partition_lands_alone_and_a_range_files_what_it_did_by_partition(
    dagster: Dagster,
    project: TemporaryProject,
    tables: SmallTables,
    harper_connection: HarperConnection,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    start = hours_ago(4)
    [contract] = project.declare(table(tables.make_from(numbered_rows(start)), start)).tables
    definitions = dagster.definitions()

    key = f"{start + HOUR:%FT%H:%M}|s01"
    job = definitions.resolve_job_def(f"sync_{contract.id}")
    assert job.execute_in_process(partition_key=key, instance=dagster.instance).success
    alone = set(dagster.rows(contract))
    assert dagster.materialised(contract) == {key}

    cells = [
        Cell(window, number)
        for window in windows_between(start, start + 2 * HOUR, contract.window)
        for number in range(2)
    ]
    launched = launch(definitions, dagster.instance, contract, cells)
    assert launched.error is None
    assert set(launched.done) == {cell.key for cell in cells} == dagster.materialised(contract)
    rows = dagster.rows(contract)
    assert sorted(rows) == list(range(40))
    by_key = {
        each: {n for n, row in rows.items() if row["_batch"] == metadata["batch"]}
        for each, metadata in launched.done.items()
    }
    assert by_key[key] == set()  # nothing of it was written again
    by_key[key] = alone
    assert set(range(20, 40)) > alone > set()

    logs = dagster.instance.all_logs(
        launched.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION
    )
    filed = {
        event.partition: event.step_materialization_data.materialization.metadata
        for event in (log.get_dagster_event() for log in logs)
    }
    for each, numbers in by_key.items():
        metadata = filed[each]
        same, new = ("unchanged", "written") if each == key else ("written", "unchanged")
        for name in ("dagster/partition_row_count", "rows_read", f"rows_{same}"):
            assert metadata[name].value == len(numbers)
        for name in (new, "quarantined", "deleted", "moved", "flagged", "kept"):
            assert metadata[f"rows_{name}"].value == 0
        assert (metadata["bytes_sent"].value > 100 * len(numbers)) is (each != key)
        assert metadata["window"].value == "closed"
        end = Cell.parse(each, contract.window).window.end
        assert metadata["synced_upto"].value == end.isoformat()
        schema = metadata["dagster/column_schema"].schema  # type: ignore[union-attr]
        assert {column.name: column.type for column in schema.columns} == {
            "ts": "String",
            "number": "Long",
        }
        assert metadata["seconds_of_run"].value > 0
        assert metadata["bytes_read_of_run"].value > 0
        t = datetime.fromisoformat(str(metadata["snapshot"].value))
        assert timedelta(0) < datetime.now(t.tzinfo) - t < timedelta(minutes=5)
        paced = [metadata[name].value for name in ("phase", "batch_size", "windows_per_run")]
        assert paced == ["initial", 10_000, 96]
        assert metadata["next_poll_within_s"].value == 10
        assert metadata["mode"].value == ("reconcile" if each == key else "copy")
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        assert known
        recorded = ledger.cells(known, start, start + 2 * HOUR)
    assert {str(filed[f"{c.cell.window_start:%FT%H:%M}|s{c.cell.slice:02}"]["digest"].value)
            for c in recorded} == {c.commit.digest for c in recorded if c.commit}  # fmt: skip

    # The password of these servers was made for this run of the tests: nothing else can hold it.
    password = harper_connection.password.get_secret_value()
    run = dagster.instance.get_run_by_id(launched.run_id)
    assert run
    assert run.job_snapshot_id
    # Dagster stores it compressed, so that its files cannot be searched for it.
    snapshot = serialize_value(dagster.instance.get_job_snapshot(run.job_snapshot_id))
    assert harper_connection.user in snapshot
    said = capfd.readouterr()
    assert password not in said.out + said.err + snapshot + str(run.run_config)
    ours = {child.pid for child in psutil.Process().children(recursive=True)}
    commands = {p.pid: p.info["cmdline"] or () for p in psutil.process_iter(["cmdline"])}
    assert any("org.apache.spark" in word for pid in ours for word in commands.get(pid, ()))
    assert not any(password in word for command in commands.values() for word in command)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.name == f"{launched.run_id}.db" for file in files)
    [holder] = [file for file in files if password.encode() in file.read_bytes()]
    assert holder.parent.name == "task-secrets"  # from where tasks read it
    assert [each.stat().st_mode & 0o777 for each in (holder.parent, holder)] == [0o700, 0o600]


def test_lineage_and_pool_of_each_table_are_its_own(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    one, two, start = tables.new_name(), tables.new_name(), hours_ago(2)
    query = f"SELECT * FROM {one.sql}"
    contracts = project.declare(
        table(one, start),
        table(two, start, window="15m", slices=3),
        table(one, start, id="asked", dataset=None, table=None, customQuery=query),
    ).tables
    graph = dagster.definitions().resolve_asset_graph()
    origins = (
        ["bigquery", one.dataset, one.table],
        ["bigquery", two.dataset, two.table],
        ["bigquery", "query", "asked"],
    )
    for contract, origin in zip(contracts, origins, strict=True):
        node = graph.get(AssetKey(["harper", contract.target.table]))
        assert node.parent_keys == {AssetKey(origin)}
        assert node.pools == {f"harper/{contract.target.table}"}
        assert node.partitions_def == build_partitions(contract, start)
        assert not graph.get(AssetKey(origin)).is_executable

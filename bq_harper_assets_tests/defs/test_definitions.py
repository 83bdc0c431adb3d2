"""The project as Dagster loads it, and sample data made from there."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, Definitions

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.sample_data import SAMPLE_DATA_KEYS
from bq_harper_assets.maritime.tables import DATASET
from bq_harper_assets.maritime.warehouse import Warehouse

TABLES = ("port_events", "vessel_metadata", "vessel_positions")
TARGETS = ("PortEvents", "VesselMetadata", "VesselPositions")
DAY = timedelta(days=1)


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    shutil.copytree(project_root / "config", tmp_path / "config")
    return tmp_path


def _moments(warehouse: Warehouse) -> list[datetime]:
    rows = warehouse.dataset.query("SELECT timestamp FROM `{dataset}.vessel_positions`")
    return [row["timestamp"] for row in rows]


def _keys(definitions: Definitions) -> set[AssetKey]:
    return {spec.key for spec in definitions.resolve_all_asset_specs()}


def test_sources_and_targets_are_assets_also_when_no_stack_runs(project: Path) -> None:
    assert _keys(build_definitions(project)) == {
        *(AssetKey(["bigquery", "maritime", table]) for table in TABLES),
        *(AssetKey(["harper", table]) for table in TARGETS),
        *(AssetKey(["schema", table]) for table in TARGETS),
    }


def test_a_profile_that_is_given_beats_the_one_of_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BQH_PROFILE", "gcp")
    in_cloud, local = build_definitions(project), build_definitions(project, profile="local")
    makes = "maritime_retention"
    assert makes not in {job.name for job in in_cloud.jobs or ()}
    assert makes in {job.name for job in local.jobs or ()}


@pytest.mark.promise("G2", "G11")
def test_each_table_of_the_examples_is_an_asset_of_its_own(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(project / "config/examples/events-and-logs.yaml", project / "config/tables.yaml")
    assert _keys(build_definitions(project)) >= {
        AssetKey(["bigquery", "production", "user_events"]),
        AssetKey(["bigquery", "production", "application_logs"]),
    }


@pytest.mark.bigquery
@pytest.mark.promise("K1", "K6")
def test_sample_data_is_made_and_trimmed_by_dagster_jobs(
    project: Path, bigquery_server: StackAddresses
) -> None:
    local_folder(project).mkdir()
    write_addresses(local_folder(project), bigquery_server)
    definitions = build_definitions(project)
    with DagsterInstance.ephemeral() as instance:
        config = {"ops": {"maritime_sample_data": {"config": {"scenario": "small"}}}}
        made = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            run_config=config, instance=instance, asset_selection=list(SAMPLE_DATA_KEYS)
        )
        rows = {
            event.asset_key.path[-1]: event.materialization.metadata["dagster/row_count"].value
            for event in made.get_asset_materialization_events()
            if event.asset_key
        }
        assert rows == {"port_events": 10, "vessel_metadata": 20, "vessel_positions": 100}
        warehouse = Warehouse(load_project(project).bigquery, DATASET)
        warehouse.dataset.change(
            "UPDATE `{dataset}.vessel_positions` SET timestamp = TIMESTAMP_SUB(timestamp, INTERVAL"
            " 31 DAY) WHERE latitude > 20"
        )
        old = sum(1 for each in _moments(warehouse) if each < datetime.now(UTC) - 30 * DAY)
        assert 0 < old < 100
        trimmed = definitions.resolve_job_def("maritime_retention").execute_in_process(
            instance=instance
        )
        assert trimmed.success
        left = _moments(warehouse)
        assert len(left) == 100 - old
        assert min(left) > datetime.now(UTC) - 30 * DAY


def test_dagster_loads_the_workspace_without_a_warning_of_ours(project_root: Path) -> None:
    command = [str(Path(sys.executable).with_name("dagster")), "definitions", "validate"]
    done = subprocess.run(
        [*command, "--workspace", "workspace.yaml"],
        cwd=project_root,
        env={**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "bq_harper_assets" not in "".join(
        line for line in said.splitlines() if "Warning" in line
    )

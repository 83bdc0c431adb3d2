"""The project as Dagster loads it, and sample data made from there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dagster import AssetKey, Definitions

from bq_harper_assets.defs.build import build_definitions

TABLES = ("port_events", "vessel_metadata", "vessel_positions")
TARGETS = ("PortEvents", "VesselMetadata", "VesselPositions")


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    shutil.copytree(project_root / "config", tmp_path / "config")
    return tmp_path


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


def test_dagster_loads_the_workspace_without_a_warning_of_ours(project_root: Path) -> None:
    dagster = str(Path(sys.executable).with_name("dagster"))
    # As `bqh ui` loads it; loaded in the command's own process, no warning is told.
    done = subprocess.run(
        [
            *(dagster, "definitions", "validate", "--load-with-grpc"),
            *("--workspace", "workspace.yaml"),
        ],
        cwd=project_root,
        env={**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    ours = str(project_root / "bq_harper_assets") + os.sep
    assert [line for line in said.splitlines() if "Warning" in line and ours in line] == []

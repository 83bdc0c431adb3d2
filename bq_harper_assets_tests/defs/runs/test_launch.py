"""Runs started from this process are Dagster runs like any other."""

from pathlib import Path

import pytest

from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.defs.tables.live_job import LIVE
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
)


def test_a_project_keeps_its_own_instance_with_its_own_settings(
    tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = TemporaryProject.at(tmp_path, project_root, None)
    monkeypatch.setenv("DAGSTER_HOME", "")
    with project_instance(project.root) as instance:
        assert Path(instance.root_directory) == local_folder(project.root) / "dagster"
        assert instance.telemetry_enabled is False
        assert instance.run_monitoring_enabled
        limits = instance.get_concurrency_config()
        assert limits.pool_config.default_pool_limit == 1
        queue = limits.run_queue_config
        assert queue is not None
        [live] = [each for each in queue.tag_concurrency_limits if each["key"] == LIVE]
        assert live["limit"] < queue.max_concurrent_runs  # live runs leave room for backfills

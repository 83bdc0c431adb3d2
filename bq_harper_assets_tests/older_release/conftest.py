"""Data of an older release in the stores of a project, on both real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.older_release.left_data import LeftData
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject


@pytest.fixture
def left(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    harper_connection: HarperConnection,
    bigquery_connection: BigQueryConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LeftData]:
    """Loaded for this test, whose commands find its project."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    project = TemporaryProject.at(tmp_path / "project", project_root, stack)
    with HarperClient(harper_connection) as harper:
        yield LeftData.loaded(project, harper, SmallTables.at(bigquery_connection))

"""A project whose commands are typed in this process, where Spark is running already."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets_tests.cli.held_up import declared, never
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject

__all__ = ["declared", "never"]


@pytest.fixture
def proxy(stack: StackAddresses) -> Iterator[FaultProxy]:
    with FaultProxy(stack.harper_url) as running:
        yield running


@pytest.fixture
def project(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> TemporaryProject:
    """Whose requests to Harper can be spoiled."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    addresses = stack.model_copy(update={"harper_url": proxy.url})
    return TemporaryProject.at(tmp_path / "project", project_root, addresses)


@pytest.fixture
def serverless(
    tmp_path: Path, project_root: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> TemporaryProject:
    """A project none of whose servers runs: what is told of it comes from its ledger."""
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    password = tmp_path / "password"
    password.write_text("none", encoding="ascii")
    addresses = StackAddresses(
        harper_url=nowhere,
        harper_rest_url=nowhere,
        harper_user="nobody",
        harper_password_file=password,
        bigquery_url=nowhere,
        bigquery_storage=nowhere.removeprefix("http://"),
        bigquery_project="p",
    )
    return TemporaryProject.at(tmp_path / "project", project_root, addresses)


@pytest.fixture(scope="session")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    """Makes source tables."""
    return SmallTables.at(bigquery_connection)

"""A project whose commands are typed in this process, where Spark is running already."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets_tests.cli.held_up import declared, never
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.bigquery.by_hand import PROJECT, BigQueryByHand
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


@dataclass(frozen=True)
class ByHand:
    """A project whose BigQuery says what the test tells it to; so does its Harper."""

    project: TemporaryProject
    bigquery: BigQueryByHand
    harper: FaultProxy  # every request has to meet a rule


@pytest.fixture
def by_hand(
    tmp_path: Path, project_root: Path, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ByHand]:
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    password = tmp_path / "password"
    password.write_text("none", encoding="ascii")
    with BigQueryByHand() as bigquery, FaultProxy(nowhere) as harper:
        addresses = StackAddresses(
            harper_url=harper.url,
            harper_rest_url=harper.url,
            harper_user="nobody",
            harper_password_file=password,
            bigquery_url=bigquery.endpoint,
            bigquery_storage=nowhere.removeprefix("http://"),
            bigquery_project=PROJECT,
        )
        made = TemporaryProject.at(tmp_path / "project", project_root, addresses)
        empty_ledger(local_folder(made.root) / "ledger.db")
        yield ByHand(made, bigquery, harper)


@pytest.fixture(scope="session")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    """Makes source tables."""
    return SmallTables.at(bigquery_connection)

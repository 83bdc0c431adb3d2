"""Dagster runs of a project of its own, on both real servers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    Definitions,
)

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.defs.drifting import LedgerClock
from bq_harper_assets_tests.defs.evolving_project import EvolvingProject
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import TemporaryProject


@pytest.fixture(scope="session")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    """Makes source tables."""
    return SmallTables.at(bigquery_connection)


@pytest.fixture
def project(
    tmp_path: Path, project_root: Path, stack: StackAddresses, monkeypatch: pytest.MonkeyPatch
) -> TemporaryProject:
    """Declares nothing yet; Dagster keeps its files beside it."""
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    return TemporaryProject.at(tmp_path / "project", project_root, stack)


@dataclass(frozen=True)
class Dagster:
    """A project's instance and what Harper holds of its tables."""

    root: Path
    instance: DagsterInstance
    harper: HarperClient

    def definitions(self) -> Definitions:
        """As they are declared now."""
        return build_definitions(self.root)

    def materialised(self, contract: TableContract) -> set[str]:
        """The partitions that Dagster shows as done."""
        return self.instance.get_materialized_partitions(
            AssetKey(["harper", contract.target.table])
        )

    def evaluations(
        self, contract: TableContract, check: str, run_id: str
    ) -> list[AssetCheckEvaluation]:
        """What one run has filed of a check, of all partitions."""
        logs = self.instance.all_logs(run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION)
        filed = [log.get_dagster_event().asset_check_evaluation_data for log in logs]
        key = AssetCheckKey(AssetKey(["harper", contract.target.table]), check)
        return [each for each in filed if each.asset_check_key == key]

    def rows(self, contract: TableContract) -> dict[int, dict[str, Any]]:
        """All that Harper holds of the contract, by `number`."""
        found = self.harper.search_by_value(
            contract.target.table, contract.timestamp_column, "*", ("*",)
        )
        return {row["number"]: row for row in found}


@pytest.fixture
def dagster(project: TemporaryProject, harper_connection: HarperConnection) -> Iterator[Dagster]:
    with project_instance(project.root) as instance, HarperClient(harper_connection) as harper:
        yield Dagster(project.root, instance, harper)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LedgerClock:
    """Of all ledgers in the test's process."""
    return LedgerClock(monkeypatch)


@pytest.fixture
def ledger(project: TemporaryProject) -> Iterator[Ledger]:
    """The project's."""
    declared = project.declare()
    empty_ledger(local_folder(project.root) / "ledger.db")
    with open_ledger(declared.ledger.url) as opened:
        yield opened


@pytest.fixture
def evolving(
    dagster: Dagster,
    project: TemporaryProject,
    tables: SmallTables,
    ledger: Ledger,
    clock: LedgerClock,
) -> Callable[..., EvolvingProject]:
    """Declares one table, whose columns are to change."""
    return partial(EvolvingProject.made, dagster, project, tables, ledger, clock)

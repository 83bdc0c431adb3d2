"""The user's own BigQuery and Harper, by the settings of the environment; off unless asked for."""

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease.send_deadline import mirror_id
from bq_harper_assets.stores.harper.mirror.tables import (
    AUDITS,
    CHECKPOINTS,
    MIRRORED_LEASES,
    SCHEMAS,
)
from bq_harper_assets_tests.stores.harper_clients import admin
from bq_harper_assets_tests.temporary_project import TemporaryProject

SWITCH = "TEST_LIVE_SERVICES"
WHY = (
    f"needs your own services: set {SWITCH}=1, GOOGLE_CLOUD_PROJECT, OPERATIONSAPI_URL,"
    " OPERATIONSAPI_USER and OPERATIONSAPI_PASS (and GOOGLE_APPLICATION_CREDENTIALS unless gcloud"
    " has logged you in), then: .venv/bin/pytest -m live. It makes and drops a dataset and a table"
)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Here they are what the test is about; but the ledger and Dagster are the test's own."""
    if not os.environ.get(SWITCH):
        pytest.skip(WHY)
    monkeypatch.delenv("BQH_LEDGER_URL", raising=False)
    monkeypatch.setenv("BQH_PROFILE", os.environ.get("BQH_PROFILE", "gcp"))
    monkeypatch.setenv("BQH_HOME", str(tmp_path / "project"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))


@dataclass(frozen=True)
class Live:
    """A dataset of its own, in a project of its own."""

    project: TemporaryProject
    queries: Queries
    harper: HarperClient
    source: TableRef

    def declare(self, contract: dict[str, Any]) -> Project:
        """The only table there is."""
        return self.project.declare(contract)

    def run(self, sql: str) -> None:
        """Any statement; `T` is the source."""
        self.queries.run(sql.replace(" T ", f" {self.source.sql} "), doing="preparing a test")


@pytest.fixture
def live(tmp_path: Path, project_root: Path) -> Iterator[Live]:
    """Made for one test, and dropped after it, whatever became of it."""
    project = TemporaryProject.at(tmp_path / "project", project_root, None)
    loaded = project.declare()
    queries = Queries(BigQueryCalls(loaded.bigquery))
    source = TableRef(loaded.bigquery.project, f"bqh_live_{uuid.uuid4().hex[:12]}", "ships")
    with ExitStack() as made:
        harper = made.enter_context(HarperClient(loaded.harper))
        queries.client.create_dataset(source.dataset)
        made.callback(
            queries.client.delete_dataset,
            source.dataset,
            delete_contents=True,
            not_found_ok=True,
        )
        made.callback(_drop_in_harper, tmp_path / "project", harper)
        yield Live(project, queries, harper, source)


def _drop_in_harper(root: Path, harper: HarperClient) -> None:
    """The target, and the rows about it in tables that others may use too."""
    loaded = load_project(root)
    for contract in loaded.tables:
        target, slices = contract.target.table, range(contract.slices)
        answer = admin(loaded.harper, "drop_table", database="data", table=target)
        assert answer.ok, answer.text
        harper.delete(MIRRORED_LEASES.name, [mirror_id(target, part) for part in slices])
        for table in (CHECKPOINTS, AUDITS, SCHEMAS):
            rows = harper.search_by_value(table.name, "tableId", contract.id, ("id",))
            harper.delete(table.name, [row["id"] for row in rows])

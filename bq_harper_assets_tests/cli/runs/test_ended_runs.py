"""Which runs have ended, though they hold a lease: Dagster and their processes say it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import DagsterRunStatus, job, op
from dagster._core.utils import make_new_run_id

from bq_harper_assets.cli.runs.ended_runs import ended_runs
from bq_harper_assets.contract.project import Project
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets.defs.runs.run_process import tags_of_this_process
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table

RUN = make_new_run_id()


@pytest.fixture
def declared(serverless: TemporaryProject) -> Project:
    return serverless.declare(table(TableRef("p", "sea", "ships"), hours_ago(5)))


@pytest.fixture
def ledger(declared: Project) -> Iterator[Ledger]:
    """RUN holds a lease of its only table."""
    [ships] = declared.tables
    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.register_route(table_facts(ships, declared.bigquery.project))
        ledger.acquire(known, [0], RUN, timedelta(minutes=3))
        yield ledger


@op
def do_nothing() -> None:
    pass


@job
def nothing() -> None:
    do_nothing()


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (DagsterRunStatus.STARTED, None),
        (DagsterRunStatus.CANCELING, None),
        (DagsterRunStatus.CANCELED, "was stopped"),
        (DagsterRunStatus.SUCCESS, "has ended"),
    ],
)
def test_a_run_has_ended_if_dagster_says_so(
    declared: Project,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: DagsterRunStatus,
    fate: str | None,
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", empty_dagster(tmp_path / "dagster"))
    with project_instance(declared.root) as instance:
        tags = tags_of_this_process(RUN)
        instance.create_run_for_job(nothing, run_id=RUN, status=status, tags=tags)
    found = ended_runs(declared, ledger, declared.tables)
    assert found == ({RUN: f"run {RUN[:8]} {fate}"} if fate else {})


def test_a_run_that_dagster_cannot_be_asked_about_is_at_work(
    declared: Project,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert ended_runs(declared, ledger, declared.tables) == {}
    assert not home.exists()  # nothing was ever run here
    empty_dagster(home)
    with project_instance(declared.root):
        pass
    for database in home.rglob("*.db"):
        database.write_bytes(b"not a database, and long enough to be looked at" * 99)
    assert ended_runs(declared, ledger, declared.tables) == {}
    assert "warning: Dagster's storage does not answer" in capsys.readouterr().err

"""`bqh doctor` from a user's side, on a project whose stack runs."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bq_harper_assets.cli.commands.doctor import system_table_finding
from bq_harper_assets.cli.main import bqh
from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.maritime.warehouse import Warehouse
from bq_harper_assets.stores.harper.mirror.tables import SystemTable

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]


@pytest.fixture
def project(
    tmp_path: Path, project_root: Path, stack: StackAddresses, monkeypatch: pytest.MonkeyPatch
) -> Path:
    shutil.copytree(project_root / "config", tmp_path / "config")
    tables = tmp_path / "config" / "tables.yaml"
    own = tables.read_text(encoding="utf-8").replace("dataset: maritime", "dataset: doctored")
    tables.write_text(own, encoding="utf-8")
    local_folder(tmp_path).mkdir()
    write_addresses(local_folder(tmp_path), stack)
    monkeypatch.setenv("BQH_HOME", str(tmp_path))
    return tmp_path


def _doctor(*options: str) -> Result:
    return CliRunner().invoke(bqh, ["doctor", *options], env={"COLUMNS": "200"})


def test_missing_tables_fail_with_what_to_type_and_pass_once_they_are_there(project: Path) -> None:
    before = _doctor()
    assert before.exit_code == 1
    assert "fail bigquery: vessel_positions: not there" in before.output
    assert "next: check projectId, dataset and table" in before.output
    Warehouse(_connection(project), "doctored").make()
    after = _doctor()
    assert after.exit_code == 0, after.output
    assert "ok   bigquery: vessel_positions" in after.output


@pytest.mark.promise("A13")
def test_each_setting_is_shown_with_where_it_came_from_and_no_secret(
    project: Path, stack: StackAddresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATIONSAPI_USER", "nobody")
    monkeypatch.setenv("OPERATIONSAPI_PASS", "canary-7f3a")
    report = json.loads(_doctor("--output", "json").output)
    shown = {s["name"]: (s["value"], s["source"]) for s in report["settings"]}
    assert shown["harper.url"] == (stack.harper_url, "local stack")
    assert shown["harper.user"] == ("nobody", "OPERATIONSAPI_USER")
    assert shown["harper.password"] == ("***", "OPERATIONSAPI_PASS")
    assert shown["bigquery.project"][1].startswith("config/tables.yaml:")
    assert shown["bigquery.maxBytesBilled"] == ("not set", "default")
    assert shown["bigquery.resultsDataset"] == ("bqh_results", "default")
    assert shown["tables.port_events.window"] == ("60m", "default")
    assert "canary-7f3a" not in json.dumps(report)
    assert [f["verdict"] for f in report["findings"] if f["subject"] == "harper: log in"] == [
        "fail"
    ]


def test_a_configuration_that_cannot_be_read_ends_with_all_its_problems(project: Path) -> None:
    tables = project / "config" / "tables.yaml"
    broken = tables.read_text(encoding="utf-8").replace("targetTable", "targetTabel")
    tables.write_text(broken, encoding="utf-8")
    done = _doctor()
    assert isinstance(done.exception, ConfigError)
    assert done.exception.exit_code == 2
    assert str(done.exception).count("targetTabel") >= 3


def test_without_a_stack_it_says_how_to_start_one(project: Path) -> None:
    shutil.rmtree(local_folder(project))
    done = _doctor()
    assert done.exit_code == 1
    assert "bqh up" in done.output


def _connection(project: Path):  # type: ignore[no-untyped-def]
    from bq_harper_assets.contract.project import load_project

    return load_project(project).bigquery


def test_the_one_table_that_runs_need_is_not_called_needless() -> None:
    advice = {
        name: system_table_finding(
            SystemTable(
                name=name, version=1, state="other layout", attributes=("id",), lacking=("epoch",)
            )
        ).next_step
        for name in ("SyncLease", "SyncAudit")
    }
    assert advice["SyncLease"] == (
        "every run needs it. What is lacking comes with the next run; if it is another tool's,"
        " drop it when no run goes on, and then type: bqh reconcile TABLE for each table"
    )
    assert (advice["SyncAudit"] or "").startswith("syncs do not need it.")

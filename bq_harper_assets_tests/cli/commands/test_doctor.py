"""`bqh doctor` from a user's side, on a project whose stack runs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bq_harper_assets.cli.commands.doctor import system_table_finding
from bq_harper_assets.cli.main import bqh
from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.loading.problems import ConfigError
from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.maritime.warehouse import Warehouse
from bq_harper_assets.stores.harper.mirror.tables import SystemTable
from bq_harper_assets_tests.small_disks import read_only
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

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


def _connection(project: Path) -> BigQueryConnection:
    return load_project(project).bigquery


def test_a_table_whose_source_or_columns_fail_is_not_ok(
    project: Path, bigquery_connection: BigQueryConnection
) -> None:
    source = SmallTables.at(bigquery_connection).make_from(numbered_rows(hours_ago(2), 5))
    declared = TemporaryProject(project)

    def of_table(**known: Any) -> tuple[str, str, str]:
        """The line of its source and of itself."""
        declared.declare(table(source, hours_ago(2), id="ships", **known))
        findings = json.loads(_doctor("--output", "json").output)["findings"]
        found = {each["subject"]: each for each in findings}
        shown = found["table ships"]
        return found["bigquery: ships"]["verdict"], shown["verdict"], shown["detail"]

    assert of_table()[:2] == ("ok", "ok")
    assert of_table(timestampColumn="tss") == (
        "fail",
        "fail",
        "cannot be synced as long as this fails: bigquery: ships",
    )
    source_line, own_line, told = of_table(key=["nummer"])
    assert (source_line, own_line) == ("ok", "fail")
    assert "nummer" in told


def test_what_cannot_be_written_fails_in_our_words_and_all_else_is_checked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert "dagster: settings: the dagster.yaml of" in _doctor().output  # it makes the files
    with read_only(home):
        done = _doctor()
    assert "\nok   harper: log in" in done.output
    [line] = [line for line in done.output.splitlines() if "dagster: settings" in line]
    assert line.startswith(f"fail dagster: settings: Dagster does not open {home}: files cannot be")
    assert "sqlalche" not in done.output.lower()
    assert "     next: let this user read and write there" in done.output


def test_nothing_is_cut_however_narrow_it_is(project: Path) -> None:
    piped = CliRunner().invoke(bqh, ["doctor"], env={"COLUMNS": "80"}).output
    settings = load_project(project).settings
    for setting in settings:
        assert f" {setting.name} " in piped
        assert f" {setting.value} " in piped
    assert "…" not in piped


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

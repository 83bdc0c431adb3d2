"""The button "Execute all" on the page of a table's checks, in a real Dagster."""

from pathlib import Path

import pytest

from bq_harper_assets_tests.cli.typed import typed_well
from bq_harper_assets_tests.defs.dagster_dev import DagsterDev, dagster_dev
from bq_harper_assets_tests.defs.shown import CHECKS, Shown
from bq_harper_assets_tests.long.processes.test_early_end_in_the_ui import RUN_STATUS
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
EXECUTE = """
mutation ($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  ... on LaunchRunSuccess { run { runId } }
  ... on PythonError { message }
} }
"""


def executed(dev: DagsterDev, path: list[str], checks: list[str]) -> dict[str, str]:
    """The button "Execute all" of the checks page: what each check shows then."""
    names = [{"assetKey": {"path": path}, "name": check} for check in checks]
    job = {"jobName": "__ASSET_JOB", "assetSelection": [], "assetCheckSelection": names}
    params = {"mode": "default", "executionMetadata": {}, "runConfigData": "{}"}
    selector = {"selector": dev.selector(**job)}  # type: ignore[arg-type]
    launched = dev.ask(EXECUTE, params={**params, **selector})["run"]["runId"]

    def ended() -> str | None:
        status: str = dev.ask(RUN_STATUS, id=launched)["status"]
        return status if status in ("SUCCESS", "FAILURE", "CANCELED") else None

    assert dev.wait_for(ended, within_s=400) == "SUCCESS"
    node = dev.ask(CHECKS, key={"path": path})
    seen = {each["name"]: each for each in node["assetChecksOrError"]["checks"]}
    current = {name: Shown(seen).current(name) for name in seen}
    assert {found and found["runId"] for found in current.values()} == {launched}
    return {name: found["status"] for name, found in current.items() if found}


def test_execute_all_proves_a_table_in_one_run(
    project: TemporaryProject, tables: SmallTables, tmp_path: Path
) -> None:
    start = hours_ago(4)
    source = tables.make_from(numbered_rows(start))
    [contract] = project.declare(table(source, start, live=False, slices=1)).tables
    path = ["harper", contract.target.table]
    typed_well("sync", contract.id)
    with dagster_dev(project.root, tmp_path / "dagster", tmp_path / "dagster.log") as dev:
        node = dev.ask(CHECKS, key={"path": path})
        checks = {each["name"]: each for each in node["assetChecksOrError"]["checks"]}
        assert executed(dev, path, sorted(checks)) == dict.fromkeys(checks, "SUCCEEDED")
        node = dev.ask(CHECKS, key={"path": path})
        checks = {each["name"]: each for each in node["assetChecksOrError"]["checks"]}
        for check in ("progress", "smoke", "spot", "proof"):
            assert Shown(checks).listed(check) == "succeeded"

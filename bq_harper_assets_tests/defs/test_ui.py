"""A user's first hour in the Dagster UI: each click is the request that the UI sends for it."""

from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.defs.schedules import newest_closed
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.dagster_dev import DagsterDev, dagster_dev
from bq_harper_assets_tests.defs.shown import CHECKS, Shown
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
MATERIALISE = """
mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  ... on LaunchBackfillSuccess { backfillId }
  ... on PythonError { message }
} }
"""
BACKFILL = """
query ($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
  status
  runs(limit: 10) { runId status }
} } }
"""
TURN_ON = """
mutation ($schedule: ScheduleSelector!) { startSchedule(scheduleSelector: $schedule) {
  ... on ScheduleStateResult { scheduleState { status } }
  ... on PythonError { message }
} }
"""
TRY_TICK = """
mutation ($schedule: ScheduleSelector!, $at: Float!) {
  scheduleDryRun(selectorData: $schedule, timestamp: $at) { ... on DryRunInstigationTick {
    evaluationResult { skipReason error { message } runRequests { tags { key value } } }
  } }
}
"""


def backfilled(dev: DagsterDev, contract_key: list[str], partitions: list[str]) -> dict[str, Any]:
    """Partitions ticked and launched: what became of it."""
    selection = {"assetSelection": [{"path": contract_key}], "partitionNames": partitions}
    launched = dev.ask(MATERIALISE, params=selection)

    def ended() -> dict[str, Any] | None:
        seen: dict[str, Any] = dev.ask(BACKFILL, id=launched["backfillId"])
        return None if seen["status"] in ("REQUESTED", "COMPLETED") else seen

    found: dict[str, Any] = dev.wait_for(ended, within_s=400)
    return found


@pytest.mark.promise("O5")
def test_partitions_are_launched_scheduled_and_read_in_the_ui(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables, tmp_path: Path
) -> None:
    start = hours_ago(4)
    source = tables.make_from(numbered_rows(start))
    # Of one slice: of several, Dagster's own backfill makes a run for each.
    [contract] = project.declare(table(source, start, live=False, slices=1)).tables
    keys = [f"{start + hour * HOUR:%FT%H:%M}|s00" for hour in (0, 1)]
    path = ["harper", contract.target_table]
    with dagster_dev(project.root, tmp_path / "dagster", tmp_path / "dagster.log") as dev:
        done = backfilled(dev, path, keys)
        assert done["status"] == "COMPLETED_SUCCESS", done
        assert [run["status"] for run in done["runs"]] == ["SUCCESS"]  # one for all windows
        node = dev.ask(CHECKS, key={"path": path})
        checks = {each["name"]: each for each in node["assetChecksOrError"]["checks"]}
        for check in ("progress", "smoke", "spot", "proof"):
            assert Shown(checks).partitions(check) == dict.fromkeys(keys, "succeeded")
        spot = Shown(checks).current("spot")
        assert spot is not None
        assert spot["evaluation"]["success"]

        schedule = dev.selector(scheduleName=f"{contract.id}_windows")
        started = dev.ask(TURN_ON, schedule=schedule)
        assert started["scheduleState"]["status"] == "RUNNING"
        at = hours_ago(0) + contract.safety_lag
        ticked = dev.ask(TRY_TICK, schedule=schedule, at=at.timestamp())["evaluationResult"]
        assert ticked["error"] is None
        [request] = ticked["runRequests"]
        tags = {tag["key"]: tag["value"] for tag in request["tags"]}
        window = newest_closed(contract, at).key
        assert tags["dagster/asset_partition_range_start"] == f"{window}|s00"
        assert tags["dagster/asset_partition_range_end"] == f"{window}|s00"
    assert dagster.materialised(contract) == set(keys)
    assert sorted(dagster.rows(contract)) == list(range(40))

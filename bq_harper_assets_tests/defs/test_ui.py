"""A user's first hour in the Dagster UI: each click is the request that the UI sends for it."""

import time
from pathlib import Path
from typing import Any

import pytest

from bq_harper_assets.defs.partitions import newest_closed
from bq_harper_assets.defs.runs.run_process import HOST, PID, RUN
from bq_harper_assets.local import processes
from bq_harper_assets_tests.cli.typed import typed_well
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

ENDS_WITHIN_S = 30.0
pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
# Of Dagster's other command line, of our dagster.yaml, and of Java: nothing that a user can act on.
FOREIGN = ("SupersessionWarning", "will not be used", "incubator modules")
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
RUN_TAGS = """
query ($id: ID!) { runOrError(runId: $id) { ... on Run { tags { key value } } } }
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


@pytest.mark.promise("O5", "H1")
def test_partitions_are_launched_scheduled_and_read_in_the_ui(
    dagster: Dagster,
    project: TemporaryProject,
    tables: SmallTables,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = hours_ago(4)
    source = tables.make_from(numbered_rows(start))
    # Of one slice: of several, Dagster's own backfill makes a run for each.
    [contract] = project.declare(table(source, start, live=False, slices=1)).tables
    keys = [f"{start + hour * HOUR:%FT%H:%M}|s00" for hour in (0, 1)]
    path = ["harper", contract.target.table]
    log = tmp_path / "dagster.log"
    monkeypatch.setenv("BQH_HOME", str(project.root))
    with dagster_dev(project.root, tmp_path / "dagster", log) as dev:
        second = typed_well("ui")  # DAGSTER_HOME is the same
        assert second.startswith(f"Dagster runs already for {tmp_path / 'dagster'}: {dev.url}.")
        assert second.endswith(f"or kill {dev.pid}\n")
        done = backfilled(dev, path, keys)
        assert done["status"] == "COMPLETED_SUCCESS", done
        assert [run["status"] for run in done["runs"]] == ["SUCCESS"]  # one for all windows
        [run] = done["runs"]
        tags = {tag["key"]: tag["value"] for tag in dev.ask(RUN_TAGS, id=run["runId"])["tags"]}
        # By which run monitoring notices that its process was killed.
        assert (tags[HOST], tags[RUN]) == (processes.here(), run["runId"])
        assert _has_ended(int(tags[PID]))
        node = dev.ask(CHECKS, key={"path": path})
        checks = {each["name"]: each for each in node["assetChecksOrError"]["checks"]}
        assert Shown(checks).partitions() == dict.fromkeys(keys, "succeeded")
        for check in ("progress", "smoke", "spot", "proof"):
            assert Shown(checks).listed(check) == "succeeded"
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
    said = log.read_text(encoding="utf-8")
    assert [words for words in FOREIGN if words in said] == []
    assert dagster.materialised(contract) == set(keys)
    assert sorted(dagster.rows(contract)) == list(range(40))


def _has_ended(pid: int) -> bool:
    """Whether a run's process ends soon after its run, whose status it sets before its own end."""
    limit = time.monotonic() + ENDS_WITHIN_S
    while processes.find_process(pid) is not None:
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True

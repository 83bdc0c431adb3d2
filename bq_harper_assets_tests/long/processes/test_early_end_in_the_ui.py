"""The button Terminate of a real Dagster, on a run of its own worker that is about to write."""

import threading
import time
from pathlib import Path

import pytest

from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets_tests.defs.dagster_dev import dagster_dev
from bq_harper_assets_tests.defs.test_ui import BACKFILL, MATERIALISE
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
TERMINATE = """
mutation ($id: String!) { terminateRun(runId: $id, terminatePolicy: SAFE_TERMINATE) {
  __typename ... on TerminateRunFailure { message } ... on PythonError { message }
} }
"""
RUN_STATUS = """
query ($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }
"""
LOGS = """
query ($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  ... on MessageEvent { message }
  ... on ExecutionStepFailureEvent { failureMetadata { description } error { message } }
} } } }
"""
BEGINS_WITHIN_S = 300.0
ENDS_WITHIN_S = 15.0


def test_terminate_ends_a_run_of_the_ui_within_fifteen_seconds_and_says_what_is_safe(
    tmp_path: Path,
    project_root: Path,
    stack: StackAddresses,
    proxy: FaultProxy,
    tables: SmallTables,
) -> None:
    addresses = stack.model_copy(update={"harper_url": proxy.url})
    project = TemporaryProject.at(tmp_path / "project", project_root, addresses)
    start = hours_ago(4)
    source = tables.make_from(numbered_rows(start))
    [contract] = project.declare(table(source, start, live=False, slices=1)).tables
    never = threading.Event()
    proxy.on(Delay(never), operation="upsert", table=contract.target.table, times=99)
    with dagster_dev(project.root, tmp_path / "dagster", tmp_path / "dagster.log") as dev:
        asked = {
            "assetSelection": [{"path": ["harper", contract.target.table]}],
            "partitionNames": [f"{start:%FT%H:%M}|s00"],
        }
        backfill = dev.ask(MATERIALISE, params=asked)["backfillId"]
        dev.wait_for(
            lambda: proxy.seen(operation="upsert", table=contract.target.table) or None,
            within_s=BEGINS_WITHIN_S,
        )
        [run] = dev.ask(BACKFILL, id=backfill)["runs"]
        clicked = time.monotonic()
        assert dev.ask(TERMINATE, id=run["runId"])["__typename"] == "TerminateRunSuccess"

        def ended() -> str | None:
            status: str = dev.ask(RUN_STATUS, id=run["runId"])["status"]
            return None if status in ("STARTED", "CANCELING") else status

        assert dev.wait_for(ended, within_s=2 * ENDS_WITHIN_S) == "CANCELED"
        assert time.monotonic() - clicked < ENDS_WITHIN_S
        said = str(dev.ask(LOGS, id=run["runId"]))
        assert f"stopped: 0 of 1 cells of {contract.id} are committed" in said
        never.set()

"""A key that the first sync froze is told before a run is made, by every way that leads to one."""

import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance
from dagster_pyspark import LazyPySparkResource

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.contract.fields.quantities import window_text
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.runs.launch import launch
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.cli.typed import told, typed
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
START = hours_ago(3)
CHANGES = [
    ({"window": "1d"}, "window was 60m and is 1d"),
    ({"timestampColumn": "at"}, "timestampColumn was ts and is at"),
    ({"key": ["number"]}, "key was the whole row and is number"),
    ({"slices": 3}, "declared with 3 slices and was synced with 2"),
]


@contextmanager
def synced(project: Project) -> Iterator[None]:
    """As far as the ledger knows: a batch of its first table was planned."""
    [contract, *_] = project.tables
    with open_ledger(project.ledger.url) as ledger:
        known = ledger.register_route(table_facts(contract, project.bigquery.project))
        ledger.record_schema(known, {"columns": []}, 0)
        leases = ledger.acquire(known, [0], "a run", HOUR)
        cell = CellKey.of_window(START, START + HOUR, 0)
        ledger.plan(
            leases,
            START + 2 * HOUR,
            1,
            [Wanted(cell=cell, mode=Mode.COPY, fingerprint="fp")],
            "run",
        )
        ledger.release(leases)
    yield


def declared() -> dict[str, Any]:
    """Of a source of its own, which nothing here looks at."""
    return table(TableRef("local", "nowhere", f"t{uuid.uuid4().hex}"), START)


@pytest.mark.parametrize(("change", "saying"), CHANGES)
def test_sync_and_doctor_say_it_before_a_run_is_made(
    project: TemporaryProject, change: dict[str, Any], saying: str
) -> None:
    first = declared()
    with synced(project.declare(first)):
        project.declare(first | change)
    ended = typed("sync", first["id"])
    assert ended.exception is not None
    assert saying in str(ended.exception)
    assert getattr(ended.exception, "exit_code", None) == ExitCode.USAGE
    assert ("slices set" in str(ended.exception)) is ("slices" in change)
    found = json.loads(typed("doctor", "--output", "json").stdout)["findings"]
    [finding] = [each for each in found if each["subject"] == f"table {first['id']}"]
    assert finding["verdict"] == "fail"
    assert saying in finding["detail"]


def test_definitions_load_with_the_others_and_no_run_of_the_changed_one_begins(
    project: TemporaryProject, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, other = declared(), declared()
    with synced(project.declare(first, other)):
        project.declare(first | {"window": "1d"}, other)
    with caplog.at_level(logging.WARNING):
        definitions = build_definitions(project.root)
    assert "window was 60m and is 1d" in caplog.text
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    assert "window was 60m" in (specs[AssetKey(["harper", first["targetTable"]])].description or "")
    assert "kept equal" in (specs[AssetKey(["harper", other["targetTable"]])].description or "")

    def no_spark(self: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(LazyPySparkResource, "spark_session", property(no_spark))
    [contract, _] = load_project(project.root).tables
    assert window_text(contract.window) == "1d"
    [window] = list(windows_between(START, START + HOUR, contract.window))
    cells = [Cell(window, number) for number in range(2)]
    with DagsterInstance.ephemeral() as instance:
        launched = launch(definitions, instance, contract, cells)
    assert "window was 60m and is 1d" in (launched.error or "")


def test_a_declaration_under_which_nothing_was_synced_is_not_frozen(
    project: TemporaryProject,
) -> None:
    first = declared()
    loaded = project.declare(first)
    with open_ledger(loaded.ledger.url) as ledger:
        ledger.register_route(table_facts(loaded.tables[0], loaded.bigquery.project))
    project.declare(first | {"timestampColumn": "at", "window": "1d"})
    found = told("doctor", code=1)["findings"]  # there is no such table in BigQuery
    [finding] = [each for each in found if each["subject"] == f"table {first['id']}"]
    assert finding["detail"] == f"cannot be synced as long as this fails: bigquery: {first['id']}"

"""What is shown of a version of a schema, and which versions were not shown yet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckSeverity, AssetMaterialization, DagsterInstance

from bq_harper_assets.defs.names import schema_key, target_key
from bq_harper_assets.defs.schema.drift_check import evaluation
from bq_harper_assets.defs.schema.schema_asset import (
    column_table,
    unshown,
    version_metadata,
    version_shown,
)
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.schema_sync.version_history import VersionStep, version_steps
from bq_harper_assets.validation.schema_drift import DriftVerdict
from bq_harper_assets.validation.verdict import Severity
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.schema.versions import seen

ORDERS = contract(key=("number",))
SPEED = Column(name="speed", kind=Kind.FLOAT64, description="in knots")
NAME = Column(name="name", kind=Kind.STRING, required=True)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def steps_of(ledger: Ledger, *schemas: tuple[Column, ...]) -> tuple[VersionStep, ...]:
    route, version = ledger.register_route(table_facts(ORDERS, "p")), None
    for number, columns in enumerate(schemas):
        version = seen(version, *columns)
        ledger.record_schema(route, version.body(), number, "ann", "drift")
    return version_steps(ledger, ORDERS)


def test_a_version_says_what_it_changed_and_who_recorded_it_why(ledger: Ledger) -> None:
    first, second, third = steps_of(ledger, (SPEED,), (SPEED, NAME), (NAME,))
    told: dict[str, Any] = version_metadata(second)
    assert (told["schema_version"], told["recorded_by"], told["cause"]) == (2, "ann", "drift")
    assert told["columns"] == 4
    assert told["recorded_at"].value == second.recorded.recorded_at.timestamp()
    assert "| name | added |" in told["changes"].value
    assert version_metadata(first)["changes"].value == "the first version"
    assert version_metadata(third)["columns"] == 3  # that which is gone does not count
    same = VersionStep(third.recorded, third.version, ())
    assert version_metadata(same)["changes"].value == "nothing that rows depend on"


def test_each_column_is_shown_as_bigquery_types_it_and_harper_stores_it() -> None:
    version: TableVersion = seen(seen(None, SPEED, NAME), NAME)
    columns = {each.name: each for each in column_table(version).columns}
    speed, name, time = columns["speed"], columns["name"], columns["event_time"]
    assert (speed.type, speed.description) == ("FLOAT64", "in knots")
    assert speed.constraints.other[0] == "Harper: Float"
    assert speed.constraints.other[-1] == "retired"
    assert speed.constraints.nullable
    assert (name.constraints.nullable, name.description) == (False, None)
    assert name.constraints.other == ["Harper: String"]
    assert "indexed" in time.constraints.other


def test_versions_since_the_one_that_dagster_shows_were_not_shown(ledger: Ledger) -> None:
    steps = steps_of(ledger, (SPEED,), (SPEED, NAME), (NAME,))
    with DagsterInstance.ephemeral() as instance:
        assert unshown(instance, ORDERS, steps) == list(steps)
        instance.report_runless_asset_event(AssetMaterialization(schema_key(ORDERS)))
        assert unshown(instance, ORDERS, steps) == list(steps)
        event = version_shown(ORDERS, steps[1])
        assert event.asset_key == schema_key(ORDERS)
        instance.report_runless_asset_event(event)
        assert unshown(instance, ORDERS, steps) == [steps[2]]


def test_a_drift_is_filed_with_its_changes_and_the_figures_of_the_look(ledger: Ledger) -> None:
    *_, step = steps_of(ledger, (SPEED,), (SPEED, NAME))
    verdict = DriftVerdict(
        message="name added",
        version=2,
        passed=False,
        severity=Severity.ERROR,
        changes=step.changes,
    )
    filed = evaluation(ORDERS, verdict, {"metadata_calls": 7})
    assert (filed.asset_key, filed.check_name) == (target_key(ORDERS), "schema_drift")
    assert (filed.passed, filed.severity) == (False, AssetCheckSeverity.ERROR)
    assert filed.description == "name added"
    told = {name: each.value for name, each in filed.metadata.items()}
    assert (told["schema_version"], told["metadata_calls"]) == (2, 7)
    assert "| name | added |" in str(told["changes"])
    fine = evaluation(ORDERS, DriftVerdict(message="as in BigQuery", version=2), {})
    assert (fine.passed, fine.severity) == (True, AssetCheckSeverity.WARN)
    assert list(fine.metadata) == ["schema_version"]

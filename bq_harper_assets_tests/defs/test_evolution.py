"""Each change of a source from end to end: the sensor sees it, a run follows it, a sync is proved.

Rows lie in windows that are synced and closed, synced and open, and not synced yet.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from dagster import AssetCheckSeverity

from bq_harper_assets.cli.commands.sync import sync_json
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.defs.checks.evaluations import PER_PARTITION
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.evolving_project import EvolvingProject
from bq_harper_assets_tests.sync.evolving import NEXT, NO, OLD, OLDER, OPEN, Evolving
from bq_harper_assets_tests.temporary_project import TemporaryProject

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
WITH_CITY = "* REPLACE (STRUCT(address.zip AS zip, 'x' AS city) AS address)"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A change, what is said of it, and what Harper holds then of three rows."""

    columns: str
    change: Callable[[Evolving], None]
    says: str
    held: dict[str, tuple[Any, Any, Any]]  # by attribute: closed, not synced before, open
    newer: tuple[str, ...] = ()  # than the windows that were closed before
    declared: dict[str, Any] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    lasts: bool = False  # it is told until somebody accepts it

    @property
    def is_frozen(self) -> bool:
        return self.declared.get("schemaPolicy") == "freeze"


CASES = {
    "retyped": Case(
        columns="CAST(n AS STRING) AS speed",
        change=lambda source: source.remake("* REPLACE (CAST(speed AS INT64) AS speed)"),
        says="speed retyped (STRING -> INT64): synced into speed_v2 from now on; speed keeps",
        held={"speed": ("0", NO, "30"), "speed_v2": (NO, 20, 30)},
        newer=("speed_v2",),
        lasts=True,
    ),
    "removed": Case(
        columns="CAST(n AS STRING) AS name",
        change=lambda source: source.drop("name"),
        says="name removed (STRING): gone since 20",
        held={"name": ("0", NO, "30")},
        lasts=True,
    ),
    "renamed": Case(
        columns="CAST(n AS STRING) AS name",
        change=lambda source: source.rename("name", "title"),
        says="title renamed (name -> title): Harper keeps it as name",
        held={"name": ("0", "20", "30"), "title": (NO, NO, NO)},
        renames={"name": "title"},
    ),
    "nested": Case(
        columns="STRUCT(CAST(n AS STRING) AS zip) AS address",
        change=lambda source: source.remake(WITH_CITY),
        says="synced into address.city from now on",
        held={"address": ({"zip": "0"}, {"zip": "20", "city": "x"}, {"zip": "30", "city": "x"})},
        newer=("address.city",),
    ),
    "frozen": Case(
        columns="CAST(n AS STRING) AS name",
        change=lambda source: source.add(load="INT64"),
        says="load added (INT64): not synced: the policy is freeze",
        held={"name": ("0", "20", "30"), "load": (NO, NO, NO)},
        declared={"schemaPolicy": "freeze"},
    ),
}


@pytest.mark.promise("O4", "D2", "D3", "D4", "E5", "F1")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_change_is_seen_told_followed_synced_and_proved(
    case: Case,
    dagster: Dagster,
    project: TemporaryProject,
    evolving: Callable[..., EvolvingProject],
) -> None:
    table = evolving(case.columns, **case.declared)
    table.source.run(OLDER, OLD, OPEN)
    assert table.sensor.tick() == []
    case.change(table.source)
    if case.renames:
        table = table.redeclared(project, renames=case.renames)
    sensor, source, contract = table.sensor, table.source, table.source.contract

    requests = sensor.look()
    told = sensor.shown(contract)
    assert told is not None
    severity = AssetCheckSeverity.ERROR if case.is_frozen else AssetCheckSeverity.WARN
    assert (told.passed, told.severity) == (False, severity)
    assert case.says in (told.description or "")
    assert told.metadata["schema_version"].value == 2
    assert [request.run_key for request in requests] == [f"{contract.id}-2"] * (not case.is_frozen)
    for request in requests:
        sensor.run(request)
    first, second = sensor.versions(contract)
    assert first.metadata["changes"].value == "the first version"
    assert case.says in str(second.metadata["changes"].value) + (told.description or "")
    assert ("table_action" in second.metadata) is not case.is_frozen

    launched = table.sync(NEXT, OPEN)
    assert {done["schema_version"] for done in launched.done.values()} == {2}
    assert (case.says in (launched.not_synced or "")) is case.is_frozen
    assert (
        sync_json(contract, RunResults((launched,), 2, 1.0), None)["not_synced"]
        == launched.not_synced
    )
    values = source.values(*case.held)
    assert [values[n] for n in (0, 20, 30)] == list(zip(*case.held.values(), strict=True))
    [proved] = [
        each
        for each in dagster.evaluations(contract, PER_PARTITION, launched.run_id)
        if each.partition in {cell.key for cell in source.cells(NEXT)}
    ]
    assert proved.passed
    newer = dict.fromkeys((OLDER, OLD), case.newer)
    source.assert_proved(OLDER, OLD, NEXT, OPEN, without=newer)

    assert sensor.look() == []
    stays = case.is_frozen or case.lasts
    assert [each.passed for each in sensor.filed] == ([] if stays else [True])
    assert len(sensor.versions(contract)) == 2

"""What others record between two looks is told at the next tick, and BigQuery is not asked."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from bq_harper_assets_tests.defs.drifting import MINUTE, Drifting, LedgerClock, moment
from bq_harper_assets_tests.defs.evolving_project import EvolvingProject
from bq_harper_assets_tests.sync.evolving import OLD, OLDER

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
TICK = timedelta(seconds=30)


@pytest.mark.promise("D7", "D8", "O4")
def test_what_a_sync_has_seen_is_told_at_the_next_tick_and_brings_the_short_waits_back(
    evolving: Callable[..., EvolvingProject], clock: LedgerClock
) -> None:
    project = evolving("CAST(n AS STRING) AS name")
    sensor, source = project.sensor, project.source
    for _ in range(5):
        sensor.look()
        assert sensor.filed == []
    assert (sensor.wait / MINUTE, sensor.cursor["metadata_calls_so_far"]) == (
        16.875,
        0,
    )  # nothing to compare
    lost = Drifting(project.dagster, clock)
    lost.tick()
    for name in ("next_look", "last_look", "pace"):  # the ledger has them too
        assert lost.cursor[name] == sensor.cursor[name]

    source.run(OLDER)
    clock.forward(TICK)
    assert sensor.tick() == []
    [told] = sensor.filed
    assert (told.passed, told.description) == (True, "as in BigQuery: schema version 1")
    assert sensor.cursor["metadata_calls_so_far"] == 0
    assert sensor.cursor["pace"] == {"wait": "PT5M", "stable": 0}
    [first] = sensor.versions(source.contract)
    clock.forward(4 * MINUTE)
    sensor.tick()
    assert sensor.cursor["metadata_calls_so_far"] == 0
    clock.forward(MINUTE)
    waits = []
    for _ in range(4):
        sensor.tick()
        assert (sensor.filed, sensor.cursor["could_not_look"]) == ([], {})
        waits.append(sensor.wait / MINUTE)
        clock.forward(sensor.wait + timedelta(seconds=1))
    assert (waits, sensor.cursor["metadata_calls_so_far"]) == ([5, 5, 7.5, 11.25], 4)
    sensor.tick()

    source.add(speed="FLOAT64")
    source.run(OLD)
    clock.forward(TICK)
    looked_at, would_look_at = (moment(sensor.cursor[n]) for n in ("last_look", "next_look"))
    assert sensor.tick() == []
    [told] = sensor.filed
    assert (told.passed, told.metadata["schema_version"].value) == (False, 2)
    assert "speed added (FLOAT64): synced into speed from now on" in (told.description or "")
    assert told.metadata["metadata_calls"].value == 0
    soon = moment(sensor.cursor["next_look"])
    assert 0 < told.metadata["drift_detection_seconds"].value < 300
    seconds = timedelta(seconds=float(str(told.metadata["drift_detection_seconds"].value)))
    assert soon == looked_at + seconds + 5 * MINUTE < would_look_at
    assert (sensor.cursor["metadata_calls_so_far"], sensor.wait) == (5, 5 * MINUTE)
    assert told.description in (sensor.said or "")
    assert [each.metadata["schema_version"].value for each in sensor.versions(source.contract)] == [
        first.metadata["schema_version"].value,
        2,
    ]
    sensor.tick()
    assert sensor.filed == []

    lost = Drifting(project.dagster, clock)
    lost.tick()
    assert lost.cursor["next_look"] == sensor.cursor["next_look"]
    assert len(sensor.versions(source.contract)) == 2
    clock.forward(5 * MINUTE)
    sensor.tick()
    assert sensor.cursor["metadata_calls_so_far"] == 6
    assert [told.description for told in sensor.filed] == ["as in BigQuery: schema version 2"]

"""What others record between two looks is told at the next tick, and BigQuery is not asked."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from bq_harper_assets_tests.defs.drifting import Drifting, LedgerClock
from bq_harper_assets_tests.defs.evolving_project import EvolvingProject
from bq_harper_assets_tests.sync.evolving import OLD, OLDER

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
TICK = timedelta(seconds=30)


@pytest.mark.promise("D8", "O4")
def test_what_a_sync_has_seen_is_told_at_the_next_tick_and_the_looks_keep_their_pace(
    evolving: Callable[..., EvolvingProject], clock: LedgerClock
) -> None:
    project = evolving("CAST(n AS STRING) AS name")
    sensor, source = project.sensor, project.source
    sensor.look()
    assert sensor.filed == []
    assert sensor.cursor["metadata_calls_so_far"] == 0  # nothing to compare
    lost = Drifting(dagster=project.dagster, clock=clock)
    lost.tick()
    for name in ("next_look", "last_look"):  # the ledger has them too
        assert lost.cursor[name] == sensor.cursor[name]

    would_look_at = sensor.cursor["next_look"]
    source.run(OLDER)
    clock.forward(TICK)
    assert sensor.tick() == []
    [told] = sensor.filed
    assert (told.passed, told.description) == (True, "as in BigQuery: schema version 1")
    assert sensor.cursor["metadata_calls_so_far"] == 0
    assert sensor.cursor["next_look"] == would_look_at
    [first] = sensor.versions(source.contract)
    sensor.look()
    assert (sensor.filed, sensor.cursor["could_not_look"]) == ([], {})
    assert sensor.cursor["metadata_calls_so_far"] == 1

    source.add(speed="FLOAT64")
    source.run(OLD)
    clock.forward(TICK)
    would_look_at = sensor.cursor["next_look"]
    assert sensor.tick() == []
    [told] = sensor.filed
    assert (told.passed, told.metadata["schema_version"].value) == (False, 2)
    assert "speed added (FLOAT64): synced into speed from now on" in (told.description or "")
    assert told.metadata["metadata_calls"].value == 0
    assert 0 < told.metadata["drift_detection_seconds"].value < 300
    assert sensor.cursor["next_look"] == would_look_at
    assert sensor.cursor["metadata_calls_so_far"] == 1
    assert told.description in (sensor.said or "")
    assert [each.metadata["schema_version"].value for each in sensor.versions(source.contract)] == [
        first.metadata["schema_version"].value,
        2,
    ]
    sensor.tick()
    assert sensor.filed == []

    lost = Drifting(dagster=project.dagster, clock=clock)
    lost.tick()
    assert lost.cursor["next_look"] == sensor.cursor["next_look"]
    assert len(sensor.versions(source.contract)) == 2
    sensor.look()
    assert sensor.cursor["metadata_calls_so_far"] == 2
    assert [told.description for told in sensor.filed] == ["as in BigQuery: schema version 2"]

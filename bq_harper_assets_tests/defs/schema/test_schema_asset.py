"""The asset of a schema shows every version once, whoever has recorded and followed it."""

from collections.abc import Callable

import pytest

from bq_harper_assets_tests.defs.evolving_project import EvolvingProject
from bq_harper_assets_tests.sync.evolving import NEXT, OLD, OLDER

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("F1", "O4")
def test_versions_of_syncs_of_looks_and_of_evolutions_are_all_shown_once_and_in_their_order(
    evolving: Callable[..., EvolvingProject],
) -> None:
    project = evolving("CAST(n AS STRING) AS name")
    sensor, source = project.sensor, project.source
    assert sensor.look() == []
    assert sensor.versions(source.contract) == []
    source.run(OLDER)
    assert sensor.look() == []
    [first] = sensor.versions(source.contract)
    assert first.metadata["cause"].value == "first sync"
    assert first.metadata["changes"].value == "the first version"
    assert [each.name for each in first.metadata["dagster/column_schema"].schema.columns] == [
        *("number", "ts", "name")
    ]

    source.add(speed="FLOAT64")
    source.run(OLD)
    source.drop("name")
    source.run(NEXT)
    assert sensor.look() == []
    _, second, third = sensor.versions(source.contract)
    assert second.metadata["cause"].value == "a sync saw it"
    assert "| speed | added |" in second.metadata["changes"].value
    assert "| name | removed |" in third.metadata["changes"].value
    assert "speed" not in third.metadata["changes"].value

    source.add(load="INT64")
    [request] = sensor.look()  # its run shows the version
    assert len(sensor.versions(source.contract)) == 3
    sensor.run(request)
    source.add(crew="INT64")
    [request] = sensor.look()
    source.add(flag="STRING")
    source.run(NEXT)
    sensor.run(request)  # late: it finds a version after the one that it was asked for
    for _ in range(2):
        assert sensor.look() == []
    shown = sensor.versions(source.contract)
    assert [each.metadata["schema_version"].value for each in shown] == [1, 2, 3, 4, 5, 6]
    kept = {*second.metadata}
    assert [kept ^ {*each.metadata} for each in shown] == [
        *(set(), set(), set(), {"table_action"}, set(), {"table_action"})
    ]
    sensor.cursor = {}
    sensor.look()
    assert len(sensor.versions(source.contract)) == 6

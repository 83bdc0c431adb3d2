"""The three tables of a scenario: exact counts, in order, related, the same each time."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, sized
from bq_harper_assets.maritime.itinerary import SECOND
from bq_harper_assets.maritime.ports import PORTS
from bq_harper_assets.maritime.reports import Schedule, TooManyRows, microseconds
from bq_harper_assets.maritime.vessel_types import VESSEL_TYPES
from bq_harper_assets_tests.maritime.great_circle import distance_km

END = microseconds(datetime(2026, 11, 16, 12, 0, tzinfo=UTC))


def sample(name: str, seed: int = 7) -> Sample:
    return Sample(SCENARIOS[name], seed, END)


def positions(made: Sample, batch: int = 65_536) -> Any:
    numbers = np.arange(made.scenario.positions)
    batches = np.split(numbers, range(batch, len(numbers), batch))
    return pa.concat_tables([made.reports.fresh(each) for each in batches]).combine_chunks()


def test_more_rows_bring_more_events_and_vessels_in_proportion() -> None:
    million = sized(SCENARIOS["stress"], rows=1_000_000)
    assert (million.events, million.vessels) == (50_000, 10_000)
    assert sized(SCENARIOS["stress"], rows=100_000_000).vessels == 900_000  # all that there can be
    assert sized(SCENARIOS["small"], vessels=100_000).vessels == 100_000
    assert sized(SCENARIOS["small"], vessels=100_000).positions == 100


@pytest.mark.promise("K5")
@pytest.mark.parametrize("name", ["realistic", "stress"])
def test_consecutive_reports_of_a_vessel_are_within_its_types_speed(name: str) -> None:
    table = positions(sample(name)).sort_by([("mmsi", "ascending"), ("timestamp", "ascending")])
    mmsi = table["mmsi"].to_numpy()
    lat, lon = table["latitude"].to_numpy(), table["longitude"].to_numpy()
    hours = np.diff(table["timestamp"].cast(pa.int64()).to_numpy()) / SECOND / 3600
    most = {kind.name: kind.speed_knots[1] for kind in VESSEL_TYPES}
    limit = np.array([most[kind] for kind in table["vessel_type"].to_pylist()])
    same = mmsi[1:] == mmsi[:-1]
    knots = distance_km(lat[:-1], lon[:-1], lat[1:], lon[1:])[same] / 1.852 / hours[same]
    assert (hours[same] > 0).all()
    assert (knots <= limit[1:][same] * 1.05).all()


@pytest.mark.promise("K3")
@pytest.mark.parametrize("name", ["small", "realistic"])
def test_positions_and_events_are_of_registered_vessels_and_known_ports(name: str) -> None:
    made = sample(name)
    register, table, events = made.register(), positions(made), made.events()
    vessels = register["mmsi"].combine_chunks()
    names = {port.name for port in PORTS}
    assert pc.all(pc.is_in(table["mmsi"], value_set=vessels)).as_py()
    assert pc.all(pc.is_in(events["vessel_mmsi"], value_set=vessels)).as_py()
    assert set(table["destination"].to_pylist()) - {None} <= names
    assert set(register["home_port"].to_pylist()) <= names
    at = {port.id: (port.name, *port.at) for port in PORTS}
    for event in events.to_pylist():
        assert (event["port_name"], event["latitude"], event["longitude"]) == at[event["port_id"]]


@pytest.mark.promise("K3")
def test_a_vessel_says_the_same_of_itself_in_positions_and_register() -> None:
    made = sample("small")
    told = {row["mmsi"]: row for row in made.register().to_pylist()}
    for row in positions(made).to_pylist():
        for column in ("imo", "vessel_name", "vessel_type", "flag", "length", "beam"):
            assert row[column] == told[row["mmsi"]][column]
        assert row["report_date"] == row["timestamp"].strftime("%Y%m%d")
        assert row["heading"] == row["course"]
        assert (row["eta"] is None) == (row["destination"] is None) == (row["speed_knots"] == 0)


def test_rows_closer_than_timestamps_can_tell_are_refused() -> None:
    with pytest.raises(TooManyRows, match="1 to 500,000 do"):
        Schedule(seed=7, vessels=1, origin=0, span=SECOND, rows=500_001)
    assert (
        len(
            set(
                Schedule(seed=7, vessels=1, origin=0, span=SECOND, rows=500_000).times(
                    np.arange(1_000_000)
                )
            )
        )
        == 1_000_000
    )

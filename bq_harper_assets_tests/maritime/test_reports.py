"""The three tables of a scenario: exact counts, in order, related, the same each time."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bq_harper_assets.maritime.initialize import SCENARIOS, Sample, sized
from bq_harper_assets.maritime.itinerary import SECOND, build_itineraries
from bq_harper_assets.maritime.port_calls import events_between, last_events
from bq_harper_assets.maritime.ports import PORTS
from bq_harper_assets.maritime.reports import Schedule, TooManyRows, microseconds
from bq_harper_assets.maritime.track import MOORED, UNDERWAY, locate
from bq_harper_assets.maritime.vessel_types import VESSEL_TYPES
from bq_harper_assets.maritime.warehouse import parquet_bytes
from bq_harper_assets_tests.maritime.great_circle import distance_km

END = microseconds(datetime(2026, 11, 16, 12, 0, tzinfo=UTC))


def sample(name: str, seed: int = 7) -> Sample:
    return Sample(SCENARIOS[name], seed, END)


def positions(made: Sample, batch: int = 65_536) -> Any:
    numbers = np.arange(made.scenario.positions)
    batches = np.split(numbers, range(batch, len(numbers), batch))
    return pa.concat_tables([made.reports.fresh(each) for each in batches]).combine_chunks()


@pytest.mark.promise("K1")
@pytest.mark.parametrize(
    ("name", "rows", "events", "vessels", "hours"),
    [
        ("small", 100, 10, 20, 1),
        ("realistic", 10_000, 500, 100, 24),
        ("stress", 100_000, 5_000, 1_000, 168),
    ],
)
def test_a_scenario_has_exactly_its_rows_within_its_span(
    name: str, rows: int, events: int, vessels: int, hours: int
) -> None:
    made = sample(name)
    table = positions(made)
    assert (table.num_rows, made.events().num_rows, made.register().num_rows) == (
        rows,
        events,
        vessels,
    )
    assert len(table["mmsi"].unique()) == vessels
    times = table["timestamp"].cast(pa.int64()).to_numpy()
    assert END - hours * 3600 * SECOND <= times[0]
    assert times[-1] < END
    assert times[-1] - times[0] > 0.98 * hours * 3600 * SECOND
    assert (np.diff(times) > 0).all()


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


@pytest.mark.promise("K3")
def test_port_calls_happen_in_order() -> None:
    after = {
        "ARRIVAL": {"BERTHED", "ANCHORED"},
        "BERTHED": {"DEPARTURE"},
        "ANCHORED": {"DEPARTURE"},
        "DEPARTURE": {"UNDERWAY"},
        "UNDERWAY": {"ARRIVAL"},
    }
    events = last_events(build_itineraries(7, 100), 3_000, END).to_pylist()
    last: dict[str, Any] = {}
    moves = 0
    for event in events:
        before = last.get(event["vessel_mmsi"])
        if before is not None:
            assert event["event_type"] in after[before["event_type"]]
            assert event["event_time"] >= before["event_time"]
            if event["event_type"] == "ARRIVAL":
                moves += event["port_id"] != before["port_id"]
            else:
                assert event["port_id"] == before["port_id"]
        last[event["vessel_mmsi"]] = event
    assert moves > 100
    assert {event["event_type"] for event in events} == set(after)


@pytest.mark.promise("K3")
def test_events_agree_with_positions() -> None:
    plan = build_itineraries(7, 100)
    number = {mmsi: i for i, mmsi in enumerate(plan.fleet.mmsi.to_pylist())}
    events = last_events(plan, 800, END)
    vessel = np.array([number[mmsi] for mmsi in events["vessel_mmsi"].to_pylist()])
    time = events["event_time"].cast(pa.int64()).to_numpy()
    kind = np.array(events["event_type"].to_pylist())
    at, before = locate(plan, vessel, time).status, locate(plan, vessel, time - 1).status
    assert (at[kind == "BERTHED"] == MOORED).all()
    assert (before[kind == "BERTHED"] == UNDERWAY).all()
    assert (at[kind == "DEPARTURE"] == UNDERWAY).all()
    assert (before[kind == "DEPARTURE"] != UNDERWAY).all()
    assert (at[np.isin(kind, ["ARRIVAL", "UNDERWAY"])] == UNDERWAY).all()


def test_the_event_log_has_no_gap_and_no_overlap_where_it_is_cut() -> None:
    plan = build_itineraries(7, 200)
    whole = events_between(plan, END - 40 * 86_400 * SECOND, END)
    cut = END - 13 * 86_400 * SECOND - 12_345
    parts = [events_between(plan, END - 40 * 86_400 * SECOND, cut), events_between(plan, cut, END)]
    assert whole.num_rows > 2_000
    assert pa.concat_tables(parts).equals(whole)
    assert last_events(plan, 500, END).equals(whole.slice(whole.num_rows - 500))


@pytest.mark.promise("K2")
def test_same_seed_same_bytes_whatever_the_batches_and_threads() -> None:
    rows = positions(sample("realistic"))
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        again = positions(sample("realistic"), batch=777)
        files = [parquet_bytes(table) for table in (rows, again)]
    finally:
        pa.set_cpu_count(threads)
    assert files[0] == files[1] == parquet_bytes(rows)
    assert parquet_bytes(positions(sample("realistic", seed=8))) != files[0]
    for name in ("register", "events"):
        made, same, other = (getattr(sample("small", seed), name)() for seed in (7, 7, 8))
        assert parquet_bytes(made) == parquet_bytes(same) != parquet_bytes(other)


def test_the_small_scenario_is_the_same_on_every_machine() -> None:
    made = sample("small")
    rows = [made.register().to_pylist(), made.events().to_pylist(), positions(made).to_pylist()]
    text = json.dumps(rows, default=lambda moment: moment.isoformat())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "0aca3f3bd4c61c14"


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

"""Port calls: in order, without a gap, and where the vessel is."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.maritime.itinerary import SECOND, build_itineraries
from bq_harper_assets.maritime.port_calls import events_between, last_events
from bq_harper_assets.maritime.track import MOORED, UNDERWAY, locate
from bq_harper_assets_tests.maritime.test_reports import END


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

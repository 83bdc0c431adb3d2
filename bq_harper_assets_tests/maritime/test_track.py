"""Movement: as fast as the type allows, along great circles, with the clock and never by a jump."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.maritime.itinerary import SECOND, build_itineraries
from bq_harper_assets.maritime.ports import PORTS
from bq_harper_assets.maritime.track import AT_ANCHOR, MOORED, UNDERWAY, Fixes, locate
from bq_harper_assets.maritime.vessel_types import VESSEL_TYPES
from bq_harper_assets_tests.maritime.great_circle import bearing_degrees, distance_km

NOON = 1_794_830_400 * SECOND
MAX_KNOTS = np.array([kind.speed_knots[1] for kind in VESSEL_TYPES])


def knots(fixes: Fixes, time: np.ndarray) -> np.ndarray:
    """Speed between consecutive fixes of one vessel."""
    km = distance_km(
        fixes.latitude[:-1], fixes.longitude[:-1], fixes.latitude[1:], fixes.longitude[1:]
    )
    return km / 1.852 / (np.diff(time) / SECOND / 3600)


@pytest.mark.promise("K5")
@pytest.mark.parametrize("minutes", [0.5, 10, 60, 24 * 60])
def test_no_vessel_is_ever_faster_than_its_type(minutes: float) -> None:
    plan = build_itineraries(7, 300)
    time = NOON + (np.arange(500) * minutes * 60).astype(np.int64) * SECOND
    moved = 0.0
    for vessel in range(300):
        speeds = knots(locate(plan, np.full(500, vessel), time), time)
        assert speeds.max() <= MAX_KNOTS[plan.fleet.kind[vessel]] * 1.05
        moved = max(moved, speeds.max())
    assert moved > 15


@pytest.mark.promise("K5")
@settings(deadline=None, max_examples=200)
@given(
    vessel=st.integers(0, 299),
    start=st.integers(0, 4_000_000_000),
    seconds=st.integers(1, 3_000_000),
)
def test_any_two_moments_are_within_reach_of_each_other(
    vessel: int, start: int, seconds: int
) -> None:
    plan = build_itineraries(7, 300)
    time = np.array([start, start + seconds]) * SECOND
    fixes = locate(plan, np.array([vessel, vessel]), time)
    assert knots(fixes, time)[0] <= MAX_KNOTS[plan.fleet.kind[vessel]] * 1.05


@pytest.mark.promise("K5")
def test_the_course_is_the_great_circle_bearing_of_the_way_made() -> None:
    plan = build_itineraries(7, 2_000)
    vessel = np.arange(2_000)
    now, soon = (locate(plan, vessel, np.full(2_000, NOON + s * SECOND)) for s in (0, 120))
    under_way = (now.status == UNDERWAY) & (soon.status == UNDERWAY) & (now.course == soon.course)
    bearing = bearing_degrees(now.latitude, now.longitude, soon.latitude, soon.longitude)
    off = np.abs((bearing - now.course + 180) % 360 - 180)[under_way]
    assert under_way.sum() > 1_000
    assert np.quantile(off, 0.99) < 1.0  # whole degrees


@pytest.mark.promise("K5")
def test_the_speed_reported_is_the_speed_made() -> None:
    plan = build_itineraries(7, 2_000)
    vessel = np.arange(2_000)
    now, soon = (locate(plan, vessel, np.full(2_000, NOON + s * SECOND)) for s in (0, 600))
    straight = (now.status == UNDERWAY) & (soon.status == UNDERWAY) & (now.course == soon.course)
    km = distance_km(now.latitude, now.longitude, soon.latitude, soon.longitude)[straight]
    np.testing.assert_allclose(km / 1.852 * 6, now.speed[straight], rtol=0.01)


def test_a_vessel_is_at_its_destination_when_it_said_it_would_be() -> None:
    plan = build_itineraries(7, 2_000)
    vessel = np.arange(2_000)
    now = locate(plan, vessel, np.full(2_000, NOON))
    sailing = np.flatnonzero(now.destination >= 0)
    there = locate(plan, sailing, now.arrival[sailing])
    before = locate(plan, sailing, now.arrival[sailing] - 1)
    assert (before.status == UNDERWAY).all()
    assert np.isin(there.status, [MOORED, AT_ANCHOR]).all()
    place = np.array([port.at for port in PORTS])[now.destination[sailing]]
    assert distance_km(there.latitude, there.longitude, place[:, 0], place[:, 1]).max() < 2


@pytest.mark.promise("K5")
def test_a_leg_is_one_great_circle_from_berth_to_berth() -> None:
    plan = build_itineraries(7, 2_000)
    vessel = np.arange(2_000)
    now = locate(plan, vessel, np.full(2_000, NOON))
    sailing = np.flatnonzero(now.destination >= 0)
    ends = locate(plan, sailing, now.arrival[sailing])
    left = now.arrival[sailing] - NOON
    hours = left / SECOND / 3600
    here = (now.latitude[sailing], now.longitude[sailing])
    km = distance_km(*here, ends.latitude, ends.longitude)
    # No way is shorter, and at its speed the ship just makes it.
    np.testing.assert_allclose(km / 1.852, now.speed[sailing] * hours, rtol=1e-3, atol=0.05)
    bearing = bearing_degrees(*here, ends.latitude, ends.longitude)
    off = np.abs((bearing - now.course[sailing] + 180) % 360 - 180)
    assert off[km > 1].max() < 1


def test_in_port_a_vessel_lies_still_without_destination() -> None:
    plan = build_itineraries(7, 2_000)
    vessel = np.arange(2_000)
    now, soon = (locate(plan, vessel, np.full(2_000, NOON + s)) for s in (0, SECOND))
    lying = (now.destination < 0) & (soon.destination < 0)
    assert lying.sum() > 200
    assert (now.speed[lying] == 0).all()
    assert (now.latitude == soon.latitude)[lying].all()
    assert (now.course == soon.course)[lying].all()
    assert set(now.status[lying]) == {MOORED, AT_ANCHOR}


@pytest.mark.promise("K2")
def test_a_hundred_thousand_vessels_move() -> None:
    plan = build_itineraries(7, 100_000)
    vessel = np.arange(100_000)
    places = [locate(plan, vessel, np.full(100_000, NOON + d * 86_400 * SECOND)) for d in (0, 4)]
    km = distance_km(
        places[0].latitude, places[0].longitude, places[1].latitude, places[1].longitude
    )
    assert (km > 1).mean() > 0.98  # the others are back where they were, or lie in port
    assert len(np.unique(places[0].latitude)) > 99_000


@pytest.mark.promise("K5")
def test_where_a_vessel_is_depends_on_seed_number_and_time_alone() -> None:
    few, many = build_itineraries(7, 50), build_itineraries(7, 300)
    vessel, time = np.arange(50), NOON + np.arange(50) * SECOND
    alone, among = locate(few, vessel, time), locate(many, vessel, time)
    assert (alone.latitude == among.latitude).all()
    assert (alone.arrival == among.arrival).all()
    other = locate(build_itineraries(8, 50), vessel, time)
    assert (alone.latitude != other.latitude).mean() > 0.9

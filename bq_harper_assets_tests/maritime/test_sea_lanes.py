"""Ships keep off the continents: no lane or fishing trip enters boxes well inside land."""

import numpy as np
import pytest

from bq_harper_assets.maritime.itinerary import (
    CIRCUITS,
    ROUTE_ROOM,
    build_itineraries,
    build_routes,
)
from bq_harper_assets.maritime.ports import PORTS
from bq_harper_assets.maritime.sea_lanes import SEA_LANES, WAYPOINTS
from bq_harper_assets.maritime.sphere import EARTH_KM, coordinates, distance_km
from bq_harper_assets.maritime.track import locate

# south, north, west, east
LAND = {
    "Sahara": (10.5, 30, -7, 30),
    "Southern Africa": (-24, 4, 16, 34),
    "Cape hinterland": (-33, -25, 19.5, 27),
    "Horn of Africa": (4, 10, 36, 46),
    "Madagascar": (-23, -17, 45.5, 47.5),
    "Arabia": (17, 27, 43, 48),
    "India": (11, 28, 76.8, 79),
    "Central Asia": (40, 70, 45, 118),
    "China": (24.5, 36, 100, 117),
    "Indochina": (14, 22, 99, 106.5),
    "Malaya": (3.5, 6, 101.5, 102.8),
    "Borneo": (0, 4, 111, 116),
    "Sumatra": (-3, 1, 101.5, 103),
    "Korea": (35.6, 37.5, 127, 129),
    "Honshu": (35.4, 37, 137, 139.3),
    "Taiwan": (23, 24.8, 120.6, 121.2),
    "Anatolia": (37.5, 40, 29, 40),
    "Balkans": (41.5, 46, 20, 26),
    "Central Europe": (45.8, 52.5, 8.5, 30),
    "Italy": (42.2, 44, 11.5, 13),
    "France": (44.5, 48, 0, 6),
    "Iberia": (38, 42.5, -7.5, -1.5),
    "England": (51.2, 53, -2.5, -0.2),
    "North America": (31, 60, -116.5, -83),
    "Appalachia": (38, 45, -83, -76.5),
    "Quebec": (46, 52, -78, -66),
    "Florida": (27, 30, -82, -81),
    "Mexico": (20.5, 26, -103.5, -99),
    "Honduras": (13.5, 15.2, -88, -84.5),
    "Cuba": (21, 21.9, -78, -76.5),
    "Amazonia": (-22, -3, -70, -45),
    "Andes": (-10, 7, -76, -60),
}


def _assert_at_sea(latitude: np.ndarray, longitude: np.ndarray) -> None:
    for name, (south, north, west, east) in LAND.items():
        inside = (latitude > south) & (latitude < north) & (longitude > west) & (longitude < east)
        assert not inside.any(), f"{name}: {latitude[inside][:3]}, {longitude[inside][:3]}"


@pytest.mark.promise("K5")
def test_no_route_crosses_a_continent() -> None:
    routes = build_routes()
    ends = np.append(routes.starts[1:], -1.0)
    same = ends // ROUTE_ROOM == routes.starts // ROUTE_ROOM
    number = (routes.starts // ROUTE_ROOM).astype(int)
    length = np.where(same, ends, number * ROUTE_ROOM + routes.lengths[number]) - routes.starts
    for share in np.linspace(0, 1, 60):
        way = (length * share)[:, None]
        points = routes.segments[:, :3] * np.cos(way) + routes.segments[:, 3:] * np.sin(way)
        _assert_at_sea(*coordinates(points))


@pytest.mark.promise("K5")
def test_vessels_are_at_sea_or_near_a_port() -> None:
    vessel = np.tile(np.arange(2_000), 20)
    time = np.repeat(np.arange(20) * 5 * 86_400_000_000 + 1_790_000_000_000_000, 2_000)
    fixes = locate(build_itineraries(3, 2_000), vessel, time)
    at = np.array([port.at for port in PORTS])
    near = np.min([distance_km(fixes.latitude, fixes.longitude, a, b) for a, b in at], axis=0) < 200
    _assert_at_sea(fixes.latitude[~near], fixes.longitude[~near])
    assert (fixes.status == 0).mean() > 0.6


def test_every_port_reaches_every_other() -> None:
    lengths = build_routes().lengths[: len(PORTS) ** 2].reshape(len(PORTS), len(PORTS)) * EARTH_KM
    off_diagonal = ~np.eye(len(PORTS), dtype=bool)
    assert (lengths[off_diagonal] > 5).all()
    np.testing.assert_allclose(lengths, lengths.T)


def test_lanes_name_only_known_points_and_use_all_of_them() -> None:
    named = {name for lane in SEA_LANES for name in lane}
    assert named == set(WAYPOINTS) | {port.id for port in PORTS}


@pytest.mark.parametrize(
    ("start", "end", "nautical_miles"),
    [
        ("SGSIN", "NLRTM", 8_300),  # through Suez
        ("CNSHA", "USLAX", 5_700),
        ("USNYC", "NLRTM", 3_400),
        ("BRSSZ", "ZACPT", 3_300),
        ("USHOU", "USLAX", 4_500),  # through Panama
        ("HKHKG", "SGSIN", 1_460),
    ],
)
def test_known_distances_are_met_within_a_tenth(start: str, end: str, nautical_miles: int) -> None:
    number = {port.id: i for i, port in enumerate(PORTS)}
    route = number[start] * len(PORTS) + number[end]
    assert build_routes().lengths[route] * EARTH_KM / 1.852 == pytest.approx(
        nautical_miles, rel=0.1
    )


def test_fishing_trips_come_back_within_two_hundred_miles() -> None:
    trips = build_routes().lengths[-len(PORTS) * CIRCUITS :] * EARTH_KM / 1.852
    assert trips.min() > 20
    assert trips.max() < 400

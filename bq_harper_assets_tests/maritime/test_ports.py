"""The 29 ports: real places, and visited as often as their weight says."""

import numpy as np
import pytest

from bq_harper_assets.maritime.itinerary import CALLS, build_itineraries
from bq_harper_assets.maritime.ports import BASINS, PORTS, WEIGHTS
from bq_harper_assets_tests.maritime.great_circle import distance_km

# Harbours as charts give them.
KNOWN = {
    "Singapore": (1.26, 103.83),
    "Shanghai": (31.36, 121.62),
    "Hong Kong": (22.34, 114.13),
    "Busan": (35.10, 129.04),
    "Rotterdam": (51.95, 4.05),
    "Hamburg": (53.54, 9.93),
    "Piraeus": (37.94, 23.62),
    "Dubai": (25.01, 55.06),
    "Jeddah": (21.48, 39.17),
    "Los Angeles": (33.74, -118.26),
    "New York/New Jersey": (40.68, -74.04),
    "Houston": (29.73, -95.02),
    "Vancouver": (49.29, -123.11),
    "Santos": (-23.96, -46.30),
    "Cape Town": (-33.91, 18.44),
    "Durban": (-29.87, 31.03),
    "Lagos": (6.44, 3.40),
    "Tokyo": (35.62, 139.78),
    "Tianjin": (38.99, 117.72),
    "Qingdao": (36.01, 120.21),
    "Kaohsiung": (22.55, 120.31),
    "Guangzhou": (22.70, 113.64),
    "Port Klang": (3.00, 101.36),
    "Valencia": (39.44, -0.32),
    "Felixstowe": (51.95, 1.31),
    "Antwerp": (51.27, 4.34),
    "Savannah": (32.12, -81.14),
    "Manzanillo": (19.07, -104.30),
    "Long Beach": (33.75, -118.21),
}


@pytest.mark.promise("K4")
def test_there_are_29_ports_with_distinct_ids_and_names() -> None:
    assert len({port.id for port in PORTS}) == len({port.name for port in PORTS}) == 29
    assert WEIGHTS.sum() == 127


@pytest.mark.promise("K4")
@pytest.mark.parametrize("name", [port.name for port in PORTS])
def test_a_port_is_where_charts_have_it(name: str) -> None:
    port = next(port for port in PORTS if port.name == name)
    assert distance_km(*map(np.float64, (*port.at, *KNOWN[name]))) < 8


def test_every_port_is_in_one_basin() -> None:
    assert sorted(port for basin in BASINS for port in basin) == list(range(29))


@pytest.mark.promise("K4")
def test_loops_hold_ports_by_weight() -> None:
    held = np.bincount(build_itineraries(11, 20_000).port, minlength=len(PORTS))
    expected = WEIGHTS / WEIGHTS.sum() * held.sum()
    chi_square = float(((held - expected) ** 2 / expected).sum())
    assert chi_square < 56.9  # 28 degrees of freedom, one in a thousand
    uniform = np.full(len(PORTS), held.sum() / len(PORTS))
    assert ((held - uniform) ** 2 / uniform).sum() > 1000


def test_a_loop_never_calls_twice_at_a_port_and_stays_in_one_basin() -> None:
    for loop in build_itineraries(11, 5_000).port.reshape(-1, CALLS):
        assert len(set(loop)) == CALLS
        assert len({PORTS[port].basin for port in loop}) == 1

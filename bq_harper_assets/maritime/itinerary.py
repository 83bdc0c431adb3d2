"""Plans where vessels go: each has a fixed loop of port calls that repeats for ever."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bq_harper_assets.maritime import chance
from bq_harper_assets.maritime.fleet import Fleet, build_fleet
from bq_harper_assets.maritime.ports import BASINS, PLACES, WEIGHTS
from bq_harper_assets.maritime.vessel_types import VESSEL_TYPES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SECOND = 1_000_000  # times are microseconds since 1970
CALLS = 4  # each loop has so many ports
_NAUTICAL_MILES = 6371.0088 / 1.852  # per radian of a great circle
_STAY_HOURS = (8, 48)
_ANCHORED = 0.15  # the share of calls that are spent at anchor instead of at a berth
_BERTHS = 0.01  # degrees from the port to its farthest berth, north or east


@dataclass(frozen=True, eq=False, kw_only=True)
class Itineraries:
    """Itineraries are a fleet's timetables.

    Call k of a vessel is element vessel * CALLS + k; its leg is the way to the next call's berth.
    """

    fleet: Fleet
    period: Ints  # per vessel; after it the loop begins again
    phase: Ints  # per vessel; how far into its loop it was in 1970
    stages: Ints  # (vessels, 2 * CALLS): when stay 0, leg 0, stay 1, ... begin
    port: Ints  # of each call
    next_call: Ints
    anchored: NDArray[np.bool_]
    leg: Floats  # radians
    leg_time: Ints
    speed: Floats  # knots on the leg
    ways: Floats  # (calls, 6): the berth as a unit vector, and the direction of the leg there


def _draw_ports(pool: Ints, seed: int, vessels: Ints) -> Ints:
    """Draws distinct ports, each exactly as often as its weight says.

    The weights are laid end to end in random order; evenly spaced marks on them pick the ports.
    """
    order = pool[np.argsort(chance.bits(seed, "port order", vessels[:, None], pool), axis=1)]
    edges = np.cumsum(WEIGHTS[order], axis=1)
    gap = edges[:, -1:] / CALLS
    marks = gap * (chance.uniform(seed, "port", vessels)[:, None] + np.arange(CALLS))
    places = (edges[:, None, :] <= marks[:, :, None]).sum(axis=2)
    return np.take_along_axis(order, places, axis=1)


def _loops(fleet: Fleet) -> Ints:
    """Returns the ports of each vessel's loop, (vessels, CALLS), all of one basin."""
    number = np.arange(fleet.size, dtype=np.int64)
    basin = chance.choice([WEIGHTS[pool].sum() for pool in BASINS], fleet.seed, "basin", number)
    ports = np.empty((fleet.size, CALLS), dtype=np.int64)
    for which, pool in enumerate(BASINS):
        chosen = number[basin == which]
        ports[chosen] = _draw_ports(pool, fleet.seed, chosen)
    return ports


def _ways(berths: Floats) -> tuple[Floats, Floats]:
    """Returns the great circle from each berth to the next one of its loop, and its length."""
    lat, lon = np.radians(berths[..., 0]), np.radians(berths[..., 1])
    here = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
    there = np.roll(here, -1, axis=1)
    along = np.sum(here * there, axis=-1)
    # The arc tangent is exact for near and for far points, where the arc cosine is not.
    length = np.arctan2(np.linalg.norm(np.cross(here, there), axis=-1), along)
    towards = there - here * along[..., None]
    towards /= np.linalg.norm(towards, axis=-1, keepdims=True)
    return np.concatenate([here, towards], axis=-1), length


@lru_cache(maxsize=2)
def build_itineraries(seed: int, vessels: int) -> Itineraries:
    """Builds the loops, each from seed and vessel number alone. Durations are whole seconds."""
    fleet = build_fleet(seed, vessels)
    number, k = np.arange(vessels)[:, None], np.arange(CALLS)[None, :]
    port = _loops(fleet)
    off = [chance.uniform_between(-_BERTHS, _BERTHS, seed, f"berth {x}", number, k) for x in "ne"]
    ways, leg = _ways(PLACES[port] + np.stack(off, axis=-1))

    slowest, fastest = np.array([t.speed_knots for t in VESSEL_TYPES])[fleet.kind].T[..., None]
    speed = np.round(chance.uniform_between(slowest, fastest, seed, "speed", number, k), 1)
    leg_time = np.ceil(leg * _NAUTICAL_MILES / speed * 3600).astype(np.int64) * SECOND
    stay = chance.uniform_between(*_STAY_HOURS, seed, "stay", number, k)
    stay_time = (stay * 3600).astype(np.int64) * SECOND

    lasts = np.stack([stay_time, leg_time], axis=2).reshape(vessels, 2 * CALLS)
    ends = np.cumsum(lasts, axis=1)
    return Itineraries(
        fleet=fleet,
        period=ends[:, -1],
        phase=(chance.uniform(seed, "phase", number[:, 0]) * ends[:, -1]).astype(np.int64),
        stages=ends - lasts,
        port=port.ravel(),
        next_call=(number * CALLS + (k + 1) % CALLS).ravel(),
        anchored=(chance.uniform(seed, "anchored", number, k) < _ANCHORED).ravel(),
        leg=leg.ravel(),
        leg_time=leg_time.ravel(),
        speed=speed.ravel(),
        ways=ways.reshape(-1, 6),
    )

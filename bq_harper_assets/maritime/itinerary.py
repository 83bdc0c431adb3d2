"""Plans where vessels go: each has a fixed loop of port calls that repeats for ever."""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from bq_harper_assets.maritime import chance
from bq_harper_assets.maritime.fleet import Fleet, build_fleet, type_column
from bq_harper_assets.maritime.ports import BASINS, PORTS, WEIGHTS, WORLD, Point
from bq_harper_assets.maritime.sea_lanes import route
from bq_harper_assets.maritime.sphere import (
    EARTH_KM,
    KM_PER_NAUTICAL_MILE,
    Floats,
    angle_between,
    point_at,
    tangents,
    unit_vectors,
)
from bq_harper_assets.maritime.vessel_types import MAX_CALLS, VESSEL_TYPES

Ints = NDArray[np.int64]

SECOND = 1_000_000  # times are microseconds since 1970
CIRCUITS = 8  # each fishing ground has so many ways round it
ROUTE_ROOM = 8.0  # each route has so many radians in the shared table; the longest uses under 5
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Routes:
    """Routes are all ways between fairways, as great-circle segments in order of route and way."""

    starts: Floats  # route number * ROUTE_ROOM + radians from the route's start
    segments: Floats  # (n, 6): a unit vector, and the direction of travel there
    lengths: Floats  # radians, by route number


@dataclass(frozen=True, eq=False, kw_only=True)
class Itineraries:
    """Itineraries are a fleet's timetables.

    Call k of a vessel is element vessel * MAX_CALLS + k.
    """

    fleet: Fleet
    period: Ints  # per vessel; after it the loop begins again
    phase: Ints  # per vessel; how far into its loop it was in 1970
    stages: Ints  # (vessels, 2 * MAX_CALLS): when stay 0, leg 0, stay 1, ... begin, or NEVER
    port: Ints  # of each call, -1 if there is none
    next_call: Ints
    anchored: NDArray[np.bool_]
    approach: Floats  # radians between fairway and berth
    route: Ints
    leg: Floats  # radians from berth to berth
    leg_time: Ints
    speed: Floats  # knots on the leg
    segments: Floats  # the shared ones come first, then for each call: to the fairway, to the berth


def _circuit(port: int, number: int) -> list[Point]:
    """Returns a way from the fairway round three points of the fishing ground and back."""
    home = PORTS[port]
    lat, lon = (np.full(3, value) for value in home.fishing_ground)
    bearings = number * 360 / CIRCUITS + np.array([0.0, 120.0, 240.0])
    corners = np.stack(point_at(lat, lon, bearings, np.full(3, 6.0 + number)), axis=1)
    return [home.fairway, *((float(a), float(b)) for a, b in corners), home.fairway]


@cache
def build_routes() -> Routes:
    """Builds all routes: number a * ports + b joins two ports.

    After those come CIRCUITS fishing trips of each port.
    """
    count = len(PORTS)
    ways = [route(a, b) if a != b else [] for a in WORLD for b in WORLD]
    ways += [_circuit(port, number) for port in WORLD for number in range(CIRCUITS)]
    starts, segments, lengths = [], [], np.zeros(count * count + count * CIRCUITS)
    for number, way in enumerate(ways):
        if not way:
            continue
        points = unit_vectors(*np.array(way).T)
        parts = angle_between(points[:-1], points[1:])
        starts.append(number * ROUTE_ROOM + np.concatenate([[0.0], np.cumsum(parts)[:-1]]))
        segments.append(np.hstack([points[:-1], tangents(points[:-1], points[1:])]))
        lengths[number] = parts.sum()
    return Routes(np.concatenate(starts), np.concatenate(segments), lengths)


def _draw_ports(pool: tuple[int, ...], calls: int, seed: int, vessels: Ints) -> Ints:
    """Draws distinct ports, each exactly as often as its weight says.

    The weights are laid end to end in random order; evenly spaced marks on them pick the ports.
    """
    keys = chance.bits(seed, "port order", vessels[:, None], np.array(pool)[None, :])
    order = np.array(pool)[np.argsort(keys, axis=1)]
    edges = np.cumsum(WEIGHTS[order], axis=1)
    gap = edges[:, -1] / calls
    first = chance.uniform(seed, "port", vessels) * gap
    marks = first[:, None] + gap[:, None] * np.arange(calls)
    places = (edges[:, None, :] <= marks[:, :, None]).sum(axis=2)
    return np.take_along_axis(order, places, axis=1)


def _calls(fleet: Fleet) -> Ints:
    """Returns the ports of each vessel's loop, (vessels, MAX_CALLS), and -1 after its last call."""
    number = np.arange(fleet.size, dtype=np.int64)
    port = np.full((fleet.size, MAX_CALLS), -1, dtype=np.int64)
    afar = chance.uniform(fleet.seed, "worldwide", number) < type_column("worldwide")[fleet.kind]
    basin = chance.choice([WEIGHTS[list(b)].sum() for b in BASINS], fleet.seed, "basin", number)
    for kind, vessel_type in enumerate(VESSEL_TYPES):
        regional = [(pool, ~afar & (basin == i)) for i, pool in enumerate(BASINS)]
        for pool, here in [(WORLD, afar), *regional]:
            chosen = number[here & (fleet.kind == kind)]
            drawn = _draw_ports(pool, vessel_type.calls, fleet.seed, chosen)
            port[chosen, : vessel_type.calls] = np.sort(drawn) if vessel_type.liner else drawn
    return port


def _berths(fleet: Fleet, port: Ints, anchored: NDArray[np.bool_]) -> Floats:
    """Returns each vessel's berth at each call: near the port, or by the fairway if it anchors."""
    number, k = np.arange(fleet.size)[:, None], np.arange(MAX_CALLS)[None, :]
    at = np.array([p.at for p in PORTS])[port]
    roads = np.array([p.fairway for p in PORTS])[port]
    centre = np.where(anchored[..., None], roads, at)
    bearing = 360 * chance.uniform(fleet.seed, "berth bearing", number, k)
    nearest, farthest = np.where(anchored, 1.0, 0.1), np.where(anchored, 4.0, 1.5)
    km = chance.uniform_between(nearest, farthest, fleet.seed, "berth km", number, k)
    return unit_vectors(*point_at(centre[..., 0], centre[..., 1], bearing, km))


@lru_cache(maxsize=2)
def build_itineraries(seed: int, vessels: int) -> Itineraries:
    """Builds the loops, each from seed and vessel number alone. Durations are whole seconds."""
    fleet, routes = build_fleet(seed, vessels), build_routes()
    number, k = np.arange(vessels)[:, None], np.arange(MAX_CALLS)[None, :]
    port = _calls(fleet)
    calls = (port >= 0).sum(axis=1, keepdims=True)
    real = port >= 0
    anchors = type_column("anchored")[fleet.kind][:, None]
    anchored = real & (chance.uniform(seed, "anchored", number, k) < anchors)
    following = np.where(k + 1 < calls, k + 1, 0)
    next_port = np.take_along_axis(port, following, axis=1)

    berth = _berths(fleet, port, anchored)
    fairway = unit_vectors(*np.array([p.fairway for p in PORTS]).T)[port]
    approach = angle_between(berth, fairway)
    ways = np.stack(
        [np.concatenate([berth, tangents(berth, fairway)], axis=2),
         np.concatenate([fairway, tangents(fairway, berth)], axis=2)], axis=2)  # fmt: skip

    trip = (chance.uniform(seed, "circuit", number) * CIRCUITS).astype(np.int64)
    joined = np.where(real, port * len(PORTS) + next_port, 0)
    circuit = len(PORTS) ** 2 + port * CIRCUITS + trip
    way = np.where(calls == 1, np.where(real, circuit, 0), joined)
    leg = approach + routes.lengths[way] + np.take_along_axis(approach, following, axis=1)

    speeds = np.array([t.speed_knots for t in VESSEL_TYPES])[fleet.kind]
    speed = np.round(
        chance.uniform_between(speeds[:, :1], speeds[:, 1:], seed, "speed", number, k), 1
    )
    hours = leg * EARTH_KM / KM_PER_NAUTICAL_MILE / speed
    leg_time = np.where(real, np.ceil(hours * 3600).astype(np.int64) * SECOND, 0)
    stays = np.array([t.stay_hours for t in VESSEL_TYPES])[fleet.kind]
    stay = chance.uniform_between(stays[:, :1], stays[:, 1:], seed, "stay", number, k)
    stay_time = np.where(real, (stay * 3600).astype(np.int64) * SECOND, 0)

    lasts = np.stack([stay_time, leg_time], axis=2).reshape(vessels, 2 * MAX_CALLS)
    ends = np.cumsum(lasts, axis=1)
    stages = np.where(np.repeat(real, 2, axis=1), ends - lasts, NEVER)
    phase = (chance.uniform(seed, "phase", number[:, 0]) * ends[:, -1]).astype(np.int64)
    return Itineraries(
        fleet=fleet,
        period=ends[:, -1],
        phase=phase,
        stages=stages,
        port=port.ravel(),
        next_call=(number * MAX_CALLS + following).ravel(),
        anchored=anchored.ravel(),
        approach=approach.ravel(),
        route=way.ravel(),
        leg=leg.ravel(),
        leg_time=leg_time.ravel(),
        speed=speed.ravel(),
        segments=np.concatenate([routes.segments, ways.reshape(-1, 6)]),
    )

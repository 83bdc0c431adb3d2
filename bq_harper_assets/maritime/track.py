"""Computes where a vessel is, as a pure function of its itinerary and the time.

So it sails with the real time between reports, and across batches and restarts.
"""

from dataclasses import dataclass

import numpy as np

from bq_harper_assets.maritime.itinerary import ROUTE_ROOM, Ints, Itineraries, build_routes
from bq_harper_assets.maritime.sphere import Floats

UNDERWAY, MOORED, AT_ANCHOR = 0, 1, 2
STATUSES = ("UNDERWAY_USING_ENGINE", "MOORED", "AT_ANCHOR")


@dataclass(frozen=True, eq=False, kw_only=True)
class Fixes:
    """Fixes are parallel columns; each element is one vessel at one time."""

    latitude: Floats
    longitude: Floats
    course: Ints  # whole degrees, 0..359
    speed: Floats  # knots
    status: Ints  # position in STATUSES
    destination: Ints  # port number, -1 in port
    arrival: Ints  # when it will be at its berth; meaningless in port


def _position(segments: Floats, which: Ints, along: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns latitude, longitude and course in degrees, `along` radians into each segment."""
    x, y, z, u, v, w = segments[which].T
    cos, sin = np.cos(along), np.sin(along)
    px, py, pz = x * cos + u * sin, y * cos + v * sin, z * cos + w * sin
    dx, dy, dz = u * cos - x * sin, v * cos - y * sin, w * cos - z * sin
    level = np.hypot(px, py)
    east = (px * dy - py * dx) / level
    north = level * dz - pz * (px * dx + py * dy) / level
    return (
        np.degrees(np.arctan2(pz, level)),
        np.degrees(np.arctan2(py, px)),
        np.degrees(np.arctan2(east, north)),
    )


def locate(plan: Itineraries, vessel: Ints, time: Ints) -> Fixes:
    """Returns where each vessel is at its time (microseconds since 1970, UTC)."""
    routes = build_routes()
    shared = len(routes.segments)
    into = (time + plan.phase[vessel]) % plan.period[vessel]
    stage = (plan.stages[vessel] <= into[:, None]).sum(axis=1) - 1
    call = vessel * (plan.stages.shape[1] // 2) + stage // 2
    after = plan.next_call[call]
    sailing = stage % 2 == 1
    elapsed = into - plan.stages[vessel, stage]

    done = plan.leg[call] * (elapsed / plan.leg_time[call])
    inbound_from = plan.leg[call] - plan.approach[after]
    at_sea = done - plan.approach[call]
    # It stops just before the end, or rounding could find the first segment of the next route.
    inside = np.clip(at_sea, 0.0, routes.lengths[plan.route[call]] * (1 - 1e-12))
    key = plan.route[call] * ROUTE_ROOM + inside
    segment = np.searchsorted(routes.starts, key, side="right") - 1
    along = key - routes.starts[segment]

    # In port a vessel lies as it came in: at the end of its way in to the berth.
    cases = [~sailing, at_sea < 0, done >= inbound_from]
    segment = np.select(
        cases, [shared + 2 * call + 1, shared + 2 * call, shared + 2 * after + 1], segment
    )
    along = np.select(cases, [plan.approach[call], done, done - inbound_from], along)
    latitude, longitude, course = _position(plan.segments, segment, along)
    moored = np.where(plan.anchored[call], AT_ANCHOR, MOORED)
    return Fixes(
        # Six digits are 11 cm: finer than any receiver, coarser than the last bits, which differ by
        # machine.
        latitude=np.round(latitude, 6),
        longitude=np.round(longitude, 6),
        course=np.rint(course).astype(np.int64) % 360,
        speed=np.where(sailing, plan.speed[call], 0.0),
        status=np.where(sailing, UNDERWAY, moored),
        destination=np.where(sailing, plan.port[after], -1),
        arrival=time + plan.leg_time[call] - elapsed,
    )

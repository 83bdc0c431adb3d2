"""Computes where a vessel is, as a pure function of its itinerary and the time.

So it sails with the real time between reports, and across batches and restarts.
"""

from dataclasses import dataclass

import numpy as np

from bq_harper_assets.maritime.itinerary import CALLS, Floats, Ints, Itineraries

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


def _position(ways: Floats, along: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns latitude, longitude and course in degrees, `along` radians into each way."""
    x, y, z, u, v, w = ways.T
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
    into = (time + plan.phase[vessel]) % plan.period[vessel]
    stage = (plan.stages[vessel] <= into[:, None]).sum(axis=1) - 1
    call = vessel * CALLS + stage // 2
    sailing = stage % 2 == 1
    elapsed = into - plan.stages[vessel, stage]
    along = np.where(sailing, plan.leg[call] * (elapsed / plan.leg_time[call]), 0.0)
    latitude, longitude, course = _position(plan.ways[call], along)
    return Fixes(
        # Six digits are 11 cm: finer than any receiver, coarser than the last bits, which differ by
        # machine.
        latitude=np.round(latitude, 6),
        longitude=np.round(longitude, 6),
        course=np.rint(course).astype(np.int64) % 360,
        speed=np.where(sailing, plan.speed[call], 0.0),
        status=np.where(sailing, UNDERWAY, np.where(plan.anchored[call], AT_ANCHOR, MOORED)),
        destination=np.where(sailing, plan.port[plan.next_call[call]], -1),
        arrival=time + plan.leg_time[call] - elapsed,
    )

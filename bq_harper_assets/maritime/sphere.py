"""Does great-circle geometry on arrays; angles are radians unless a name says degrees."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EARTH_KM = 6371.0088
KM_PER_NAUTICAL_MILE = 1.852


def unit_vectors(latitude: Floats, longitude: Floats) -> Floats:
    """Returns points on the unit sphere, shape (..., 3), for coordinates in degrees."""
    lat, lon = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def angle_between(start: Floats, end: Floats) -> Floats:
    """Returns the angle between unit vectors, exact for near and for far points."""
    across = np.linalg.norm(np.cross(start, end), axis=-1)
    along = np.sum(start * end, axis=-1)
    return np.asarray(np.arctan2(across, along), dtype=np.float64)


def tangents(start: Floats, end: Floats) -> Floats:
    """Returns the unit vector at `start` that points along the great circle to `end`."""
    raw = end - start * np.sum(start * end, axis=-1, keepdims=True)
    return np.asarray(raw / np.linalg.norm(raw, axis=-1, keepdims=True), dtype=np.float64)


def coordinates(points: Floats) -> tuple[Floats, Floats]:
    """Returns latitude and longitude in degrees."""
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))


def point_at(
    latitude: Floats, longitude: Floats, bearing: Floats, km: Floats
) -> tuple[Floats, Floats]:
    """Returns the point `km` away on the great circle that starts with `bearing` (degrees)."""
    lat, lon, course, way = *np.radians([latitude, longitude, bearing]), km / EARTH_KM
    sine = np.sin(lat) * np.cos(way) + np.cos(lat) * np.sin(way) * np.cos(course)
    east = np.sin(course) * np.sin(way) * np.cos(lat)
    return np.degrees(np.arcsin(sine)), np.degrees(
        lon + np.arctan2(east, np.cos(way) - np.sin(lat) * sine)
    )


def distance_km(lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Returns the haversine distance of coordinates in degrees."""
    a, b = np.radians(lat1), np.radians(lat2)
    half = (
        np.sin((b - a) / 2) ** 2
        + np.cos(a) * np.cos(b) * np.sin(np.radians(np.subtract(lon2, lon1)) / 2) ** 2
    )
    return np.asarray(2 * EARTH_KM * np.arcsin(np.sqrt(half)), dtype=np.float64)


def bearing_degrees(lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Returns the course, 0..360, in which the great circle from point 1 to point 2 starts."""
    a, b, turn = np.radians(lat1), np.radians(lat2), np.radians(np.subtract(lon2, lon1))
    east = np.sin(turn) * np.cos(b)
    north = np.cos(a) * np.sin(b) - np.sin(a) * np.cos(b) * np.cos(turn)
    return np.asarray(np.degrees(np.arctan2(east, north)) % 360, dtype=np.float64)

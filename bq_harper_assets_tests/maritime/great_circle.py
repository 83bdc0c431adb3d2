"""Distances and courses on the globe, by other formulas than those of the sample data."""

import numpy as np

EARTH_KM = 6371.0088


def distance_km(
    lat1: np.ndarray, lon1: np.ndarray, lat2: np.ndarray, lon2: np.ndarray
) -> np.ndarray:
    """The haversine distance of coordinates in degrees."""
    a, b = np.radians(lat1), np.radians(lat2)
    half = (
        np.sin((b - a) / 2) ** 2
        + np.cos(a) * np.cos(b) * np.sin(np.radians(np.subtract(lon2, lon1)) / 2) ** 2
    )
    return 2 * EARTH_KM * np.arcsin(np.sqrt(half))


def bearing_degrees(
    lat1: np.ndarray, lon1: np.ndarray, lat2: np.ndarray, lon2: np.ndarray
) -> np.ndarray:
    """The course, 0..360, in which the great circle from point 1 to point 2 starts."""
    a, b, turn = np.radians(lat1), np.radians(lat2), np.radians(np.subtract(lon2, lon1))
    east = np.sin(turn) * np.cos(b)
    north = np.cos(a) * np.sin(b) - np.sin(a) * np.cos(b) * np.cos(turn)
    return np.degrees(np.arctan2(east, north)) % 360

"""Gives randomness without state: each number is a hash of (seed, purpose, index).

So no call order, batch cut or fleet size can change it, and neither can a new release of a library.
"""

import math
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # splitmix64's increment
_MIX_A, _MIX_B = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_MIX_A)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_MIX_B)
    return x ^ (x >> np.uint64(31))


def bits(seed: int, purpose: str, *indices: ArrayLike) -> NDArray[np.uint64]:
    """Returns 64 random bits for each element of the (broadcast) index arrays."""
    key = (seed * _STEP + zlib.crc32(purpose.encode("utf-8")) * _MIX_B) & _MASK
    # The array has at least one element: numpy wraps arrays silently but warns about scalars.
    state = _mix(np.full(1, key, dtype=np.uint64))
    for index in indices:
        numbers = np.atleast_1d(np.asarray(index)).astype(np.int64).view(np.uint64)
        state = _mix(state + (numbers + np.uint64(1)) * np.uint64(_STEP))
    return state


def uniform(seed: int, purpose: str, *indices: ArrayLike) -> NDArray[np.float64]:
    """Returns random numbers in [0, 1)."""
    return (bits(seed, purpose, *indices) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform_between(
    low: ArrayLike, high: ArrayLike, seed: int, purpose: str, *indices: ArrayLike
) -> NDArray[np.float64]:
    """Returns random numbers in [low, high)."""
    bottom = np.asarray(low, dtype=np.float64)
    return bottom + uniform(seed, purpose, *indices) * (np.asarray(high, dtype=np.float64) - bottom)


def choice(weights: ArrayLike, seed: int, purpose: str, *indices: ArrayLike) -> NDArray[np.int64]:
    """Returns random positions in `weights`, each as often as its weight says."""
    edges = np.cumsum(np.asarray(weights, dtype=np.float64))
    drawn = uniform(seed, purpose, *indices) * edges[-1]
    found: NDArray[np.int64] = np.searchsorted(edges, drawn, side="right").astype(np.int64)
    return found


def shuffle(numbers: NDArray[np.int64], size: int, seed: int, purpose: str) -> NDArray[np.int64]:
    """Maps 0..size-1 one-to-one onto itself, so that distinct numbers stay distinct."""
    start = int(bits(seed, purpose)[0] % np.uint64(size))
    stride = max(1, round(size * 0.6180339887498949))
    while math.gcd(stride, size) != 1:
        stride += 1
    mixed: NDArray[np.int64] = (numbers % size * stride + start) % size
    return mixed

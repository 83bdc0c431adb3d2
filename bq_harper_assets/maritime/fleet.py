"""Builds the fleet: vessel number i of a seed is always the same, however large the fleet is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bq_harper_assets.maritime import chance
from bq_harper_assets.maritime.vessel_types import FLAGS, VESSEL_TYPES

MAX_VESSELS = 900_000  # seven-digit IMO numbers have 900,000 values before their check digit

# fmt: off
_FIRST = (
    "Pacific", "Atlantic", "Northern", "Southern", "Eastern", "Western",
    "Golden", "Silver", "Crimson", "Emerald", "Coral", "Amber", "Royal", "Noble",
    "Brave", "Swift", "Bright", "Grand", "Polar", "Baltic", "Aegean", "Iberian", "Nordic", "Orient",
)
_SECOND = (
    "Voyager", "Mariner", "Pioneer", "Spirit", "Horizon", "Star", "Dawn", "Breeze",
    "Wave", "Current", "Harbour", "Trader", "Falcon", "Albatross", "Heron", "Osprey",
    "Dolphin", "Marlin", "Orca", "Pearl", "Crown", "Unity", "Venture", "Fortune",
    "Liberty", "Harmony", "Courage", "Wisdom", "Sentinel", "Guardian", "Navigator", "Explorer",
)
_HOUSES = (
    "Aldane", "Brightsea", "Corvane", "Delmara", "Estrand",
    "Fjordal", "Galeon", "Halyard", "Isobar", "Jansund",
)
# fmt: on
_FORMS = ("Shipping", "Lines", "Maritime", "Tankers", "Bulk")
OWNERS = tuple(f"{house} {form}" for house in _HOUSES for form in _FORMS)
_CALLSIGN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ23456789"


@dataclass(frozen=True, eq=False, kw_only=True)
class Fleet:
    """A fleet is parallel columns, one element per vessel: numbers in numpy, texts in Arrow."""

    seed: int
    size: int
    kind: NDArray[np.int64]  # position in VESSEL_TYPES
    flag: NDArray[np.int64]  # position in FLAGS
    length: NDArray[np.int64]
    beam: NDArray[np.int64]
    draft: NDArray[np.float64]
    year_built: NDArray[np.int64]
    owner: NDArray[np.int64]  # position in OWNERS
    mmsi: Any  # pa.StringArray, as are the next three
    imo: Any
    name: Any
    callsign: Any


def _texts(words: Sequence[str], which: NDArray[np.int64]) -> Any:
    return pa.array(words, pa.string()).take(pa.array(which))


def _digits(numbers: NDArray[np.int64], width: int) -> Any:
    return pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width, "0")


def _joined(*parts: Any, separator: str = "") -> Any:
    return pc.binary_join_element_wise(*parts, separator)


def _imo(number: NDArray[np.int64], seed: int) -> Any:
    """Makes six digits, each vessel's own, and the last digit of their sum weighted 7 down to 2."""
    six = 100_000 + chance.shuffle(number, MAX_VESSELS, seed, "imo")
    check = sum(six // 10 ** (5 - place) % 10 * (7 - place) for place in range(6)) % 10
    return _digits(six * 10 + check, 7)


def _callsign(number: NDArray[np.int64], flag: NDArray[np.int64], seed: int) -> Any:
    base = len(_CALLSIGN_CHARACTERS)
    code = chance.shuffle(number, base**4, seed, "callsign")
    letters = [_texts(list(_CALLSIGN_CHARACTERS), code // base**place % base) for place in range(4)]
    return _joined(_texts([f.callsign for f in FLAGS], flag), *letters)


def _name(number: NDArray[np.int64], seed: int) -> Any:
    """Makes distinct names: once all pairs of words are used, they come again with a number."""
    pairs = len(_FIRST) * len(_SECOND)
    pair = chance.shuffle(number, pairs, seed, "name")
    plain = _joined(
        _texts(_FIRST, pair // len(_SECOND)), _texts(_SECOND, pair % len(_SECOND)), separator=" "
    )
    again = pa.array(number // pairs + 1)
    numbered = _joined(plain, pc.cast(again, pa.string()), separator=" ")
    return pc.if_else(pc.equal(again, 1), plain, numbered)


@lru_cache(maxsize=2)
def build_fleet(seed: int, size: int) -> Fleet:
    """Builds the first `size` vessels of a seed; each has its own MMSI, IMO, call sign and name."""
    number = np.arange(size, dtype=np.int64)
    kind = chance.choice([t.share for t in VESSEL_TYPES], seed, "type", number)
    flag = chance.choice([f.share for f in FLAGS], seed, "flag", number)

    def within(field: str) -> NDArray[np.float64]:
        low, high = np.array([getattr(t, field) for t in VESSEL_TYPES], dtype=np.float64)[kind].T
        return chance.uniform_between(low, high, seed, field, number)

    length = np.rint(within("length_m")).astype(np.int64)
    suffix = chance.shuffle(number, 1_000_000, seed, "mmsi")
    return Fleet(
        seed=seed,
        size=size,
        kind=kind,
        flag=flag,
        length=length,
        beam=length // 7,
        draft=np.round(within("draft_m"), 1),
        year_built=1985 + (chance.uniform(seed, "year", number) * 40).astype(np.int64),
        owner=chance.choice([1.0] * len(OWNERS), seed, "owner", number),
        mmsi=_joined(_texts([f.mid for f in FLAGS], flag), _digits(suffix, 6)),
        imo=_imo(number, seed),
        name=_name(number, seed),
        callsign=_callsign(number, flag, seed),
    )

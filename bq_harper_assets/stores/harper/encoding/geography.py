"""Converts GEOGRAPHY values between BigQuery's WKT and the GeoJSON that Harper stores.

This is not left to shapely 2.2, which converts six times as fast: it drops M values and all that
follows a NUL without a word, makes null of NaN and of 1e400, and writes 0.30000000000000004 back as
0.3. The guards against that, and a writer of our own, would leave little saved for 10 MB more.
"""

import json
import re
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import pyarrow as pa

_TOKEN = re.compile(r"\s*(?:([A-Za-z]+)|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([(),]))\s*")
_NAMES = {
    "POINT": "Point",
    "LINESTRING": "LineString",
    "POLYGON": "Polygon",
    "MULTIPOINT": "MultiPoint",
    "MULTILINESTRING": "MultiLineString",
    "MULTIPOLYGON": "MultiPolygon",
}
_WKT_NAMES = {json_name: name for name, json_name in _NAMES.items()}
# The number says how deep a geometry nests its lists of positions.
_DEPTHS = {
    "LINESTRING": 1,
    "MULTIPOINT": 1,
    "POLYGON": 2,
    "MULTILINESTRING": 2,
    "MULTIPOLYGON": 3,
}
_COLLECTION = "GEOMETRYCOLLECTION"

Json = dict[str, Any]


def geojson_texts(wkt: pa.Array) -> pa.Array:
    """Converts WKT texts to GeoJSON texts; NULL and texts that cannot be read become NULL."""
    return pa.array(
        [None if text is None else _text_or_none(text) for text in wkt.to_pylist()], pa.string()
    )


def geojson_of(wkt: str) -> Json:
    """Converts WKT to GeoJSON; ValueError if it is not WKT, or GeoJSON has no such geometry.

    GeoJSON has no FULLGLOBE, and no Z and M values.
    """
    words = _Words(wkt)
    geometry = _geometry(words)
    words.end()
    return geometry


def wkt_of(geojson: Any) -> str:
    """Converts GeoJSON to WKT as BigQuery writes it; raises ValueError if it is no geometry."""
    if not isinstance(geojson, dict):
        raise ValueError(f"{geojson!r} is no geometry")
    name = geojson.get("type")
    if name == "GeometryCollection":
        members = geojson.get("geometries")
        if not isinstance(members, list):
            raise ValueError("a GeometryCollection has geometries")
        inside = ", ".join(wkt_of(member) for member in members)
        return f"{_COLLECTION}({inside})" if members else f"{_COLLECTION} EMPTY"
    if not isinstance(name, str) or name not in _WKT_NAMES:
        raise ValueError(f"{name!r} is no geometry")
    coordinates = geojson.get("coordinates")
    if not isinstance(coordinates, list):
        raise ValueError(f"a {name} has coordinates")
    word = _WKT_NAMES[name]
    if not coordinates:
        return f"{word} EMPTY"
    if word == "POINT":
        return f"{word}({_written(coordinates)})"
    return f"{word}{_listed(coordinates, _DEPTHS[word])}"


class _Words:
    """A word reader gives the words, numbers and signs of a WKT text one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._read(text)
        self._ahead: str | None = next(self._tokens, None)

    def _read(self, text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"{text[at : at + 10]!r} is no part of WKT")
            yield match[match.lastindex or 0]
            at = match.end()

    def next(self) -> str:
        word, self._ahead = self._ahead, next(self._tokens, None)
        if word is None:
            raise ValueError("the text ends early")
        return word

    def takes(self, word: str) -> bool:
        """Skips the next word if it is this one, and says whether it was."""
        if self._ahead is None or self._ahead.upper() != word:
            return False
        self.next()
        return True

    def needs(self, word: str) -> None:
        if not self.takes(word):
            raise ValueError(f"{word} expected, not {self._ahead}")

    @property
    def opens(self) -> bool:
        return self._ahead == "("

    def end(self) -> None:
        if self._ahead is not None:
            raise ValueError(f"{self._ahead!r} follows the geometry")


def _geometry(words: _Words) -> Json:
    name = words.next().upper()
    if name == _COLLECTION:
        members = [] if words.takes("EMPTY") else _items(words, lambda: _geometry(words))
        return {"type": "GeometryCollection", "geometries": members}
    if name not in _NAMES:
        raise ValueError(f"{name} is no geometry that GeoJSON has")
    coordinates: list[Any] = []
    if not words.takes("EMPTY"):
        if name == "POINT":
            (coordinates,) = _items(words, lambda: _position(words))
        elif name == "MULTIPOINT":
            coordinates = _items(words, lambda: _member_point(words))
        else:
            coordinates = _nested(words, _DEPTHS[name])
    return {"type": _NAMES[name], "coordinates": coordinates}


def _items(words: _Words, item: Callable[[], Any]) -> list[Any]:
    words.needs("(")
    items = [item()]
    while words.takes(","):
        items.append(item())
    words.needs(")")
    return items


def _nested(words: _Words, depth: int) -> list[Any]:
    if depth == 1:
        return _items(words, lambda: _position(words))
    return _items(words, lambda: _nested(words, depth - 1))


def _member_point(words: _Words) -> list[Any]:
    """Reads a point of a MULTIPOINT: both (1 2, 3 4) and ((1 2), (3 4)) are in use."""
    if not words.opens:
        return _position(words)
    (position,) = _nested(words, 1)
    return list(position)


def _position(words: _Words) -> list[Any]:
    return [_number(words.next()), _number(words.next())]


def _number(word: str) -> int | float:
    number = float(word)
    if not isfinite(number):
        raise ValueError(f"{word} is no coordinate")
    # A whole number stays as short as BigQuery writes it.
    return int(number) if number.is_integer() else number


def _listed(coordinates: Any, depth: int) -> str:
    if not isinstance(coordinates, list):
        raise ValueError(f"{coordinates!r} is no list of positions")
    if depth == 1:
        return f"({', '.join(_written(position) for position in coordinates)})"
    return f"({', '.join(_listed(inner, depth - 1) for inner in coordinates)})"


def _written(position: Any) -> str:
    if not isinstance(position, list) or len(position) != 2:
        raise ValueError(f"{position!r} is no position of longitude and latitude")
    if not all(isinstance(number, int | float) for number in position):
        raise ValueError(f"{position!r} holds what is no number")
    return " ".join(repr(number) for number in position)


def _text_or_none(wkt: str) -> str | None:
    try:
        return json.dumps(geojson_of(wkt), separators=(",", ":"))
    except ValueError:
        return None

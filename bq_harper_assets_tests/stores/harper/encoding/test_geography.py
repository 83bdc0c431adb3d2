"""WKT and GeoJSON say the same of every geometry."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.stores.harper.encoding.geography import geojson_of, geojson_texts, wkt_of

GEOMETRIES = {
    "POINT(1 2)": {"type": "Point", "coordinates": [1, 2]},
    "POINT(-71.0589 42.3601)": {"type": "Point", "coordinates": [-71.0589, 42.3601]},
    "LINESTRING(1 2, 3 4.5)": {"type": "LineString", "coordinates": [[1, 2], [3, 4.5]]},
    "POLYGON((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))": {
        "type": "Polygon",
        "coordinates": [
            [[0, 0], [4, 0], [4, 4], [0, 0]],
            [[1, 1], [2, 1], [2, 2], [1, 1]],
        ],
    },
    "MULTIPOINT(1 2, 3 4)": {"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]},
    "MULTILINESTRING((1 2, 3 4), (5 6, 7 8))": {
        "type": "MultiLineString",
        "coordinates": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    },
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))": {
        "type": "MultiPolygon",
        "coordinates": [
            [[[0, 0], [1, 0], [1, 1], [0, 0]]],
            [[[5, 5], [6, 5], [6, 6], [5, 5]]],
        ],
    },
    "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(1 2, 3 4))": {
        "type": "GeometryCollection",
        "geometries": [
            {"type": "Point", "coordinates": [1, 2]},
            {"type": "LineString", "coordinates": [[1, 2], [3, 4]]},
        ],
    },
    "GEOMETRYCOLLECTION EMPTY": {"type": "GeometryCollection", "geometries": []},
    "POINT EMPTY": {"type": "Point", "coordinates": []},
    "POLYGON EMPTY": {"type": "Polygon", "coordinates": []},
}


@pytest.mark.promise("B7")
@pytest.mark.parametrize("wkt", GEOMETRIES)
def test_each_kind_of_geometry_is_the_same_in_both(wkt: str) -> None:
    assert geojson_of(wkt) == GEOMETRIES[wkt]
    assert wkt_of(GEOMETRIES[wkt]) == wkt


@pytest.mark.parametrize(
    ("wkt", "same"),
    [
        ("MULTIPOINT((1 2), (3 4))", "MULTIPOINT(1 2, 3 4)"),
        ("point ( 1.0   2.50 )", "POINT(1 2.5)"),
        ("POINT(1e-7 .5)", "POINT(1e-07 0.5)"),
        ("POINT(-0.0 +1)", "POINT(0 1)"),
    ],
)
def test_other_spellings_mean_the_same(wkt: str, same: str) -> None:
    assert wkt_of(geojson_of(wkt)) == same


@pytest.mark.parametrize(
    "wkt",
    [
        "",
        "FULLGLOBE",
        "POINT(1)",
        "POINT(1 2 3)",
        "POINT Z(1 2 3)",
        "POINT(1 2",
        "POINT(1 2))",
        "POINT(1 2, 3 4)",
        "POINT(1 nan)",
        "POINT(1 1e999)",
        "LINESTRING()",
        "CIRCLE(1 2)",
        "POINT(1 2); POINT(3 4)",
    ],
)
def test_what_is_no_geometry_is_refused(wkt: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        geojson_of(wkt)
    assert geojson_texts(pa.array([wkt])).to_pylist() == [None]


def test_texts_keep_their_places() -> None:
    texts = geojson_texts(pa.array(["POINT(1 2)", None, "nowhere", "POINT EMPTY"]))
    assert [text and json.loads(text) for text in texts.to_pylist()] == [
        GEOMETRIES["POINT(1 2)"],
        None,
        None,
        GEOMETRIES["POINT EMPTY"],
    ]
    assert geojson_texts(pa.array([], pa.string())).type == pa.string()


@pytest.mark.promise("B7", "B10")
@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=2, max_size=5))
def test_every_coordinate_is_kept_to_the_last_bit(points: list[tuple[float, float]]) -> None:
    line = {"type": "LineString", "coordinates": [list(point) for point in points]}
    assert geojson_of(wkt_of(line)) == line

"""GEOGRAPHY as Harper holds it: GeoJSON that its own functions read, as an object or as text."""

import json

import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.geography import geojson_of, geojson_texts
from bq_harper_assets.stores.harper.encoding.record import encode_batch
from bq_harper_assets.stores.harper.encoding.request_body import bodies
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.types import Form, HarperColumn
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets_tests.stores.harper_clients import selected
from bq_harper_assets_tests.stores.harper_columns import native_column
from bq_harper_assets_tests.stores.small_tables import utc

NOON = utc(2026, 1, 5, 12)
KINDS = (
    "POINT(1 2)",
    "LINESTRING(0 0, 1.5 1)",
    "POLYGON((0 0, 3 0, 3 3, 0 3, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "MULTIPOINT(0 0, 1 1)",
    "MULTILINESTRING((0 0, 1 1), (2 2, 3 3))",
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)))",
    "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))",
)


@pytest.mark.harper
@pytest.mark.promise("B7")
def test_every_geometry_is_an_object_or_a_text_of_geojson_and_harper_measures_both(
    harper_connection: HarperConnection,
) -> None:
    columns = (
        native_column(Column(name="at", kind=Kind.TIMESTAMP)),
        native_column(Column(name="place", kind=Kind.GEOGRAPHY)),
        HarperColumn(
            name="place_text", kind=Kind.GEOGRAPHY, form=Form.TEXT
        ),  # schemaOverrides: type: string
    )
    moments = pa.array([NOON] * len(KINDS), pa.timestamp("us", "UTC"))
    batch = pa.record_batch(
        {"at": moments, "place": pa.array(KINDS), "place_text": pa.array(KINDS)}
    )
    plan = RowPlan(columns=columns, timestamp="at", geojson=geojson_texts)
    encoded = encode_batch(batch, plan, identify(batch, plan), synced_at=NOON, batch_number=1)
    [body] = bodies(encoded.accepted, most_rows=100, most_bytes=10**6)
    with HarperClient(harper_connection) as harper:
        declared = [Attribute(name=each.name, type=each.type) for each in columns]
        harper.create_table("Geographies", "id", [Attribute(name="id", type="String"), *declared])
        assert harper.upsert_body("Geographies", body.content).done == len(KINDS)
        stored = harper.search_by_value("Geographies", "id", "*", ("*",))
        wanted = [geojson_of(wkt) for wkt in KINDS]
        for row in stored:
            assert row["place"] == json.loads(row["place_text"])
        assert all(each in [row["place"] for row in stored] for each in wanted)
        for column in ("place", "place_text"):
            near = selected(
                harper_connection,
                f"SELECT {column} FROM data.Geographies WHERE SEARCH_JSON('type', place) = 'Point'"
                f" AND geoNear('[1,2]', {column}, 10, 'kilometers')",
            )
            assert len(near) == 1, column

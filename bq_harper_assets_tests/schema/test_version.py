"""A version says the same after the ledger has kept it, and old ones can be read."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.schema.errors import SchemaRefused
from bq_harper_assets.schema.evolution import applied
from bq_harper_assets.schema.logical import Column, Kind, Spelling
from bq_harper_assets.schema.table_plan import restricted
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.types import HarperColumn, harper_columns
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.schema.versions import of, seen, story

NAMES = st.text("abcdefghij", min_size=1, max_size=3).map(lambda name: f"c_{name}")
LEAVES = st.builds(
    Column,
    name=NAMES,
    kind=st.sampled_from([kind for kind in Kind if kind is not Kind.STRUCT]),
    repeated=st.booleans(),
    required=st.booleans(),
    spelling=st.sampled_from(["", "RANGE<DATE>"]),
    description=st.text(max_size=5),
    max_length=st.none() | st.integers(1, 9),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda name, fields, repeated: of(name, Kind.STRUCT, *fields, repeated=repeated),
        NAMES,
        st.lists(inner, min_size=1, max_size=3, unique_by=lambda column: column.name),
        st.booleans(),
    ),
    max_leaves=6,
)


def addresses(version: TableVersion) -> list[str]:
    """What the live columns are called that are `address` in the source."""
    return [column.name for column in version.live if column.source.name == "address"]


@settings(deadline=None, max_examples=60)
@given(st.lists(TREES, max_size=4, unique_by=lambda column: column.name))
def test_a_version_survives_the_ledger_and_gives_back_the_plan(columns: list[Column]) -> None:
    plan = harper_plan(contract(), schema(*columns))
    version = TableVersion.parse(plan.version.body())
    assert version == plan.version
    assert tuple(column.logical for column in version.columns) == plan.selection.columns
    assert version.columns == plan.columns
    assert restricted(plan, version.live_paths) == plan
    # What was seen once needs no second version.
    assert harper_plan(contract(), schema(*columns), version).version == version


def test_types_modes_and_paths_are_told_as_bigquery_writes_them() -> None:
    address = of("address", Kind.STRUCT, of("zip", Kind.STRING), of("at", Kind.GEOGRAPHY))
    stops = of("stops", Kind.STRUCT, of("port", Kind.STRING), repeated=True)
    version = story((address, stops, of("name", Kind.STRING, required=True)))
    told = {column.name: (column.type_text, column.mode) for column in version.columns}
    assert told["address"] == ("STRUCT<zip STRING, at GEOGRAPHY>", "NULLABLE")
    assert told["stops"] == ("ARRAY<STRUCT<port STRING>>", "REPEATED")
    assert told["name"] == ("STRING", "REQUIRED")
    assert version.live_paths == {
        *("event_time", "number", "name", "address", "address.zip", "address.at"),
        *("stops", "stops.port"),
    }


def test_only_what_is_live_is_synced() -> None:
    version = story((of("a", Kind.STRING),), (of("b", Kind.STRING),))
    assert version.live_names == {"event_time", "number", "b"}
    assert version.live_paths == version.live_names
    assert [column.name for column in version.of_source("a", "b")] == ["b", "a"]
    waiting = seen(version, of("c", Kind.STRING), schema_policy="approve")
    assert [column.name for column in waiting.waiting] == ["c"]
    assert waiting.find("none") is None


def test_a_version_of_the_first_release_is_read_with_all_columns_live() -> None:
    column = {"name": "price", "kind": "NUMERIC", "repeated": False, "required": True, "fields": []}
    body = {"columns": [column], "key": [], "primary_key": "_id", "indexed": ["price"]}
    version = TableVersion.parse(body)
    [price] = version.columns
    assert price == VersionColumn(
        source=Spelling("price"),
        target=Spelling("price", "Float", "number"),
        kind=Kind.NUMERIC,
        required=True,
        indexed=True,
    )
    assert (price.state, price.written) == (State.LIVE, True)
    assert (version.id_paths, version.primary_key) == (("price",), "_id")


@pytest.mark.promise("F1")
def test_a_version_in_which_single_fields_waited_is_read_as_one_whose_column_waits() -> None:
    zip_, city = of("zip", Kind.STRING), of("city", Kind.STRING)
    first = seen(None, of("address", Kind.STRUCT, of("place", Kind.STRUCT, zip_)))
    wider = seen(None, of("address", Kind.STRUCT, of("place", Kind.STRUCT, zip_, city), city))
    body = wider.body()
    address = body["columns"][-1]
    place, outer = address["fields"]
    for field in (outer, place["fields"][1]):
        field |= {"state": "waiting", "written": False}
    version = TableVersion.parse(body)
    assert version.live_paths == first.live_paths
    assert version.known_paths == wider.live_paths
    assert harper_columns(version.live) == harper_columns(first.live)
    assert [column.source.name for column in version.waiting] == ["address"]
    assert TableVersion.parse(version.body()) == version
    assert applied(version) == wider


@pytest.mark.promise("F1")
def test_a_field_that_an_earlier_rollback_had_set_aside_is_synced_again_and_keeps_its_type() -> (
    None
):
    zip_, code = of("zip", Kind.STRING), of("code", Kind.INT64)
    wider = seen(None, of("address", Kind.STRUCT, zip_, code))
    body = wider.body()
    body["columns"][-1]["fields"][1] |= {"state": "waiting", "written": True}
    version = TableVersion.parse(body)
    assert version == wider
    assert version.waiting == ()
    # Rows hold numbers under this name: texts must get an attribute of their own.
    retyped = seen(version, of("address", Kind.STRUCT, zip_, of("code", Kind.STRING)))
    assert [column.name for column in retyped.live if column.source.name == "address"] == [
        "address_v2"
    ]
    dropped = seen(version, of("address", Kind.STRUCT, zip_))
    assert [column.name for column in dropped.live if column.source.name == "address"] == [
        "address_v2"
    ]
    assert "address.code" in dropped.known_paths


def test_ids_that_were_recorded_by_name_alone_are_of_all_fields_that_the_column_had_then() -> None:
    zip_, city = of("zip", Kind.STRING), of("city", Kind.STRING)
    first = seen(None, of("address", Kind.STRUCT, zip_), key=None)
    paths = ("event_time", "number", "address", "address.zip")
    assert first.id_paths == paths
    by_name = TableVersion.parse(
        {**first.body(), "id_columns": ["event_time", "number", "address"]}
    )
    assert by_name == first
    wider = seen(by_name, of("address", Kind.STRUCT, zip_, city), city, key=None)
    assert wider.id_paths == TableVersion.parse(wider.body()).id_paths == paths
    flat = seen(None, city, key=None)
    assert flat.body()["id_columns"] == ["event_time", "number", "city"]


def test_ids_that_no_row_has_yet_are_made_of_the_columns_of_the_next_version() -> None:
    speed, city = of("speed", Kind.INT64), of("city", Kind.STRING)
    first = seen(None, speed, key=None)
    with pytest.raises(SchemaRefused, match="told apart by it"):
        seen(first, city, key=None)
    free = seen(replace(first, id_paths=()), city, key=None)
    assert free.id_paths == ("event_time", "number", "city")  # and not of one that is retired
    assert seen(free, city, speed, key=None).id_paths == free.id_paths


def test_a_column_is_single_and_may_be_empty_unless_it_says_otherwise() -> None:
    column = VersionColumn(
        source=Spelling("a"), target=Spelling("a_v2", "String", "text"), kind=Kind.STRING
    )
    stored = HarperColumn.of(column)
    assert (column.repeated, column.required, column.mode) == (False, False, "NULLABLE")
    assert (column.indexed, column.logical.read_as, stored.read_as) == (False, "a", "a")
    assert (column.logical.source_name, stored.source_name) == ("a", "a")
    own = column.named("a")
    assert (own.logical.source_name, HarperColumn.of(own).source_name) == ("", "")


@pytest.mark.promise("F1")
def test_of_several_fields_one_that_waited_is_enough_for_its_column_to_wait() -> None:
    fields = [of(name, Kind.STRING) for name in ("zip", "city", "land")]
    wider = seen(None, of("address", Kind.STRUCT, *fields))
    body = wider.body()
    body["columns"][-1]["fields"][1] |= {"state": "waiting", "written": False}
    version = TableVersion.parse(body)
    assert [column.source.name for column in version.waiting] == ["address"]
    assert applied(version) == wider
    # Before a release noted which fields rows hold, they held all of them.
    del body["columns"][-1]["fields"][1]["written"]
    assert TableVersion.parse(body) == wider
    first = {key: body["columns"][-1][key] for key in ("name", "kind", "repeated", "required")}
    assert VersionColumn.parse({**first, "fields": []}).indexed is False


def test_a_version_names_the_stores_whose_words_it_has_and_is_not_another_for_it() -> None:
    version = seen(None, of("a", Kind.STRING))
    body = version.body()
    assert body["stores"] == {"source": "BigQuery", "target": "Harper"}
    assert TableVersion.parse(body).stores == version.stores
    # An earlier release named none: what it recorded is not recorded anew.
    del body["stores"]
    older = TableVersion.parse(body)
    assert (older, older.stores) == (version, None)
    assert older.body() == body


def test_each_store_has_its_own_name_and_type_of_a_column() -> None:
    first = seen(None, of("stay", Kind.RANGE, spelling="RANGE<DATE>"))
    second = seen(first, of("stay", Kind.RANGE, spelling="RANGE<TIMESTAMP>"))
    [stay] = [column for column in second.live if column.source.name == "stay"]
    assert stay.source == Spelling("stay", "RANGE<TIMESTAMP>")
    assert stay.target == Spelling("stay_v2", "String", "text")

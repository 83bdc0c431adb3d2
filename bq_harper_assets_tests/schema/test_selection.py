"""What a contract selects, and what it is told when it does not fit its source."""

from dataclasses import replace
from typing import Any

import pytest

from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.schema.logical import Column, Kind, Spelling, TableSchema
from bq_harper_assets.schema.version import TableVersion, VersionColumn
from bq_harper_assets_tests.schema.samples import TS, contract, schema, selected

MMSI = Column(name="mmsi", kind=Kind.INT64)
NAME = Column(name="name", kind=Kind.STRING)


def problems_of(source: TableSchema, **changes: Any) -> str:
    with pytest.raises(SchemaMismatch) as caught:
        selected(contract(**changes), source)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.promise("A1")
def test_without_a_list_all_columns_are_selected_in_the_sources_order() -> None:
    selection = selected(contract(), schema(NAME, MMSI))
    assert selection.columns == (TS, NAME, MMSI)
    assert selection.key == ()
    assert selection.primary_key == "id"
    assert selection.id_column is None


def test_a_list_selects_only_its_columns_in_the_sources_order() -> None:
    selection = selected(contract(columns=["mmsi", "event_time"]), schema(NAME, MMSI))
    assert selection.columns == (TS, MMSI)


@pytest.mark.parametrize("kind", [Kind.TIMESTAMP, Kind.DATETIME, Kind.DATE])
def test_each_kind_of_time_column_is_taken(kind: Kind) -> None:
    column = Column(name="event_time", kind=kind)
    assert selected(contract(), TableSchema(columns=(column,))).timestamp == column


def test_a_timestamp_column_of_another_type_is_told_with_the_candidates() -> None:
    source = schema(
        NAME,
        Column(name="seen", kind=Kind.DATE),
        Column(name="stamps", kind=Kind.TIMESTAMP, repeated=True),
    )
    told = problems_of(source, timestamp_column="name")
    assert "name is STRING, not TIMESTAMP, DATETIME or DATE" in told
    assert "candidates are event_time, seen\n" in told


def test_an_array_of_timestamps_is_no_timestamp_column() -> None:
    source = schema(Column(name="stamps", kind=Kind.TIMESTAMP, repeated=True))
    assert "stamps is ARRAY<TIMESTAMP>" in problems_of(source, timestamp_column="stamps")


def test_a_missing_timestamp_column_is_told_with_the_candidates() -> None:
    told = problems_of(schema(NAME), timestamp_column="at")
    assert "the source has no column at; candidates are event_time" in told


def test_all_problems_are_told_at_once() -> None:
    told = problems_of(
        schema(NAME, Column(name="_hash", kind=Kind.STRING)), timestamp_column="at", key=["mmsi"]
    )
    assert "(3 problems)" in told
    assert "timestampColumn" in told
    assert "key: the source has no column mmsi" in told
    assert "column _hash" in told


def test_a_column_in_another_case_is_told_how_it_is_spelled() -> None:
    told = problems_of(schema(NAME), columns=["event_time", "Name"])
    assert "columns: Name is spelled name in the source" in told


def test_the_primary_key_of_bigquery_is_used_where_the_contract_names_none() -> None:
    source = schema(MMSI, NAME, primary_key=("mmsi",))
    assert selected(contract(), source).key == ("mmsi",)
    assert selected(contract(key="name"), source).key == ("name",)


def test_a_column_of_bigquerys_key_that_is_not_selected_is_told() -> None:
    source = schema(MMSI, NAME, primary_key=("mmsi", "name"))
    assert "leaves out name of BigQuery's primary key" in problems_of(
        source, columns=["event_time", "mmsi"]
    )


@pytest.mark.parametrize(
    "column",
    [
        Column(name="k", kind=Kind.INT64, repeated=True),
        Column(name="k", kind=Kind.JSON),
        Column(name="k", kind=Kind.STRUCT),
        Column(name="k", kind=Kind.GEOGRAPHY),
    ],
    ids=lambda column: f"{column.kind} {column.repeated}",
)
def test_a_key_whose_values_identify_nothing_is_refused(column: Column) -> None:
    assert "cannot identify a row" in problems_of(schema(column), key="k")


def test_a_source_that_uses_both_names_is_refused() -> None:
    source = schema(Column(name="id", kind=Kind.STRING), Column(name="_id", kind=Kind.STRING))
    assert "rename one in customQuery" in problems_of(source)


@pytest.mark.parametrize(
    ("column", "type_", "told"),
    [
        (MMSI, "array", "is INT64 in BigQuery, which cannot be stored as array"),
        (MMSI, "boolean", "it can be number or string"),
        (NAME, "number", "is STRING in BigQuery, which cannot be stored as number"),
        (replace(MMSI, repeated=True), "string", "is ARRAY<INT64> in BigQuery"),
        (
            Column(name="r", kind=Kind.RANGE, spelling="RANGE<DATE>"),
            "object",
            "is RANGE<DATE> in BigQuery",
        ),
    ],
)
def test_an_impossible_override_is_refused_with_both_sides_named(
    column: Column, type_: str, told: str
) -> None:
    overrides = {column.name: {"type": type_}}
    assert told in problems_of(schema(column), schema_overrides=overrides)


def test_an_override_of_no_column_is_refused() -> None:
    assert "schemaOverrides: the source has no column nme" in problems_of(
        schema(NAME), schema_overrides={"nme": {"type": "string"}}
    )


def test_the_timestamp_column_cannot_lose_its_index() -> None:
    assert "take indexed: false out" in problems_of(
        schema(), schema_overrides={"event_time": {"indexed": False}}
    )


BEFORE = TableVersion(
    columns=(
        VersionColumn(
            source=Spelling("old"), target=Spelling("old_v2", "String", "text"), kind=Kind.STRING
        ),
        VersionColumn(
            source=Spelling("address"),
            target=Spelling("address"),
            kind=Kind.STRUCT,
            fields=(
                VersionColumn(
                    source=Spelling("zip"),
                    target=Spelling("zip", "Long", "number"),
                    kind=Kind.INT64,
                ),
            ),
        ),
    ),
    key=("name",),
    primary_key="_id",
)
ADDRESS = Column(
    name="address",
    kind=Kind.STRUCT,
    fields=(MMSI, Column(name="deep", kind=Kind.STRUCT, fields=(NAME,))),
)


def test_rows_keep_the_key_and_the_name_of_the_id_that_they_have() -> None:
    source = schema(MMSI, NAME, primary_key=("mmsi",))
    selection = selected(contract(), source, BEFORE)
    assert (selection.key, selection.primary_key) == (("name",), "_id")
    assert (selection.id_column, selection.columns) == (NAME, (TS, MMSI, NAME))
    assert selection.timestamp == TS


@pytest.mark.parametrize(
    ("key", "id_column"),
    [("mmsi", MMSI), ("name", NAME), (["mmsi", "name"], None), ("knots", None), (None, None)],
)
def test_one_column_whose_values_can_be_ids_is_the_id(
    key: str | list[str] | None, id_column: Column | None
) -> None:
    source = schema(MMSI, NAME, Column(name="knots", kind=Kind.FLOAT64))
    assert selected(contract(key=key), source).id_column == id_column


def test_a_column_that_went_or_a_field_of_it_may_still_be_named() -> None:
    gone = {"old": {"type": "string"}, "address.zip": {"type": "string"}}
    listed = ["event_time", "name", "old", "address"]
    for columns, overrides in ((listed, {}), (["*"], gone)):
        declared = contract(columns=columns, schema_overrides=overrides)
        assert selected(declared, schema(NAME), BEFORE).columns == (TS, NAME)
    assert "columns: the source has no column old; it has event_time, name" in problems_of(
        schema(NAME), columns=["event_time", "old"]
    )


def test_a_column_is_listed_by_its_old_name_after_a_declared_rename() -> None:
    declared = contract(columns=["event_time", "called"], renames={"called": "name"})
    assert selected(declared, schema(MMSI, NAME)).columns == (TS, NAME)
    told = problems_of(
        schema(MMSI), renames={"ship": "mmsi"}, schema_overrides={"ship": {"type": "array"}}
    )
    assert "schemaOverrides: ship is INT64 in BigQuery, which cannot be stored as array" in told


def test_a_source_without_any_time_is_told_how_to_make_one() -> None:
    told = problems_of(TableSchema(columns=(NAME,)))
    assert "no such column: make one in customQuery, a TIMESTAMP, DATETIME or DATE" in told


def test_a_key_that_went_from_the_source_is_told_as_such() -> None:
    with pytest.raises(SchemaMismatch, match="key: the source has no column name; it has"):
        selected(contract(), schema(MMSI, primary_key=("mmsi",)), BEFORE)


def test_only_columns_of_the_key_have_to_identify_a_row() -> None:
    source = schema(MMSI, Column(name="more", kind=Kind.JSON))
    assert selected(contract(key="mmsi"), source).key == ("mmsi",)


def test_a_field_that_harper_cannot_keep_is_told_by_its_path() -> None:
    then = Column(name="then", kind=Kind.INT64)
    deep = Column(name="deep", kind=Kind.STRUCT, fields=(MMSI, then))
    source = schema(Column(name="address", kind=Kind.STRUCT, fields=(then, deep)))
    told = problems_of(source)
    assert "(2 problems)" in told
    for path in ("address.then", "address.deep.then"):
        assert f"field {path}: Harper cannot keep a field of this name. Rename it" in told


def test_only_a_whole_attribute_can_have_an_index() -> None:
    told = problems_of(schema(ADDRESS), schema_overrides={"address.mmsi": {"indexed": True}})
    assert "schemaOverrides: address.mmsi is inside address, and Harper indexes whole" in told
    for overrides in (
        {"address.mmsi": {"type": "string"}},
        {"name": {"indexed": False}},
        {"event_time": {"indexed": True}},
        {"event_time": {"type": "string"}},
    ):
        declared = contract(schema_overrides=overrides)
        assert selected(declared, schema(ADDRESS, NAME)).columns == (TS, ADDRESS, NAME)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("home.zip", "home.zip: the source has no home"),
        ("home.deep.zip", "home.deep.zip: the source has no home.deep"),
        ("ports.zip", "ports.zip: ports is ARRAY<INT64>, which has no fields"),
        ("name.zip", "name.zip: name is STRING(9), which has no fields"),
        ("address.zip", "address.zip: address has no field zip; it has mmsi, deep"),
        ("address.deep.zip", "address.deep.zip: address.deep has no field zip; it has name"),
    ],
)
def test_an_override_of_no_field_is_told_where_its_path_ends(path: str, told: str) -> None:
    source = schema(
        ADDRESS,
        replace(NAME, spelling="STRING(9)"),
        Column(name="ports", kind=Kind.INT64, repeated=True),
    )
    assert f"schemaOverrides: {told}" in problems_of(
        source, schema_overrides={path: {"type": "string"}}
    )

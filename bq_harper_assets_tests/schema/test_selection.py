"""What a contract selects, and what it is told when it does not fit its source."""

from dataclasses import replace
from typing import Any

import pytest

from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.schema.selection import select_columns
from bq_harper_assets_tests.schema.samples import TS, contract, schema

MMSI = Column(name="mmsi", kind=Kind.INT64)
NAME = Column(name="name", kind=Kind.STRING)


def problems_of(source: TableSchema, **changes: Any) -> str:
    with pytest.raises(SchemaMismatch) as caught:
        select_columns(contract(**changes), source)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.promise("A1")
def test_without_a_list_all_columns_are_selected_in_the_sources_order() -> None:
    selection = select_columns(contract(), schema(NAME, MMSI))
    assert selection.columns == (TS, NAME, MMSI)
    assert selection.key == ()
    assert selection.primary_key == "id"
    assert selection.id_column is None


def test_a_list_selects_only_its_columns_in_the_sources_order() -> None:
    selection = select_columns(contract(columns=["mmsi", "event_time"]), schema(NAME, MMSI))
    assert selection.columns == (TS, MMSI)


@pytest.mark.parametrize("kind", [Kind.TIMESTAMP, Kind.DATETIME, Kind.DATE])
def test_each_kind_of_time_column_is_taken(kind: Kind) -> None:
    column = Column(name="event_time", kind=kind)
    assert select_columns(contract(), TableSchema(columns=(column,))).timestamp == column


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
    assert select_columns(contract(), source).key == ("mmsi",)
    assert select_columns(contract(key="name"), source).key == ("name",)


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

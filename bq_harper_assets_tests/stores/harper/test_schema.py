"""What a contract makes of a table in Harper: forms, types, attributes and the primary key."""

from typing import Any

import pytest

from bq_harper_assets.contract.table import ColumnOverride
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import HarperTypes, attributes_of, harper_plan
from bq_harper_assets.stores.harper.types import Form, HarperColumn, HarperType
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.schema.test_selection import MMSI, NAME
from bq_harper_assets_tests.schema.versions import of
from bq_harper_assets_tests.stores.harper_columns import harper_column


def stored(column: Column, **changes: object) -> HarperColumn:
    return harper_column(column, contract(**changes))


@pytest.mark.promise("A8")
@pytest.mark.parametrize(
    ("columns", "changes", "primary_key", "id_type"),
    [
        ((NAME,), {}, "id", "String"),
        ((MMSI,), {"key": "mmsi"}, "id", "Long"),
        ((MMSI,), {"key": "mmsi", "values": {"int64": "string"}}, "id", "String"),
        ((MMSI, NAME), {"key": ["mmsi", "name"]}, "id", "String"),
        ((Column(name="v", kind=Kind.FLOAT64),), {"key": "v"}, "id", "String"),
        ((Column(name="id", kind=Kind.STRING),), {"key": "id"}, "id", "String"),
        ((Column(name="id", kind=Kind.INT64),), {"key": "id"}, "id", "Long"),
        ((Column(name="id", kind=Kind.STRING),), {}, "_id", "String"),
        ((Column(name="id", kind=Kind.INT64), MMSI), {"key": "mmsi"}, "_id", "Long"),
        ((Column(name="id", kind=Kind.INT64), MMSI), {"key": ["id", "mmsi"]}, "_id", "String"),
        ((Column(name="id", kind=Kind.NUMERIC),), {"key": "id"}, "_id", "String"),
        ((Column(name="id", kind=Kind.FLOAT64),), {"key": "id"}, "_id", "String"),
        ((Column(name="_id", kind=Kind.INT64),), {}, "id", "String"),
        ((Column(name="ID", kind=Kind.INT64),), {}, "id", "String"),
    ],
)
def test_the_primary_key_is_id_unless_the_source_uses_that_name_for_something_else(
    columns: tuple[Column, ...], changes: dict[str, Any], primary_key: str, id_type: str
) -> None:
    plan = harper_plan(contract(**changes), schema(*columns))
    assert (attributes_of(plan)[0].name, attributes_of(plan)[0].type) == (primary_key, id_type)
    names = [attribute.name for attribute in attributes_of(plan)]
    assert len(names) == len(set(names))
    assert {column.name for column in columns} <= set(names)


def test_a_plan_says_which_attributes_have_an_index_and_which_the_sync_adds() -> None:
    plan = harper_plan(contract(key="mmsi"), schema(MMSI, NAME, of("port_id", Kind.STRING)))
    assert plan.primary_key == attributes_of(plan)[0].name == "id"
    assert plan.indexed == ("event_time", "port_id")
    assert [(each.name, each.indexed) for each in attributes_of(plan)] == [
        ("id", False),
        ("event_time", True),
        ("mmsi", False),
        ("name", False),
        ("port_id", True),
        ("_syncedAt", False),
        ("_batch", False),
        ("_hash", False),
    ]
    assert [column.name for column in plan.version.columns if column.indexed] == [*plan.indexed]
    assert not plan.flags_deletes
    flagged = harper_plan(contract(deletes="flag"), schema(NAME))
    assert flagged.flags_deletes
    assert attributes_of(flagged)[-1].name == "_deletedAt"


@pytest.mark.promise("B1", "B2")
def test_the_policies_make_numbers_text_at_any_depth() -> None:
    kinds = (Kind.INT64, Kind.NUMERIC, Kind.BIGNUMERIC, Kind.FLOAT64)
    fields = tuple(Column(name=kind, kind=kind) for kind in kinds)
    column = stored(
        Column(name="c", kind=Kind.STRUCT, fields=fields),
        values={"int64": "string", "numeric": "string"},
    )
    assert [field.form for field in column.fields] == [Form.TEXT, Form.TEXT, Form.TEXT, Form.NUMBER]


def test_each_policy_is_about_its_own_types() -> None:
    assert (
        stored(Column(name="c", kind=Kind.INT64), values={"numeric": "string"}).form is Form.NUMBER
    )
    assert (
        stored(Column(name="c", kind=Kind.NUMERIC), values={"int64": "string"}).form is Form.NUMBER
    )


@pytest.mark.parametrize(
    "kind", [Kind.INT64, Kind.FLOAT64, Kind.BOOL, Kind.JSON, Kind.GEOGRAPHY, Kind.STRUCT]
)
def test_an_override_keeps_any_column_as_text(kind: Kind) -> None:
    column = stored(Column(name="c", kind=kind), schema_overrides={"c": {"type": "string"}})
    assert (column.form, column.type) == (Form.TEXT, HarperType.STRING)


def test_an_array_stays_an_array_of_its_own_form() -> None:
    column = stored(
        Column(name="c", kind=Kind.INT64, repeated=True), schema_overrides={"c": {"type": "array"}}
    )
    assert (column.form, column.type) == (Form.NUMBER, HarperType.ANY)


def test_an_override_wins_over_a_policy() -> None:
    column = stored(
        Column(name="c", kind=Kind.INT64),
        values={"int64": "string"},
        schema_overrides={"c": {"type": "number"}},
    )
    assert column.form is Form.NUMBER


def test_an_override_of_a_field_is_about_that_field_alone() -> None:
    fields = (Column(name="n", kind=Kind.INT64), Column(name="m", kind=Kind.INT64))
    column = stored(
        Column(name="c", kind=Kind.STRUCT, fields=fields),
        schema_overrides={"c.n": {"type": "string"}, "m": {"type": "string"}},
    )
    assert [field.form for field in column.fields] == [Form.TEXT, Form.NUMBER]
    assert column.form is Form.OBJECT


def test_an_override_of_the_index_leaves_the_form_alone() -> None:
    column = Column(name="c", kind=Kind.INT64)
    assert stored(column, schema_overrides={"c": {"indexed": True}}).form is Form.NUMBER
    assert stored(column, schema_overrides={"c": {"type": "string"}}).form is Form.TEXT


@pytest.mark.parametrize(
    ("column", "possible"),
    [
        (Column(name="c", kind=Kind.INT64), "number or string"),
        (Column(name="c", kind=Kind.BOOL), "boolean or string"),
        (Column(name="c", kind=Kind.STRUCT), "object or string"),
        (Column(name="c", kind=Kind.DATE), "string"),
        (Column(name="c", kind=Kind.INT64, repeated=True), "array"),
    ],
)
def test_only_the_native_form_and_text_can_be_asked_for(column: Column, possible: str) -> None:
    types = HarperTypes(contract())
    source = f"ARRAY<{column.kind}>" if column.repeated else column.kind
    for type_ in ("number", "string", "boolean", "array", "object"):
        override = ColumnOverride.model_validate({"type": type_})
        told = None
        if type_ not in possible.split(" or "):
            told = (
                f"is {source} in BigQuery, which cannot be stored as {type_}; it can be {possible}"
            )
        assert types.impossible_override(column, override) == told
    assert types.impossible_override(column, ColumnOverride(indexed=True)) is None

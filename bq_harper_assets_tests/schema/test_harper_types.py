"""How each BigQuery type is stored in Harper."""

import pytest

from bq_harper_assets.contract.table import ColumnOverride
from bq_harper_assets.schema.harper_types import (
    Form,
    HarperColumn,
    HarperType,
    form_of,
    harper_column,
    impossible_override,
)
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import plan_table
from bq_harper_assets_tests.schema.samples import contract, schema

EXPECTED = {
    Kind.INT64: (Form.NUMBER, HarperType.LONG),
    Kind.FLOAT64: (Form.NUMBER, HarperType.FLOAT),
    Kind.NUMERIC: (Form.NUMBER, HarperType.FLOAT),
    Kind.BIGNUMERIC: (Form.NUMBER, HarperType.FLOAT),
    Kind.BOOL: (Form.BOOLEAN, HarperType.BOOLEAN),
    Kind.STRING: (Form.TEXT, HarperType.STRING),
    Kind.BYTES: (Form.TEXT, HarperType.STRING),
    Kind.TIMESTAMP: (Form.TEXT, HarperType.STRING),
    Kind.DATETIME: (Form.TEXT, HarperType.STRING),
    Kind.DATE: (Form.TEXT, HarperType.STRING),
    Kind.TIME: (Form.TEXT, HarperType.STRING),
    Kind.JSON: (Form.OBJECT, HarperType.ANY),
    Kind.GEOGRAPHY: (Form.OBJECT, HarperType.ANY),
    Kind.INTERVAL: (Form.TEXT, HarperType.STRING),
    Kind.RANGE: (Form.TEXT, HarperType.STRING),
    Kind.STRUCT: (Form.OBJECT, HarperType.ANY),
    Kind.UNKNOWN: (Form.TEXT, HarperType.STRING),
}


def stored(column: Column, **changes: object) -> HarperColumn:
    return harper_column(column, contract(**changes))


@pytest.mark.promise("B1", "B2", "B3", "B4", "B5", "B7", "B8", "B9")
@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_its_form_and_type(kind: Kind) -> None:
    column = stored(Column(name="c", kind=kind))
    assert (column.form, column.type) == EXPECTED[kind]


@pytest.mark.promise("B6")
@pytest.mark.parametrize("kind", Kind)
def test_a_repeated_column_is_an_array_of_the_same_form(kind: Kind) -> None:
    column = stored(Column(name="c", kind=kind, repeated=True))
    assert (column.form, column.type, column.repeated) == (EXPECTED[kind][0], HarperType.ANY, True)


@pytest.mark.promise("B5")
@pytest.mark.parametrize("kind", Kind)
def test_a_nested_field_is_stored_as_a_column_would_be(kind: Kind) -> None:
    deep = Column(
        name="c",
        kind=Kind.STRUCT,
        fields=(Column(name="f", kind=kind), Column(name="g", kind=kind, repeated=True)),
    )
    column = stored(Column(name="top", kind=Kind.STRUCT, repeated=True, fields=(deep,)))
    assert [(field.form, field.repeated) for field in column.fields[0].fields] == [
        (EXPECTED[kind][0], False),
        (EXPECTED[kind][0], True),
    ]


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
    assert form_of(column, contract(schema_overrides={"c": {"indexed": True}})) is Form.NUMBER
    assert form_of(column, contract(schema_overrides={"c": {"type": "string"}})) is Form.TEXT


def test_a_form_that_the_kind_does_not_have_is_refused() -> None:
    assert HarperColumn(name="c", kind=Kind.INT64, form=Form.NUMBER).type is HarperType.LONG
    assert HarperColumn(name="c", kind=Kind.INT64, form=Form.TEXT).type is HarperType.STRING
    with pytest.raises(ValueError, match="c: INT64 is stored as number or text, not boolean"):
        HarperColumn(name="c", kind=Kind.INT64, form=Form.BOOLEAN)


def test_a_column_of_another_name_in_the_source_is_read_by_that_name() -> None:
    renamed = HarperColumn.of(Column(name="c_v2", kind=Kind.INT64, source_name="c"))
    assert (renamed.name, renamed.read_as) == ("c_v2", "c")
    assert HarperColumn.of(Column(name="c", kind=Kind.INT64)).read_as == "c"


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
    source = f"ARRAY<{column.kind}>" if column.repeated else column.kind
    for type_ in ("number", "string", "boolean", "array", "object"):
        override = ColumnOverride.model_validate({"type": type_})
        told = None
        if type_ not in possible.split(" or "):
            told = (
                f"is {source} in BigQuery, which cannot be stored as {type_}; it can be {possible}"
            )
        assert impossible_override(column, override) == told
    assert impossible_override(column, ColumnOverride(indexed=True)) is None


@pytest.mark.promise("B9")
def test_each_column_without_a_counterpart_gives_one_warning() -> None:
    plan = plan_table(
        contract(),
        schema(
            Column(name="length", kind=Kind.INTERVAL),
            Column(name="stay", kind=Kind.RANGE, spelling="RANGE<DATE>"),
            Column(name="name", kind=Kind.STRING),
            Column(
                name="a",
                kind=Kind.STRUCT,
                fields=(Column(name="b", kind=Kind.UNKNOWN, repeated=True, spelling="VECTOR"),),
            ),
        ),
    )
    assert plan.warnings == (
        "length is INTERVAL, no type of Harper's: it is stored as text",
        "stay is RANGE<DATE>, no type of Harper's: it is stored as text",
        "a.b is VECTOR, an unknown type: it is stored as text",
    )

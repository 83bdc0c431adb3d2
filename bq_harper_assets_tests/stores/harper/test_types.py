"""How each BigQuery type is stored in Harper."""

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.types import (
    HARPER_KINDS,
    Form,
    HarperColumn,
    HarperType,
    harper_columns,
    storage_note,
)
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.schema.versions import of, seen
from bq_harper_assets_tests.stores.harper_columns import harper_column, native_column

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


def test_every_kind_has_a_row() -> None:
    assert [*HARPER_KINDS] == [*Kind]


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


def test_a_form_that_the_kind_does_not_have_is_refused() -> None:
    assert HarperColumn(name="c", kind=Kind.INT64, form=Form.NUMBER).type is HarperType.LONG
    assert HarperColumn(name="c", kind=Kind.INT64, form=Form.TEXT).type is HarperType.STRING
    with pytest.raises(ValueError, match="c: INT64 is stored as number or text, not boolean"):
        HarperColumn(name="c", kind=Kind.INT64, form=Form.BOOLEAN)


def test_a_column_of_another_name_in_the_source_is_read_by_that_name() -> None:
    renamed = native_column(Column(name="c_v2", kind=Kind.INT64, source_name="c"))
    assert (renamed.name, renamed.read_as) == ("c_v2", "c")
    assert native_column(Column(name="c", kind=Kind.INT64)).read_as == "c"


@pytest.mark.promise("B9")
def test_each_column_without_a_counterpart_gives_one_warning() -> None:
    plan = harper_plan(
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


def test_a_key_of_these_kinds_alone_is_the_id_of_its_row() -> None:
    assert {kind.value for kind, stored in HARPER_KINDS.items() if stored.is_id} == {
        *("STRING", "BYTES", "INT64", "NUMERIC", "BIGNUMERIC"),
        *("TIMESTAMP", "DATETIME", "DATE", "TIME"),
    }


def test_columns_of_a_version_are_stored_under_the_target_s_name_and_read_under_the_source_s() -> (
    None
):
    first = seen(None, of("speed", Kind.INT64), of("place", Kind.STRUCT, of("zip", Kind.STRING)))
    second = seen(first, of("speed", Kind.STRING), of("place", Kind.STRUCT, of("zip", Kind.STRING)))
    columns = {column.name: column for column in harper_columns(second.live)}
    retyped = columns["speed_v2"]
    assert (retyped.source_name, retyped.read_as, retyped.form) == ("speed", "speed", Form.TEXT)
    place = columns["place"]
    assert (place.source_name, place.read_as, place.form) == ("", "place", Form.OBJECT)
    assert [(field.name, field.source_name) for field in place.fields] == [("zip", "")]


def test_a_note_says_why_a_column_is_not_stored_as_its_type_has_it() -> None:
    def note(kind: Kind, **declared: object) -> str:
        version = seen(None, of("c", kind), **declared)
        [column] = [column for column in version.live if column.name == "c"]
        return storage_note(column)

    assert [note(kind) for kind in (Kind.INT64, Kind.STRING, Kind.JSON)] == ["", "", ""]
    assert note(Kind.RANGE) == "no type of Harper's: it is stored as text"
    as_text = {"schema_overrides": {"c": {"type": "string"}}}
    assert note(Kind.INT64, **as_text) == "as text: schemaOverrides or values say so"
    assert note(Kind.STRING, **as_text) == ""

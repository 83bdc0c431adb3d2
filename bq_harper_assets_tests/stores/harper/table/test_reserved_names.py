"""Names that Harper or the sync keep for themselves."""

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets_tests.schema.samples import contract, schema, selected
from bq_harper_assets_tests.schema.test_selection import problems_of


@pytest.mark.parametrize(
    "name", ["_syncedAt", "_SYNCEDAT", "_batch", "_hash", "_deletedAt"], ids=str
)
def test_a_column_named_like_our_metadata_is_refused_with_the_way_out(name: str) -> None:
    told = problems_of(schema(Column(name=name, kind=Kind.STRING)))
    assert "is written by the sync" in told
    assert f"SELECT * EXCEPT ({name}), {name} AS" in told
    selected(contract(columns=["event_time"]), schema(Column(name=name, kind=Kind.STRING)))


@pytest.mark.parametrize(
    "name",
    [
        "constructor",
        "toString",
        "__proto__",
        "then",
        "__createdtime__",
        "getRecord",
        "a/b",
        "a`b",
        "x" * 251,
    ],
)
def test_a_name_that_harper_cannot_keep_is_refused(name: str) -> None:
    assert "customQuery" in problems_of(schema(Column(name=name, kind=Kind.STRING)))


@pytest.mark.parametrize("name", ["Constructor", "skip", "x" * 250, "a b"])
def test_a_name_that_harper_keeps_is_taken(name: str) -> None:
    selected(contract(), schema(Column(name=name, kind=Kind.STRING)))


def test_a_nested_field_that_harper_cannot_keep_is_refused_by_its_path() -> None:
    inner = Column(name="b", kind=Kind.STRUCT, fields=(Column(name="then", kind=Kind.INT64),))
    told = problems_of(schema(Column(name="a", kind=Kind.STRUCT, fields=(inner,))))
    assert "field a.b.then" in told


@pytest.mark.parametrize("name", ["toString", "constructor"])
def test_a_nested_field_may_have_a_name_that_a_column_may_not(name: str) -> None:
    selected(
        contract(),
        schema(Column(name="a", kind=Kind.STRUCT, fields=(Column(name=name, kind=Kind.INT64),))),
    )

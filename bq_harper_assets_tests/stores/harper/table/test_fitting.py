"""Whether a table that is there can hold the rows, attribute by attribute."""

from dataclasses import replace

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.harper.answers import Attribute, TableDescription
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.table.fitting import (
    Holding,
    attribute_fits,
    conflicts,
    read_back_by,
    undeclared,
    unfit,
    without_index,
)
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.harper.table.test_ensure_table import PLAN, WHOLE


def test_each_attribute_fits_or_comes_with_the_first_row_or_cannot_be_held() -> None:
    found = replace(
        WHOLE,
        attributes=(
            Attribute(name="id", type="ID"),
            Attribute(name="event_time", type="String", indexed=True),
            Attribute(name="a_id", type="Float"),
            Attribute(name="_batch", type="Int"),
        ),
    )
    fits = {each.name: each for each in attribute_fits(found, PLAN)}
    held = {name: each.holding for name, each in fits.items()}
    assert held == {
        "id": Holding.FITS,
        "event_time": Holding.FITS,
        "a_id": Holding.FITS,
        "b_id": Holding.ADDED,
        "_syncedAt": Holding.ADDED,
        "_batch": Holding.CANNOT,
        "_hash": Holding.ADDED,
    }
    assert (fits["event_time"].indexed, fits["a_id"].indexed) == (True, False)
    assert fits["_batch"].why == "_batch is Int there, and the rows hold Long"


def with_type(name: str, type_: str | None, *, indexed: bool = True) -> TableDescription:
    """The whole table, with another type of one attribute."""
    others = tuple(each for each in WHOLE.attributes if each.name != name)
    return replace(WHOLE, attributes=(*others, Attribute(name=name, type=type_, indexed=indexed)))


MANY = Column(name="many", kind=Kind.INT64, repeated=True)
WITH_MANY = harper_plan(contract(), schema(MANY, Column(name="note", kind=Kind.STRING)))


@pytest.mark.parametrize(
    ("plan", "name", "type_", "why"),
    [
        (PLAN, "a_id", None, ""),
        (PLAN, "a_id", "Any", ""),
        (PLAN, "a_id", "Long", ""),
        (PLAN, "a_id", "BigInt", ""),
        (PLAN, "a_id", "String", "a_id is String there, and the rows hold Long"),
        (PLAN, "event_time", None, ""),
        (
            *(PLAN, "event_time", "Any"),
            "event_time is Any there, and Harper then finds no time that is stored as text",
        ),
        (PLAN, "event_time", "Date", "event_time is Date there, and the rows hold String"),
        (WITH_MANY, "many", "array", ""),
        (WITH_MANY, "many", "Long", "many is Long there, and the rows hold arrays or objects"),
        (WITH_MANY, "note", "array", "note is array there, and the rows hold String"),
    ],
)
def test_a_type_that_cannot_hold_the_values_is_told(
    plan: TablePlan, name: str, type_: str | None, why: str
) -> None:
    found = with_type(name, type_)
    [fit] = [each for each in attribute_fits(found, plan) if each.name == name]
    assert (fit.why, fit.there) == (why, type_)
    assert (fit.holding is Holding.CANNOT) == bool(why)
    assert [*conflicts(found, plan)] == ([why] if why else [])


def test_all_that_keeps_rows_out_is_told_at_once() -> None:
    owner = Attribute(name="owner", type="String", required=True)
    hash_ = Attribute(name="_hash", type="Long", required=True)
    kept = [each for each in WHOLE.attributes if each.name != "_hash"]
    found = replace(WHOLE, primary_key="key", attributes=(*kept, hash_, owner))
    assert [*conflicts(found, PLAN)] == [
        "its primary key is key, and the rows' is id",
        "_hash is Long there, and the rows hold String",
        "owner is required there, and the rows have none",
    ]
    assert [*conflicts(WHOLE, PLAN)] == []


def test_a_table_can_be_adopted_only_if_its_windows_can_be_read_back() -> None:
    assert unfit(WHOLE, PLAN) == ()
    assert unfit(with_type("event_time", "String", indexed=False), PLAN) == (
        "event_time is declared without an index, and each window is read back by it; Harper adds"
        " none later, so declare it @indexed",
    )
    assert unfit(with_type("a_id", "Long", indexed=False), PLAN) == ()
    assert unfit(with_type("a_id", "String"), PLAN) == tuple(
        conflicts(with_type("a_id", "String"), PLAN)
    )


@pytest.mark.parametrize(
    ("declared", "names"),
    [
        ({}, ("event_time", "_hash")),
        ({"key": "number"}, ("event_time", "_hash")),  # the key is the id itself
        ({"key": ["number", "event_time"]}, ("event_time", "number", "_hash")),
        ({"deletes": "flag"}, ("event_time", "_hash", "_deletedAt")),
    ],
)
def test_rows_are_read_back_by_time_key_and_hash(
    declared: dict[str, object], names: tuple[str, ...]
) -> None:
    number = Column(name="number", kind=Kind.INT64)
    assert read_back_by(harper_plan(contract(**declared), schema(number))) == names


def test_of_a_table_whose_attributes_are_not_shown_nothing_is_called_missing() -> None:
    hidden = replace(WHOLE, attributes=())
    names = ("event_time", "b_id", "none")
    assert undeclared(WHOLE, names) == ("none",)
    assert undeclared(hidden, names) == ()
    plain = with_type("b_id", "Long", indexed=False)
    assert without_index(plain, names) == ("b_id",)
    assert without_index(hidden, names) == ()
    # Harper indexes every attribute of a table that was made without any.
    assert without_index(replace(plain, schema_defined=False), names) == ()
    assert {each.holding for each in attribute_fits(hidden, PLAN)} == {Holding.FITS}
    assert {each.indexed for each in attribute_fits(hidden, PLAN)} == {False}
    schemaless = replace(hidden, schema_defined=False)
    assert {each.indexed for each in attribute_fits(schemaless, PLAN)} == {True}

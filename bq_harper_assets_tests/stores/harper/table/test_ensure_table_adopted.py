"""A table that others declare is never created, and changed no more than reading it back needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.table.ensure_table import (
    NothingToAdopt,
    TableConflict,
    TableNotEnsured,
    ensure_table,
)
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets_tests.stores.harper.table.test_ensure_table import PLAN, WHOLE, ScriptedTable

BARE = replace(WHOLE, attributes=(Attribute(name="id", type="ID"),))
READABLE = replace(
    WHOLE,
    attributes=(
        Attribute(name="id", type="ID"),
        Attribute(name="event_time", type="String", indexed=True),
        Attribute(name="_hash", type="String"),
    ),
)


@pytest.mark.promise("A14")
def test_an_adopted_table_that_is_not_there_is_not_created_and_the_way_out_is_named() -> None:
    harper = ScriptedTable([None], creates=True)
    with pytest.raises(NothingToAdopt) as caught:
        ensure_table(harper, PLAN, adopted=True)
    assert str(caught.value) == (
        "Harper has no table Orders, and its contract says manage: adopt, so it is not created."
        " Nothing was written. Deploy the component that declares it, then type: bqh adopt Orders;"
        " or write manage: create, then type: bqh sync Orders"
    )
    assert harper.asked == ["describe"]


@pytest.mark.promise("A14")
def test_nothing_is_added_to_a_table_whose_rows_can_be_read_back() -> None:
    harper = ScriptedTable([READABLE], creates=True)
    ensured = ensure_table(harper, PLAN, adopted=True)
    assert (ensured.action, ensured.added) == (TableAction.UP_TO_DATE, ())
    assert ensured.unindexed == ("a_id", "b_id")
    assert harper.asked == ["describe"]


def test_what_reading_back_needs_is_added_under_the_lock_and_nothing_else() -> None:
    entered: list[str] = []

    @contextmanager
    def alone() -> Iterator[None]:
        entered.append("locked")
        yield

    schemaless = replace(BARE, schema_defined=False)  # it too shows only what a row has had
    harper = ScriptedTable([schemaless, BARE, READABLE], creates=True)
    ensured = ensure_table(harper, PLAN, adopted=True, alone=alone, sleep=lambda _: None)
    assert (ensured.action, ensured.added) == (TableAction.MIGRATED, ("event_time", "_hash"))
    assert [each for each in harper.asked if each != "describe"] == ["add event_time", "add _hash"]
    assert entered == ["locked"]


def test_a_table_that_goes_away_meanwhile_is_not_created_either() -> None:
    harper = ScriptedTable([BARE, None], creates=True)
    with pytest.raises(TableNotEnsured, match="it was there a moment ago"):
        ensure_table(harper, PLAN, adopted=True, sleep=lambda _: None)
    assert set(harper.asked) == {"describe"}


@pytest.mark.promise("A14")
def test_what_cannot_be_adopted_is_told_with_where_to_change_it() -> None:
    plain = (
        Attribute(name="event_time", type="String"),
        Attribute(name="a_id", type="Int"),
        Attribute(name="flag", type="String", required=True),
    )
    harper = ScriptedTable([replace(WHOLE, primary_key="key", attributes=plain)], creates=True)
    with pytest.raises(TableConflict) as caught:
        ensure_table(harper, PLAN, adopted=True)
    assert str(caught.value) == (
        "Harper's table Orders cannot hold the rows of this contract:\n"
        "  - its primary key is key, and the rows' is id\n"
        "  - a_id is Int there, and the rows hold Long\n"
        "  - flag is required there, and the rows have none\n"
        "  - event_time is declared without an index, and each window is read back by it; Harper"
        " adds none later, so declare it @indexed\n"
        "Nothing was changed. Name another targetTable, or change it where it is declared, then"
        " type: bqh adopt Orders"
    )


def test_a_timestamp_of_any_type_is_refused_since_no_range_of_texts_finds_it() -> None:
    anything = replace(
        READABLE, attributes=(Attribute(name="event_time", type="Any", indexed=True),)
    )
    for adopted in (True, False):
        harper = ScriptedTable([anything], creates=True)
        with pytest.raises(TableConflict, match="event_time is Any there"):
            ensure_table(harper, PLAN, adopted=adopted)

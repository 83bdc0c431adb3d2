"""What the contract says of changes, and what would break rows that are there."""

from dataclasses import replace

import pytest

from bq_harper_assets.schema.errors import SchemaMismatch, SchemaRefused
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.schema.test_evolution import TEXT, ZIP
from bq_harper_assets_tests.schema.versions import of, seen, states, story


def test_a_policy_of_one_column_is_said_of_its_fields_too() -> None:
    declared = {"schema_overrides": {"address.zip": {"policy": "freeze"}}}
    address = of("address", Kind.STRUCT, ZIP)
    first = story((address,), **declared)
    retyped = of("address", Kind.STRUCT, replace(ZIP, kind=Kind.INT64))
    after = seen(first, retyped, TEXT, **declared)
    assert states(after) == {"address_v2": "waiting", "speed": "live", "address": "retired"}


def test_ids_and_windows_of_rows_are_refused_to_break_with_all_that_is_wrong() -> None:
    first = seen(None, TEXT, key=None)
    with pytest.raises(SchemaRefused) as caught:
        seen(first, key=None)
    assert str(caught.value) == (
        "table orders cannot follow its source:\n"
        "  - speed is gone from BigQuery, and rows without a key are told apart by it: every row"
        " would get another id. To go on, make it in customQuery (SELECT *, CAST(NULL AS ...) AS"
        " speed, or REPLACE (CAST(speed AS ...) AS speed)), or sync into a new targetTable under"
        " another id\n"
        "Nothing was written, and Harper keeps all rows as they are. See the change with:"
        " bqh schema diff orders"
    )
    keyed = story((TEXT,))
    time = Column(name="event_time", kind=Kind.DATETIME)
    source = replace(schema(), columns=(time, Column(name="number", kind=Kind.STRING)))
    with pytest.raises(SchemaRefused) as caught:
        harper_plan(contract(key=("number",)), source, keyed)
    assert str(caught.value) == (
        "table orders cannot follow its source:\n"
        "  - event_time was TIMESTAMP and is now DATETIME in BigQuery, and it is the"
        " timestampColumn: rows could not be found again where they are. To go on, take the change"
        " of the contract back, give it its old type in customQuery (SELECT * REPLACE"
        " (CAST(event_time AS ...) AS event_time)), or sync into a new targetTable under another"
        " id\n"
        "  - number was INT64 and is now STRING in BigQuery, and it is the key: rows could not be"
        " found again where they are. To go on, take the change of the contract back, give it its"
        " old type in customQuery (SELECT * REPLACE (CAST(number AS ...) AS number)), or sync into"
        " a new targetTable under another id\n"
        "Nothing was written, and Harper keeps all rows as they are. See the change with:"
        " bqh schema diff orders"
    )
    with pytest.raises(SchemaRefused) as caught:
        harper_plan(contract(key=("event_time",)), schema(TEXT), keyed)
    assert str(caught.value) == (
        "table orders cannot follow its source:\n"
        "  - the key was number and is now event_time: every row would get another id. To go on,"
        " take the change of key back, or sync into a new targetTable under another id\n"
        "Nothing was written, and Harper keeps all rows as they are. See the change with:"
        " bqh schema diff orders"
    )


def test_a_time_column_that_is_gone_is_told_with_those_that_could_take_its_place() -> None:
    first = story((of("seen", Kind.DATE),))
    source = replace(schema(), columns=(of("seen", Kind.DATE), of("number", Kind.INT64)))
    with pytest.raises(SchemaMismatch) as caught:
        harper_plan(contract(key=("number",)), source, first)
    assert str(caught.value) == (
        "table orders does not fit its source (1 problem); nothing was started.\n"
        "  - timestampColumn: the source has no column event_time; candidates are seen\n"
        "Correct this, then look again with: bqh schema show orders"
    )


def test_a_column_that_the_contract_leaves_out_is_not_called_gone() -> None:
    declared = {"key": None, "columns": ["event_time", "number", "speed"]}
    first = seen(None, TEXT, **declared)
    fewer = {"key": None, "columns": ["event_time", "number"]}
    with pytest.raises(SchemaRefused, match="  - speed is not named by columns any more, to which"):
        seen(first, TEXT, **fewer)
    with pytest.raises(SchemaRefused, match="  - speed is gone from BigQuery, and rows without"):
        seen(first, **declared)


def test_ids_are_not_stored_in_another_form_without_a_word() -> None:
    first = story(())
    with pytest.raises(SchemaRefused) as caught:
        seen(first, values={"int64": "string"})
    assert "  - number was stored as number and would now be stored as text, and" in str(
        caught.value
    )


def test_a_renamed_column_is_told_by_the_name_that_the_source_has_for_it() -> None:
    declared = {"key": None, "renames": {"speed": "knots"}}
    first = story((TEXT,), (replace(TEXT, name="knots"),), **declared)
    with pytest.raises(SchemaRefused, match="  - knots is gone from BigQuery, and rows without"):
        seen(first, **declared)
    with pytest.raises(SchemaRefused, match="  - knots was STRING and is now INT64 in BigQuery"):
        seen(first, of("knots", Kind.INT64), **declared)

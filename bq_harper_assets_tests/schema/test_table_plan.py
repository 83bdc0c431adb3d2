"""What a plan calls the primary key in Harper."""

from typing import Any

import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import named_as, plan_table
from bq_harper_assets_tests.schema.samples import TS, contract, schema
from bq_harper_assets_tests.schema.test_selection import MMSI, NAME
from bq_harper_assets_tests.schema.versions import of, story


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
    plan = plan_table(contract(**changes), schema(*columns))
    assert (plan.attributes[0].name, plan.attributes[0].type) == (primary_key, id_type)
    names = [attribute.name for attribute in plan.attributes]
    assert len(names) == len(set(names))
    assert {column.name for column in columns} <= set(names)


def test_a_plan_says_which_attributes_have_an_index_and_which_the_sync_adds() -> None:
    plan = plan_table(contract(key="mmsi"), schema(MMSI, NAME, of("port_id", Kind.STRING)))
    assert plan.primary_key == plan.attributes[0].name == "id"
    assert plan.indexed == ("event_time", "port_id")
    assert [(each.name, each.indexed) for each in plan.attributes] == [
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
    flagged = plan_table(contract(deletes="flag"), schema(NAME))
    assert flagged.flags_deletes
    assert flagged.attributes[-1].name == "_deletedAt"


def test_a_column_that_is_gone_keeps_the_index_that_it_had() -> None:
    keyed = contract(key="name")
    first = plan_table(keyed, schema(NAME, of("port_id", Kind.STRING))).version
    gone = plan_table(keyed, schema(NAME), first).version
    retired = gone.find("port_id")
    assert retired is not None
    assert (retired.is_live, retired.indexed) == (False, True)


def test_what_the_contract_leaves_out_is_on_record() -> None:
    plan = plan_table(contract(columns=["event_time", "mmsi"]), schema(NAME, MMSI))
    assert plan.version.not_selected == ("name",)
    assert plan_table(contract(), schema(NAME, MMSI)).version.not_selected == ()


def test_ids_without_a_key_are_made_of_the_columns_and_fields_that_the_first_version_had() -> None:
    address = of("address", Kind.STRUCT, MMSI)
    first = plan_table(contract(), schema(address)).version
    wider = plan_table(contract(), schema(of("address", Kind.STRUCT, MMSI, NAME), NAME), first)
    assert wider.id_columns == (TS, address)
    assert [(column.name, len(column.fields)) for column in wider.stored_id_columns] == [
        ("event_time", 0),
        ("address", 1),
    ]
    assert plan_table(contract(key="name"), schema(NAME)).id_columns == ()


def test_columns_are_read_by_the_names_that_they_had_in_an_earlier_version() -> None:
    knots = of("knots", Kind.STRING)
    declared = contract(key=("number",), renames={"speed": "knots"})
    before = story((of("speed", Kind.STRING),))
    plan = plan_table(declared, schema(of("number", Kind.INT64), knots), before)
    then = named_as(plan, before)
    for planned, columns in ((plan, ["knots"]), (then, ["speed"])):
        for read in (planned.selection.columns, planned.columns):
            assert [column.read_as for column in read if column.name == "speed"] == columns
    assert [column.name for column in then.columns] == [column.name for column in plan.columns]

"""What a plan calls the primary key in Harper."""

from bq_harper_assets.schema.logical import Kind, TableSchema
from bq_harper_assets.schema.table_plan import logical_columns, named_as
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.types import harper_columns
from bq_harper_assets_tests.schema.samples import TS, contract, schema
from bq_harper_assets_tests.schema.test_selection import MMSI, NAME
from bq_harper_assets_tests.schema.versions import of, story


def test_a_column_that_is_gone_keeps_the_index_that_it_had() -> None:
    keyed = contract(key="name")
    first = harper_plan(keyed, schema(NAME, of("port_id", Kind.STRING))).version
    gone = harper_plan(keyed, schema(NAME), first).version
    retired = gone.find("port_id")
    assert retired is not None
    assert (retired.is_live, retired.indexed) == (False, True)


def test_what_the_contract_leaves_out_is_on_record() -> None:
    plan = harper_plan(contract(columns=["event_time", "mmsi"]), schema(NAME, MMSI))
    assert plan.version.not_selected == ("name",)
    assert harper_plan(contract(), schema(NAME, MMSI)).version.not_selected == ()


def test_ids_without_a_key_are_made_of_the_columns_and_fields_that_the_first_version_had() -> None:
    address = of("address", Kind.STRUCT, MMSI)
    first = harper_plan(contract(), schema(address)).version
    wider = harper_plan(contract(), schema(of("address", Kind.STRUCT, MMSI, NAME), NAME), first)
    assert logical_columns(wider.id_columns) == (TS, address)
    assert [(column.name, len(column.fields)) for column in harper_columns(wider.id_columns)] == [
        ("event_time", 0),
        ("address", 1),
    ]
    assert harper_plan(contract(key="name"), schema(NAME)).id_columns == ()


def test_columns_are_read_by_the_names_that_they_had_in_an_earlier_version() -> None:
    knots = of("knots", Kind.STRING)
    declared = contract(key=("number",), renames={"speed": "knots"})
    before = story((of("speed", Kind.STRING),))
    plan = harper_plan(declared, schema(of("number", Kind.INT64), knots), before)
    then = named_as(plan, before)
    for planned, columns in ((plan, ["knots"]), (then, ["speed"])):
        for read in (planned.selection.columns, harper_columns(planned.columns)):
            assert [column.read_as for column in read if column.name == "speed"] == columns
    assert [column.name for column in then.columns] == [column.name for column in plan.columns]


def test_the_column_that_is_the_primary_key_needs_no_index_besides() -> None:
    declared = contract(timestamp_column="id", key="id", deletes="flag")
    columns = (of("id", Kind.TIMESTAMP), of("port_id", Kind.STRING))
    plan = harper_plan(declared, TableSchema(columns=columns))
    assert (plan.primary_key, plan.indexed, plan.flags_deletes) == ("id", ("port_id",), True)

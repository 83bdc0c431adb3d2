"""What a person is told of a change: what happened, what is done, what is left to them."""

from dataclasses import replace

import pytest

from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.changes import waiting_changes
from bq_harper_assets.schema.errors import SchemaRefused
from bq_harper_assets.schema.evolution import applied, rolled_back
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.schema.versions import of, seen, story, told

TEXT, WHOLE = of("speed", Kind.STRING), of("speed", Kind.INT64)
ADDRESS = of("address", Kind.STRUCT, of("zip", Kind.STRING))
FROZEN = (
    "not synced: the policy is freeze; undo the change in BigQuery, or set the policy to approve"
    " and type: bqh schema apply orders"
)


def test_descriptions_the_order_and_the_clustering_are_recorded_and_not_told() -> None:
    first = story((TEXT, of("port", Kind.INT64)))
    described = replace(TEXT, description="in knots")
    after = seen(first, of("port", Kind.INT64), described, layout={"clustering": ("number",)})
    assert after != first
    assert [column.description for column in after.of_source("speed")] == ["in knots"]
    assert after.layout.clustering == ("number",)
    assert [change.kind for change in told(first, after)] == ["index"]
    assert told(first, seen(first, of("port", Kind.INT64), described)) == []


@pytest.mark.promise("F1")
def test_a_field_that_an_earlier_release_set_aside_is_told_as_synced_again() -> None:
    body = {
        "kind": "set_aside",
        "column": "address.city",
        "before": "",
        "after": "STRING",
        "action": "waits for: bqh schema apply orders",
        "severity": "warn",
    }
    assert str(Change.parse(body)) == (
        "address.city set aside (STRING): a rollback by an earlier release stopped its sync; this"
        " release syncs it again with the rest of address"
    )
    whole = body | {"column": "speed"}
    assert str(Change.parse(whole)) == (
        "speed set aside (STRING): waits for: bqh schema apply orders"
    )
    # Rolling forward to the version that had the field finds nothing to do.
    wider = seen(None, replace(ADDRESS, fields=(*ADDRESS.fields, of("city", Kind.STRING))))
    old = wider.body()
    old["columns"][-1]["fields"][1] |= {"state": "waiting", "written": True}
    version = TableVersion.parse(old)
    assert told(version, rolled_back(version, wider)) == []


def test_a_column_that_the_contract_selects_no_more_is_not_told_as_gone() -> None:
    first = story((TEXT,))
    some = {"columns": ["event_time", "number"]}
    assert [str(change) for change in told(first, seen(first, TEXT, **some), **some)] == [
        "speed not selected (STRING): left out from now on: the contract's columns do not name it"
        " any more; Harper keeps the values of speed"
    ]
    assert [change.kind for change in told(first, seen(first, **some), **some)] == ["removed"]
    keyless = seen(None, TEXT, key=None)
    with pytest.raises(SchemaRefused, match="speed is not named by columns any more, to which"):
        seen(keyless, TEXT, key=None, **some)


@pytest.mark.promise("D2")
def test_fields_that_a_column_lost_are_named() -> None:
    whole = of("address", Kind.STRUCT, *ADDRESS.fields, of("city", Kind.STRING))
    first = story((whole,))
    [change] = told(first, seen(first, ADDRESS))
    assert change.action.startswith("without address.city; synced into address_v2 from now on; ")


@pytest.mark.promise("D2")
def test_the_second_change_of_a_type_is_told_against_the_first() -> None:
    second = story((TEXT,), (WHOLE,))
    third = seen(second, of("speed", Kind.FLOAT64))
    assert [str(change) for change in told(second, third)] == [
        "speed retyped (INT64 -> FLOAT64): synced into speed_v3 from now on; speed_v2 keeps the"
        " values it has, and is listed by bqh schema cleanup orders"
    ]


def test_how_the_table_is_laid_out_is_recorded() -> None:
    first = story((TEXT,))
    layout = {
        "partition_field": "event_time",
        "clustering": ("speed",),
        "primary_key": ("number",),
    }
    after = seen(first, TEXT, layout=layout)
    texts = [str(change) for change in told(first, after)]
    assert texts == [
        "speed index (not indexed -> indexed): Harper builds it at the next sync if the column came"
        " after the table was made; to an older one it adds none, and searches by it read the whole"
        " table. See: bqh schema indexes orders",
        "partitioning (none -> event_time): recorded",
        "primary key (none -> number): recorded: rows keep the ids they have",
    ]
    assert str(told(first, after, manage="adopt")[0]) == (
        "speed index (not indexed -> indexed): Harper has one only if the table is declared with"
        " it. See: bqh schema indexes orders"
    )
    assert str(told(after, first)[0]) == (
        "speed index (indexed -> not indexed): the index stays in Harper"
    )


def test_fields_inside_a_column_are_told_by_their_path() -> None:
    strict = replace(ADDRESS, fields=(of("zip", Kind.STRING, required=True),))
    short = replace(ADDRESS, fields=(of("zip", Kind.STRING, max_length=5),))
    first = story((ADDRESS,))
    assert [str(change) for change in told(first, seen(first, strict))] == [
        "address.zip mode (NULLABLE -> REQUIRED): recorded"
    ]
    assert [str(change) for change in told(first, seen(first, short))] == [
        "address widened (STRUCT<zip STRING> -> STRUCT<zip STRING(5)>): recorded: Harper stores"
        " both alike"
    ]


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("approve", "warn: {}: waits for: bqh schema apply orders"),
        ("freeze", f"error: {{}}: {FROZEN}"),
    ],
)
def test_fields_that_come_inside_a_column_are_told_as_one_change_that_waits(
    policy: str, says: str
) -> None:
    declared = {"schema_policy": policy}
    first = story((ADDRESS,))
    wider = replace(ADDRESS, fields=(*ADDRESS.fields, of("city", Kind.STRING)))
    waits = seen(first, wider, **declared)
    types = "address widened (STRUCT<zip STRING> -> STRUCT<zip STRING, city STRING>)"
    text = says.format(types)
    for changes in (told(first, waits, **declared), waiting_changes(waits, contract(**declared))):
        assert [f"{change.severity}: {change}" for change in changes] == [text]
    worded = replace(wider, description="where it goes", fields=wider.fields)
    assert told(waits, seen(waits, worded, **declared), **declared) == []
    assert [str(change) for change in told(waits, applied(waits), **declared)] == [
        f"{types}: synced into address.city from now on"
    ]


def test_a_field_that_is_taken_back_is_told_at_any_depth() -> None:
    policy = {"schema_policy": "approve"}
    zip_, city = of("zip", Kind.STRING), of("city", Kind.STRING)
    narrow, wide = (
        of("address", Kind.STRUCT, of("place", Kind.STRUCT, *fields))
        for fields in ((zip_,), (zip_, city))
    )
    first = story((narrow,), **policy)
    waits = seen(first, wide, **policy)
    changes = told(waits, seen(waits, narrow, **policy), **policy)
    assert "address.place.city removed (STRING): it was never synced" in map(str, changes)


def test_fields_that_are_taken_back_before_they_were_synced_are_told_as_removed() -> None:
    policy = {"schema_policy": "approve"}
    city, place = of("city", Kind.STRING), of("place", Kind.STRUCT, of("port", Kind.INT64))
    first = story((ADDRESS,))
    both = seen(first, replace(ADDRESS, fields=(*ADDRESS.fields, city, place)), **policy)
    one = seen(both, replace(ADDRESS, fields=(*ADDRESS.fields, city)), **policy)
    none = seen(one, ADDRESS, **policy)
    assert [f"{change.severity}: {change}" for change in told(one, none, **policy)] == [
        "info: address.city removed (STRING): it was never synced"
    ]
    # The field is told once, with what it has inside.
    assert [str(change) for change in told(both, one, **policy)] == [
        "address widened (STRUCT<zip STRING> -> STRUCT<zip STRING, city STRING>): waits for: bqh"
        " schema apply orders",
        "address.place removed (STRUCT<port INT64>): it was never synced",
    ]
    assert [change.kind for change in told(both, applied(both), **policy)] == ["widened"]


def test_a_rollback_leaves_a_column_the_fields_that_came_since() -> None:
    first = story((ADDRESS,))
    newest = seen(first, replace(ADDRESS, fields=(*ADDRESS.fields, of("city", Kind.STRING))))
    assert told(newest, rolled_back(newest, first)) == []


@pytest.mark.promise("F2")
def test_what_becomes_of_a_column_that_was_set_aside_is_told_as_what_it_is() -> None:
    first = story(())
    back = rolled_back(seen(first, TEXT), first)
    assert [f"{change.severity}: {change}" for change in told(back, seen(back, WHOLE))] == [
        "warn: speed retyped (STRING -> INT64): waits for: bqh schema apply orders; speed keeps its"
        " values and gets no new ones"
    ]
    gone = seen(back)
    assert [str(change) for change in told(gone, seen(gone, TEXT))] == [
        "speed returned (STRING): waits for: bqh schema apply orders"
    ]


def test_what_goes_without_having_been_synced_is_told_too() -> None:
    policy = {"schema_policy": "approve"}
    waits = story((), (TEXT,), **policy)
    [gone] = told(waits, seen(waits, **policy), **policy)
    assert str(gone) == "speed removed (STRING): it was never synced"
    some = {"columns": ["event_time", "number"]}
    left_out = story((TEXT,), **some)
    [gone] = told(left_out, seen(left_out, **some), **some)
    assert str(gone) == "speed removed: it was not synced"


def test_what_waits_is_told_until_somebody_decides() -> None:
    policy = {"schema_policy": "approve"}
    first = story((TEXT,), **policy)
    waits = seen(first, WHOLE, of("more", Kind.BOOL), **policy)
    left = waiting_changes(waits, contract(**policy))
    assert [str(change) for change in left] == [
        "speed retyped (STRING -> INT64): waits for: bqh schema apply orders",
        "more added (BOOL): waits for: bqh schema apply orders",
    ]
    frozen = waiting_changes(waits, contract(schema_policy="freeze"))
    assert {change.severity for change in left} == {"warn"}
    assert {change.severity for change in frozen} == {"error"}
    live = applied(waits)
    assert waiting_changes(live, contract(**policy)) == ()
    assert [str(change) for change in told(waits, live, **policy)] == [
        "speed applied (INT64): synced into speed_v2 from now on",
        "more applied (BOOL): synced into more from now on",
    ]
    [aside, _] = told(live, rolled_back(live, first), **policy)
    assert (aside.kind, aside.severity) == ("set_aside", "warn")

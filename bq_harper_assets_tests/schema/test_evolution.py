"""A source's columns come, go and change; what was written stays, and no attribute mixes types."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.schema.evolution import Rules, applied, evolve, holds, rolled_back
from bq_harper_assets.schema.logical import Column, Kind, Spelling
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.types import harper_columns
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.schema.versions import of, seen, states, story
from bq_harper_assets_tests.sync.sql_types import sql_plan

TEXT, WHOLE, PART = (of("speed", kind) for kind in (Kind.STRING, Kind.INT64, Kind.FLOAT64))
MONEY, MUCH_MONEY = (of("price", kind) for kind in (Kind.NUMERIC, Kind.BIGNUMERIC))
STREET, ZIP = of("street", Kind.STRING), of("zip", Kind.STRING)


@pytest.mark.promise("D1")
def test_new_columns_are_live_and_nothing_else_changes() -> None:
    first = story((TEXT,))
    after = seen(first, TEXT, *(of(name, Kind.STRING) for name in "abc"))
    assert states(after) == dict.fromkeys(("speed", "a", "b", "c"), "live")
    assert after.columns[: len(first.columns)] == first.columns


@pytest.mark.promise("D2")
def test_each_change_of_type_gets_an_attribute_of_its_own() -> None:
    after = story((TEXT,), (WHOLE,), (PART,))
    assert states(after) == {"speed_v3": "live", "speed": "retired", "speed_v2": "retired"}
    assert {c.name: c.kind for c in after.of_source("speed")} == {
        "speed": Kind.STRING,
        "speed_v2": Kind.INT64,
        "speed_v3": Kind.FLOAT64,
    }


@pytest.mark.promise("D2")
def test_a_type_that_changes_back_does_not_go_where_values_of_long_ago_are() -> None:
    after = story((TEXT,), (WHOLE,), (TEXT,))
    assert states(after) == {"speed_v3": "live", "speed": "retired", "speed_v2": "retired"}


@pytest.mark.promise("D2")
def test_a_number_that_the_source_itself_uses_is_left_to_it() -> None:
    own = of("speed_v2", Kind.BOOL)
    there = story((TEXT, own), (WHOLE, own))
    assert states(there) == {"speed_v3": "live", "speed_v2": "live", "speed": "retired"}
    at_once = story((TEXT,), (WHOLE, own))
    assert {c.source.name: c.name for c in at_once.live}["speed_v2"] == "speed_v2"


def test_a_name_that_ends_like_a_number_of_ours_is_kept_whole() -> None:
    own = of("speed_v1", Kind.BOOL)
    assert set(states(story((own,), (replace(own, kind=Kind.DATE),)))) == {
        "speed_v1",
        "speed_v1_v2",
    }


def test_a_source_column_of_a_name_that_is_taken_gets_another() -> None:
    after = story((TEXT,), (WHOLE,), (WHOLE, of("speed_v2", Kind.BOOL)))
    assert {c.source.name: c.name for c in after.live}["speed_v2"] == "speed_v2_v2"


@pytest.mark.parametrize(
    ("before", "after", "alike"),
    [
        (MONEY, MUCH_MONEY, True),
        (MUCH_MONEY, MONEY, False),
        (TEXT, replace(TEXT, required=True), True),
        (replace(TEXT, required=True), TEXT, True),
        (TEXT, replace(TEXT, max_length=9), True),
        (TEXT, replace(TEXT, repeated=True), False),
        (WHOLE, PART, False),
        (of("p", Kind.RANGE, spelling="RANGE<DATE>"), of("p", Kind.RANGE), False),
        (*[of("p", Kind.RANGE, spelling="RANGE<DATE>")] * 2, True),
        (MONEY, replace(MONEY, spelling="NUMERIC(9, 2)"), True),
        (of("a", Kind.STRUCT, STREET), of("a", Kind.STRUCT, STREET, ZIP), True),
        (of("a", Kind.STRUCT, STREET), of("a", Kind.STRUCT, ZIP, STREET), True),
        (of("a", Kind.STRUCT, STREET, ZIP), of("a", Kind.STRUCT, STREET), False),
        (of("a", Kind.STRUCT, ZIP), of("a", Kind.STRUCT, replace(ZIP, kind=Kind.INT64)), False),
        (of("a", Kind.STRUCT, ZIP), of("a", Kind.STRUCT, replace(ZIP, repeated=True)), False),
        (of("a", Kind.STRUCT, ZIP), of("a", Kind.STRUCT, ZIP, repeated=True), False),
        (of("a", Kind.STRUCT, ZIP), of("a", Kind.JSON), False),
    ],
)
def test_only_what_harper_stores_alike_shares_an_attribute(
    before: Column, after: Column, alike: bool
) -> None:
    first, second = story((before,)), story((before,), (after,))
    name = before.name
    assert states(second) == ({name: "live"} if alike else {f"{name}_v2": "live", name: "retired"})
    found = story((after,)).find(name)
    stored = first.find(name)
    assert found is not None
    assert stored is not None
    assert holds(stored, found) is alike


@pytest.mark.promise("F4")
def test_a_policy_that_stores_numbers_as_text_makes_a_new_attribute_of_them() -> None:
    first = story((MONEY,))
    after = seen(first, MONEY, schema_overrides={"price": {"type": "string"}})
    assert states(after) == {"price_v2": "live", "price": "retired"}


@pytest.mark.promise("D3")
def test_a_removed_column_is_kept_on_record_and_lives_again_when_it_returns() -> None:
    gone = story((TEXT,), ())
    assert states(gone) == {"speed": "retired"}
    assert states(seen(gone, TEXT)) == {"speed": "live"}
    assert states(seen(gone, WHOLE)) == {"speed_v2": "live", "speed": "retired"}


@pytest.mark.promise("N8")
def test_a_rename_is_never_guessed_and_followed_where_it_is_declared() -> None:
    knots = replace(TEXT, name="knots")
    assert states(story((TEXT,), (knots,))) == {"knots": "live", "speed": "retired"}
    declared = {"renames": {"speed": "knots"}}
    followed = seen(story((TEXT,)), knots, **declared)
    assert states(followed) == {"speed": "live"}
    assert [c.source.name for c in followed.live][-1] == "knots"
    assert seen(followed, knots, **declared) == followed
    assert seen(followed, knots) == followed  # what was followed needs no declaration


@pytest.mark.promise("N8")
def test_a_rename_that_is_declared_late_brings_the_values_together_from_then_on() -> None:
    knots = replace(TEXT, name="knots")
    late = seen(story((TEXT,), (knots,)), knots, renames={"speed": "knots"})
    assert states(late) == {"speed": "live", "knots": "retired"}
    assert [c.source.name for c in late.live][-1] == "knots"


@pytest.mark.promise("N8")
@pytest.mark.parametrize(
    "declared",
    [
        {"columns": ["event_time", "number", "speed"]},
        {"schema_overrides": {"speed": {"type": "string", "indexed": True}}},
    ],
)
def test_what_is_said_of_a_column_holds_under_its_new_name(declared: dict[str, Any]) -> None:
    knots = replace(WHOLE, name="knots")
    first = story((WHOLE,), **declared)
    renamed = declared | {"renames": {"speed": "knots"}}
    followed = seen(first, knots, **renamed)
    assert followed.live[-1] == replace(first.live[-1], source=Spelling("knots"))
    assert seen(followed, knots, **renamed) == followed


def test_a_rename_of_a_column_that_is_still_there_waits_until_it_is_gone() -> None:
    knots = replace(TEXT, name="knots")
    declared = {"renames": {"speed": "knots"}}
    both = seen(story((TEXT,)), TEXT, knots, **declared)
    assert {c.source.name: c.name for c in both.live if c.source.name != "number"} == {
        "event_time": "event_time",
        "speed": "speed",
        "knots": "knots",
    }


def test_a_renamed_column_that_changes_its_type_does_not_go_where_old_values_are() -> None:
    knots = of("knots", Kind.INT64)
    declared = {"renames": {"speed": "knots"}}
    first = story((TEXT,), (WHOLE,), **declared)
    renamed = seen(first, knots, **declared)
    assert states(renamed) == {"speed_v2": "live", "speed": "retired"}
    back = seen(renamed, replace(knots, kind=Kind.STRING), **declared)
    assert states(back) == {"speed_v3": "live", "speed": "retired", "speed_v2": "retired"}


def test_a_name_that_a_rename_set_free_in_the_source_is_not_free_in_harper() -> None:
    knots = replace(TEXT, name="knots")
    after = story((TEXT,), (knots,), (knots, TEXT), renames={"speed": "knots"})
    assert {c.source.name: c.name for c in after.live}["speed"] == "speed_v2"


def test_what_the_policy_does_not_follow_waits_and_what_is_gone_is_left_out() -> None:
    first = story((TEXT,), schema_policy="approve")
    assert states(first) == {"speed": "live"}
    waits = seen(first, WHOLE, of("more", Kind.BOOL), schema_policy="approve")
    assert states(waits) == {"speed_v2": "waiting", "more": "waiting", "speed": "retired"}
    assert seen(waits, WHOLE, of("more", Kind.BOOL), schema_policy="approve") == waits
    assert states(applied(waits, {"more"})) == states(waits) | {"more": "live"}
    # Never written, so that nothing is left of it.
    assert states(seen(waits, TEXT, schema_policy="approve")) == {"speed": "waiting"}


@pytest.mark.parametrize("policy", ["approve", "freeze"])
def test_fields_that_come_inside_a_column_wait_together_and_the_column_goes_on(policy: str) -> None:
    declared = {"schema_policy": policy}
    address, wider = of("address", Kind.STRUCT, STREET), of("address", Kind.STRUCT, STREET, ZIP)
    first = story((address,), **declared)
    waits = seen(first, wider, **declared)
    assert waits.live_paths == first.live_paths
    assert harper_columns(waits.live) == harper_columns(first.live)
    assert waits.known_paths == {*first.live_paths, "address.zip"}
    assert seen(waits, wider, **declared) == waits == TableVersion.parse(waits.body())
    assert seen(waits, wider) == waits  # also under evolve: somebody has to decide
    assert seen(waits, address, **declared) == first  # never written, so nothing is left of it
    retyped = of("address", Kind.STRUCT, STREET, replace(ZIP, kind=Kind.INT64))
    assert states(seen(waits, retyped, **declared)) == {"address": "live"}
    synced = applied(waits, {"address"})
    assert synced.live_paths == first.live_paths | {"address.zip"}
    assert synced == story((wider,)) == seen(synced, wider, **declared)


def test_a_column_with_a_change_that_waits_has_a_successor_that_waits() -> None:
    address, wider = of("address", Kind.STRUCT, STREET), of("address", Kind.STRUCT, STREET, ZIP)
    waits = seen(story((address,)), wider, schema_policy="approve")
    retyped = of("address", Kind.STRUCT, replace(STREET, kind=Kind.INT64), ZIP)
    successor = seen(waits, retyped)
    assert states(successor) == {"address_v2": "waiting", "address": "retired"}
    back = seen(seen(waits), wider)
    assert states(back) == {"address": "waiting"}
    assert applied(back).live_paths >= {"address.street", "address.zip"}
    assert applied(successor).live_paths >= {"address_v2.street", "address_v2.zip"}


def test_a_field_that_was_applied_stays_synced_when_its_column_changes_its_type_again() -> None:
    address, wider = of("address", Kind.STRUCT, STREET), of("address", Kind.STRUCT, STREET, ZIP)
    waits = seen(story((address,)), wider, schema_policy="approve")
    second, third = (
        of("address", Kind.STRUCT, replace(STREET, kind=kind), ZIP)
        for kind in (Kind.INT64, Kind.DATE)
    )
    live = applied(seen(waits, second), {"address"})
    assert states(live) == {"address_v2": "live", "address": "retired"}
    again = seen(seen(live, second), third)
    assert states(again) == {"address_v3": "live", "address_v2": "retired", "address": "retired"}
    assert "address_v3.zip" in again.live_paths


def test_new_fields_of_a_column_that_follows_are_synced_at_once() -> None:
    address, wider = of("address", Kind.STRUCT, STREET), of("address", Kind.STRUCT, STREET, ZIP)
    assert "address.zip" in seen(story((address,)), wider).live_paths
    # No row has a value of a column that waits, so that it takes its new fields in as they come.
    waits = seen(seen(story(()), address, schema_policy="approve"), wider, schema_policy="approve")
    [column] = waits.waiting
    assert ([field.name for field in column.fields], column.offered) == (["street", "zip"], ())


def test_a_column_that_follows_the_source_does_not_wait_for_an_old_one_of_its_former_name() -> None:
    first = story((TEXT,))
    aside = rolled_back(seen(first, TEXT, of("knots", Kind.BOOL)), first)
    gone = seen(aside, TEXT)
    declared = {"renames": {"knots": "speed"}}
    retyped = seen(gone, WHOLE, **declared)
    assert states(retyped)["speed_v2"] == "live"


def test_a_rename_that_took_effect_long_ago_is_not_followed_again() -> None:
    declared = {"renames": {"speed": "knots"}}
    knots, whole = replace(TEXT, name="knots"), replace(WHOLE, name="knots")
    renamed = story((TEXT,), (knots,), (whole,), **declared)
    assert states(renamed) == {"speed_v2": "live", "speed": "retired"}
    assert {column.source.name for column in renamed.columns[2:]} == {"knots"}
    # Another column of the old name comes and goes; its values are not those of knots.
    another = seen(renamed, whole, TEXT, **declared)
    [name] = [column.name for column in another.live if column.source.name == "speed"]
    back = seen(another, knots, **declared)
    assert [column.name for column in back.live if column.source.name == "knots"] != [name]


def test_a_rename_of_what_is_gone_altogether_changes_no_name() -> None:
    after = story((TEXT,), (), renames={"speed": "knots"})
    assert {column.name: column.source.name for column in after.columns}["speed"] == "speed"


def test_numbers_go_on_from_the_highest_of_both_names() -> None:
    knots = of("knots", Kind.STRING)
    before = story((TEXT,), (WHOLE,), (knots,))
    after = seen(before, of("knots", Kind.DATE), renames={"speed": "knots"})
    assert states(after)["knots_v3"] == "live"
    taken = {"key": ("number", "event_time")}  # so that ids are hashes in the attribute id
    second = story((), (of("id", Kind.STRING),), (of("id", Kind.DATE),), **taken)
    assert states(second) == {"id_v3": "live", "id_v2": "retired"}


def test_an_attribute_of_ours_is_no_place_for_a_column() -> None:
    declared = {"key": ("number", "event_time")}  # so that ids are hashes in the attribute id
    after = story((), (of("id", Kind.STRING),), **declared)
    assert {c.source.name: c.name for c in after.live}["id"] == "id_v2"


@pytest.mark.promise("F2")
def test_a_rollback_lets_what_came_since_wait_and_forward_again_nothing_is_lost() -> None:
    first = story((TEXT,))
    newest = seen(first, TEXT, of("more", Kind.BOOL))
    back = rolled_back(newest, first)
    assert states(back) == {"speed": "live", "more": "waiting"}
    assert seen(back, TEXT, of("more", Kind.BOOL)) == back  # the next look does not bring it back
    assert applied(back) == newest
    assert states(rolled_back(back, newest)) == states(newest)


@pytest.mark.promise("F2")
def test_a_rollback_goes_by_whole_columns_and_loses_no_field_that_came_since() -> None:
    address, wider = of("address", Kind.STRUCT, STREET), of("address", Kind.STRUCT, STREET, ZIP)
    first = story((address,))
    newest = seen(first, wider)
    assert rolled_back(newest, first) == newest


MORE, MORE_WHOLE = of("more", Kind.BOOL), of("more", Kind.INT64)


@pytest.mark.promise("F2")
@pytest.mark.parametrize(
    ("schemas", "expected"),
    [
        ([(MORE_WHOLE,)], {"more_v2": "waiting", "more": "retired"}),
        ([(MORE_WHOLE,), (of("more", Kind.DATE),)], {"more_v3": "waiting", "more": "retired"}),
        ([()], {"more": "retired"}),
        ([(), (TEXT,)], {"speed": "live", "more": "retired"}),
        ([(), (MORE,)], {"more": "waiting"}),
        ([(), (MORE_WHOLE,)], {"more_v2": "waiting", "more": "retired"}),
        ([(MORE_WHOLE,), (), (MORE,)], {"more": "waiting"}),
        ([(replace(MORE, required=True),)], {"more": "waiting"}),
    ],
)
def test_what_a_person_set_aside_waits_whatever_the_source_does_with_it(
    schemas: list[tuple[Column, ...]], expected: dict[str, str]
) -> None:
    first = story(())
    version = rolled_back(seen(first, MORE), first)
    for columns in schemas:
        version = seen(version, *columns)
        assert seen(version, *columns) == version == TableVersion.parse(version.body())
    assert states(version) == expected


@pytest.mark.promise("F2")
def test_once_it_is_applied_a_column_that_was_set_aside_is_as_any_other() -> None:
    first = story(())
    back = rolled_back(seen(first, MORE), first)
    live = applied(seen(seen(back), MORE))
    assert states(live) == {"more": "live"}
    assert states(seen(seen(live), MORE)) == {"more": "live"}
    retyped = applied(seen(back, MORE_WHOLE))
    assert states(retyped) == {"more_v2": "live", "more": "retired"}
    assert states(seen(retyped, of("more", Kind.DATE)))["more_v3"] == "live"
    assert states(seen(seen(retyped), MORE_WHOLE))["more_v2"] == "live"


@pytest.mark.promise("F2", "N8")
def test_a_column_that_was_set_aside_waits_under_its_new_name_too() -> None:
    first = story(())
    back = rolled_back(seen(first, MORE), first)
    declared = {"renames": {"more": "most"}}
    assert states(seen(back, of("most", Kind.BOOL), **declared)) == {"more": "waiting"}
    retyped = seen(back, of("most", Kind.INT64), **declared)
    assert states(retyped) == {"more_v2": "waiting", "more": "retired"}


SOURCES = ("a", "b", "a_v2", "id")
FIELDS = st.lists(
    st.builds(of, st.sampled_from("xy"), st.sampled_from([Kind.STRING, Kind.INT64])),
    min_size=1,
    max_size=2,
    unique_by=lambda column: column.name,
)
COLUMNS = st.one_of(
    st.builds(
        of,
        st.sampled_from(SOURCES),
        st.sampled_from([Kind.STRING, Kind.INT64, Kind.NUMERIC, Kind.BIGNUMERIC]),
        repeated=st.booleans(),
        required=st.booleans(),
    ),
    st.builds(
        lambda name, fields, repeated: of(name, Kind.STRUCT, *fields, repeated=repeated),
        st.sampled_from(SOURCES),
        FIELDS,
        st.booleans(),
    ),
)
SCHEMAS = st.lists(COLUMNS, max_size=4, unique_by=lambda column: column.name)
STORIES = st.lists(SCHEMAS, min_size=1, max_size=6)
RULES = st.builds(
    lambda frozen, renames: Rules(lambda source: source not in frozen, renames, {"id", "_hash"}),
    st.frozensets(st.sampled_from(SOURCES), max_size=2),
    st.sampled_from([{}, {"b": "a"}, {"a": "b"}]),
)


def as_found(columns: list[Column]) -> list[VersionColumn]:
    source = harper_plan(contract(columns=["event_time", *SOURCES]), schema(*_all(columns))).version
    return [c for c in source.columns if c.name in {column.name for column in columns}]


def _all(columns: list[Column]) -> Iterator[Column]:
    """With those that are not there, since a contract's list must be."""
    yield from columns
    missing = {*SOURCES} - {column.name for column in columns}
    yield from (of(name, Kind.BOOL) for name in missing)


def kinds(column: VersionColumn) -> object:
    """What values of a column are in Harper."""
    kind = Kind.NUMERIC if column.kind is Kind.BIGNUMERIC else column.kind
    return kind, column.repeated, column.target.form


def paths(column: VersionColumn, above: str = "") -> Iterator[tuple[str, object]]:
    yield f"{above}{column.name}", kinds(column)
    for field in column.fields:
        yield from paths(field, f"{above}{column.name}.")


@settings(deadline=None, max_examples=150)
@given(STORIES, RULES)
def test_whatever_the_source_goes_through(schemas: list[list[Column]], rules: Rules) -> None:
    version = TableVersion(columns=())
    written: dict[str, object] = {}
    for columns in schemas:
        found = as_found(columns)
        after = replace(version, columns=evolve(version, found, rules))
        names = [column.name for column in after.columns]
        assert len({*names}) == len(names)
        assert not {*names} & {*rules.reserved}
        # Each column of the source has one place, and only these are not retired.
        active = [column for column in after.columns if column.state is not State.RETIRED]
        assert sorted(c.source.name for c in active) == sorted(c.name for c in columns)
        assert all(
            rules.follows(c.source.name)
            for c in active
            if version.find(c.name) is None and c.is_live
        )
        assert {c.name for c in version.columns if c.written} <= {*names}
        assert all(column.written for column in after.columns if column.is_live)
        for column in after.live:
            for path, kind in paths(column):
                assert written.setdefault(path, kind) == kind, path
        assert TableVersion.parse(after.body()) == after
        assert evolve(after, found, rules) == after.columns
        back = rolled_back(after, version)
        assert rolled_back(back, after).live_paths == after.live_paths
        assert back.live_names <= version.live_names
        assert back.live_paths >= version.live_paths & after.live_paths
        # The next look does not bring anything back.
        assert evolve(back, found, rules) == back.columns
        assert {c.name for c in after.columns if c.written} <= {
            c.name for c in back.columns if c.written
        }
        version = after


@pytest.mark.promise("F4")
def test_an_override_of_a_field_that_waits_is_no_error_for_who_plans_without_the_field() -> None:
    policy = {"schema_policy": "approve"}
    first = seen(None, of("address", Kind.STRUCT, STREET))
    waits = seen(first, of("address", Kind.STRUCT, STREET, ZIP), **policy)
    override = {"schema_overrides": {"address.zip": {"type": "string"}}}
    without = seen(waits, of("address", Kind.STRUCT, STREET), **policy, **override)
    assert without.live_paths == first.live_paths
    with pytest.raises(SchemaMismatch, match=r"address has no field zip"):
        seen(first, of("address", Kind.STRUCT, STREET), **policy, **override)


@pytest.mark.promise("F4")
def test_an_override_that_contradicts_the_source_is_told_with_both_sides() -> None:
    first = story((of("address", Kind.STRUCT, ZIP),))
    with pytest.raises(SchemaMismatch) as caught:
        seen(
            first,
            of("address", Kind.STRUCT, ZIP),
            TEXT,
            schema_overrides={
                "address.zip": {"type": "number"},
                "address.city": {"type": "string"},
                "speed.knots": {"type": "string"},
                "speed": {"type": "array"},
            },
        )
    assert str(caught.value) == (
        "table orders does not fit its source (4 problems); nothing was started.\n"
        "  - schemaOverrides: address.zip is STRING in BigQuery, which cannot be stored as number;"
        " it can be string\n"
        "  - schemaOverrides: address.city: address has no field city; it has zip\n"
        "  - schemaOverrides: speed.knots: speed is STRING, which has no fields\n"
        "  - schemaOverrides: speed is STRING in BigQuery, which cannot be stored as array; it can"
        " be string\n"
        "Correct this, then look again with: bqh schema show orders"
    )


def test_a_target_with_other_types_gets_a_successor_where_its_own_type_changes() -> None:
    keyed, key = contract(key="name"), of("name", Kind.STRING)

    def names(was: Kind, now: Kind) -> list[tuple[str, str]]:
        first = sql_plan(keyed, schema(key, of("size", was))).version
        second = sql_plan(keyed, schema(key, of("size", now)), first).version
        return [(each.name, each.target.type) for each in second.live[2:]]

    assert names(Kind.INT64, Kind.FLOAT64) == [("size_v2", "REAL")]
    assert names(Kind.NUMERIC, Kind.BIGNUMERIC) == [("size", "TEXT")]

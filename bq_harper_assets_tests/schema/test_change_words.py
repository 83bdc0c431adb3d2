"""The words for a change: what happened, what is done, and the way on."""

from dataclasses import replace
from typing import Any

import pytest

from bq_harper_assets.schema.change import ChangeKind
from bq_harper_assets.schema.change_words import dated
from bq_harper_assets.schema.changes import waiting_changes
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.schema.test_change import REMOVED
from bq_harper_assets_tests.schema.test_changes import ADDRESS, FROZEN, TEXT, WHOLE
from bq_harper_assets_tests.schema.versions import of, seen, story, told
from bq_harper_assets_tests.stores.small_tables import utc

KNOTS = replace(TEXT, name="knots")
CLEANUP = "speed keeps the values it has, and is listed by bqh schema cleanup orders"


@pytest.mark.promise("D1", "D2", "D3")
@pytest.mark.parametrize(
    ("before", "after", "declared", "texts"),
    [
        ([], [TEXT], {}, ["info: speed added (STRING): synced into speed from now on"]),
        (
            [],
            [TEXT],
            {"backfill": True},
            [
                "info: speed added (STRING): synced into speed; windows synced before are filled"
                " again"
            ],
        ),
        (
            [TEXT],
            [],
            {},
            [
                "warn: speed removed (STRING): left out from now on; Harper keeps the values of"
                " speed"
            ],
        ),
        (
            [TEXT],
            [WHOLE],
            {},
            [f"warn: speed retyped (STRING -> INT64): synced into speed_v2 from now on; {CLEANUP}"],
        ),
        (
            [of("price", Kind.NUMERIC)],
            [of("price", Kind.BIGNUMERIC)],
            {},
            ["info: price widened (NUMERIC -> BIGNUMERIC): recorded: Harper stores both alike"],
        ),
        (
            [replace(TEXT, max_length=5)],
            [replace(TEXT, max_length=9)],
            {},
            ["info: speed widened (STRING(5) -> STRING(9)): recorded: Harper stores both alike"],
        ),
        (
            [replace(TEXT, required=True)],
            [TEXT],
            {},
            ["info: speed mode (REQUIRED -> NULLABLE): recorded"],
        ),
        (
            [ADDRESS],
            [replace(ADDRESS, fields=(*ADDRESS.fields, of("city", Kind.STRING)))],
            {},
            [
                "info: address widened (STRUCT<zip STRING> -> STRUCT<zip STRING, city STRING>):"
                " synced into address.city from now on"
            ],
        ),
        (
            [ADDRESS],
            [replace(ADDRESS, repeated=True)],
            {},
            [
                "warn: address retyped (STRUCT<zip STRING> -> ARRAY<STRUCT<zip STRING>>): synced"
                " into address_v2 from now on; address keeps the values it has, and is listed by"
                " bqh schema cleanup orders"
            ],
        ),
        (
            [TEXT],
            [KNOTS],
            {},
            [
                "info: knots added (STRING): synced into knots from now on",
                "warn: speed removed (STRING): left out from now on; Harper keeps the values of"
                " speed",
            ],
        ),
        (
            [TEXT],
            [KNOTS],
            {"renames": {"speed": "knots"}},
            ["info: knots renamed (speed -> knots): Harper keeps it as speed"],
        ),
        (
            [TEXT],
            [replace(KNOTS, kind=Kind.INT64)],
            {"renames": {"speed": "knots"}},
            [
                "warn: knots retyped (STRING -> INT64): renamed from speed; synced into speed_v2"
                f" from now on; {CLEANUP}"
            ],
        ),
        (
            [TEXT],
            [replace(KNOTS, kind=Kind.INT64)],
            {"renames": {"speed": "knots"}, "schema_policy": "approve"},
            [
                "warn: knots retyped (STRING -> INT64): renamed from speed; waits for: bqh schema"
                " apply orders; speed keeps its values and gets no new ones"
            ],
        ),
        (
            [TEXT],
            [TEXT, of("more", Kind.INT64)],
            {"columns": ["event_time", "number", "speed"]},
            ["warn: more not selected: not synced: the contract's columns do not name it"],
        ),
        (
            [],
            [TEXT],
            {"schema_policy": "approve"},
            ["warn: speed added (STRING): waits for: bqh schema apply orders"],
        ),
        (
            [TEXT],
            [WHOLE],
            {"schema_policy": "freeze"},
            [
                f"error: speed retyped (STRING -> INT64): {FROZEN}; speed keeps its values and"
                " gets no new ones"
            ],
        ),
    ],
)
def test_each_change_is_told_with_what_is_done(
    before: list[Column], after: list[Column], declared: dict[str, Any], texts: list[str]
) -> None:
    first = story(tuple(before), **declared)
    assert told(None, first, **declared) == []
    second = seen(first, *after, **declared)
    changes = told(first, second, **declared)
    assert [f"{change.severity}: {change}" for change in changes] == texts
    assert told(second, seen(second, *after, **declared), **declared) == []
    assert [change.body()["action"] for change in changes] == [c.action for c in changes]


@pytest.mark.promise("D3")
def test_a_column_that_returns_is_told_with_what_became_of_windows_in_between() -> None:
    gone = story((TEXT,), ())
    [back] = told(gone, seen(gone, TEXT))
    assert str(back) == (
        "speed returned (STRING): synced into speed again: windows synced before it went follow"
        " BigQuery again, those synced while it was gone keep what they have"
    )
    [filled] = told(gone, seen(gone, TEXT, backfill=True), backfill=True)
    assert filled.action == "synced into speed again, in earlier windows too"
    [waits] = told(gone, seen(gone, TEXT, schema_policy="approve"), schema_policy="approve")
    assert (waits.kind, waits.action) == ("returned", "waits for: bqh schema apply orders")


def test_a_frozen_column_that_is_back_is_told_with_the_way_to_sync_it() -> None:
    policy = {"schema_policy": "freeze"}
    back = story((TEXT,), (WHOLE,), (TEXT,), **policy)
    [waits] = waiting_changes(back, contract(**policy))
    assert (waits.severity, waits.action) == (
        "error",
        "not synced: the policy is freeze; to sync it again, set the policy to approve and type:"
        " bqh schema apply orders",
    )


def test_all_that_is_new_or_lost_inside_a_column_is_told_in_order() -> None:
    names = [f"f{number}" for number in range(8)]
    fields = tuple(of(name, Kind.STRING) for name in names)
    whole = of("address", Kind.STRUCT, fields[0], *fields[1:])
    narrow = of("address", Kind.STRUCT, fields[0])
    [widened] = told(story((narrow,)), story((narrow,), (whole,)))
    new = ", ".join(f"address.{name}" for name in names[1:])
    assert widened.action == f"synced into {new} from now on"
    [lost] = told(story((whole,)), story((whole,), (narrow,)))
    assert lost.action == (
        f"without {new}; synced into address_v2 from now on; address keeps the values it has, and"
        " is listed by bqh schema cleanup orders"
    )
    [flat] = told(story((whole,)), story((whole,), (of("address", Kind.STRING),)))
    assert flat.action.startswith("synced into address_v2")


def test_a_column_that_the_contract_names_no_more_is_told_with_what_harper_keeps() -> None:
    declared = {"columns": ["event_time", "number"]}
    [left] = told(story((TEXT,)), seen(story((TEXT,)), TEXT, **declared), **declared)
    assert (left.severity, left.action) == (
        "warn",
        "left out from now on: the contract's columns do not name it any more; Harper keeps the"
        " values of speed",
    )


@pytest.mark.parametrize(
    ("indexed", "declared", "text"),
    [
        (
            (False, True),
            {},
            "Harper builds it at the next sync if the column came after the table was made; to an"
            " older one it adds none, and searches by it read the whole table. See: bqh schema"
            " indexes orders",
        ),
        (
            (False, True),
            {"manage": "adopt"},
            "Harper has one only if the table is declared with it. See: bqh schema indexes orders",
        ),
        ((True, False), {}, "the index stays in Harper"),
    ],
)
def test_an_index_that_comes_or_goes_is_told_with_what_harper_does(
    indexed: tuple[bool, bool], declared: dict[str, Any], text: str
) -> None:
    before, after = (
        {"schema_overrides": {"speed": {"indexed": each}}} | declared for each in indexed
    )
    first = story((TEXT,), **before)
    [change] = told(first, seen(first, TEXT, **after), **after)
    assert (change.kind, change.severity, change.action) == ("index", "warn", text)


def test_only_a_removed_column_with_values_is_told_with_since_when_it_is_gone() -> None:
    at = utc(2026, 11, 16, 7)
    gone = "gone since 2026-11-16 07:00:00 UTC; left out from now on"
    assert dated(REMOVED, at) == replace(REMOVED, action=gone)
    for other in (replace(REMOVED, severity="info"), replace(REMOVED, kind=ChangeKind.RETYPED)):
        assert dated(other, at) == other

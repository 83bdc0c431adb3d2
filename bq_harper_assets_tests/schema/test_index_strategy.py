"""Which columns are indexed, and the reason that is given."""

from typing import Any

import pytest

from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.schema.index_strategy import decide_indexes
from bq_harper_assets.schema.logical import Column, Kind, TableSchema
from bq_harper_assets.schema.selection import select_columns
from bq_harper_assets.stores.harper.schema import HarperTypes, attributes_of, harper_plan
from bq_harper_assets_tests.schema.samples import contract, schema


def decisions(
    source: TableSchema, lengths: dict[str, int] | None = None, **changes: Any
) -> dict[str, tuple[bool, str]]:
    table = contract(**changes)
    types = HarperTypes(table)
    decided = decide_indexes(select_columns(table, source, types), source, table, types, lengths)
    return {decision.column: (decision.indexed, decision.reason) for decision in decided}


@pytest.mark.promise("C1")
def test_timestamp_partition_and_clustering_are_indexed() -> None:
    names = ("day", "region", "kind", "tag", "note")
    source = schema(
        *(Column(name=name, kind=Kind.STRING) for name in names),
        partition_field="day",
        clustering=("region", "kind", "tag"),
    )
    assert decisions(source) == {
        "event_time": (True, "timestampColumn"),
        "day": (True, "partition"),
        "region": (True, "cluster"),
        "kind": (True, "cluster"),
        "tag": (True, "cluster"),
        "note": (False, "no rule"),
    }


@pytest.mark.promise("C2")
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("user_id", "_id"),
        ("_id", "_id"),
        ("userId", "Id"),
        ("created_at", "created_at"),
        ("updated_at", "updated_at"),
        ("arrival_time", "time"),
        ("arrivalTime", "time"),
        ("TIME", "time"),
        ("timestamp", "time"),
        ("ETATime2", "time"),
        ("time-of-day", "time"),
        ("date", "date"),
        ("birthDate", "date"),
        ("date2", "date"),
        ("datetime", "time"),
        ("update", None),
        ("updated", None),
        ("candidate", None),
        ("lifetime", None),
        ("sometimes", None),
        ("valid", None),
        ("grid", None),
        ("paid", None),
        ("Id_card", None),
        ("идентификатор", None),
    ],
)
def test_names_are_judged_by_their_words(name: str, rule: str | None) -> None:
    told = decisions(schema(Column(name=name, kind=Kind.STRING)))[name]
    assert told == ((True, f"name:{rule}") if rule else (False, "no rule"))


@pytest.mark.promise("C2")
@pytest.mark.parametrize(
    ("kind", "indexed"),
    [
        (Kind.TIMESTAMP, True),
        (Kind.DATE, True),
        (Kind.INT64, True),
        (Kind.FLOAT64, False),
        (Kind.BOOL, False),
        (Kind.BYTES, False),
    ],
)
def test_a_time_word_counts_only_on_types_that_hold_times(kind: Kind, indexed: bool) -> None:
    assert decisions(schema(Column(name="port_time", kind=kind)))["port_time"][0] is indexed


@pytest.mark.promise("C2")
def test_a_column_id_is_indexed_unless_it_is_the_primary_key() -> None:
    source = schema(Column(name="id", kind=Kind.STRING))
    assert decisions(source)["id"] == (True, "name:id")
    indexed, reason = decisions(source, key="id")["id"]
    assert not indexed
    assert reason.startswith("refused: it is the primary key")


@pytest.mark.promise("C3")
def test_long_text_arrays_and_objects_are_never_indexed_whatever_their_names() -> None:
    source = schema(
        Column(name="candidate_id", kind=Kind.STRING),
        Column(name="text_id", kind=Kind.STRING, max_length=257),
        Column(name="short_id", kind=Kind.STRING, max_length=256),
        Column(name="tag_id", kind=Kind.INT64, repeated=True),
        Column(name="time_info", kind=Kind.STRUCT, fields=(Column(name="a", kind=Kind.INT64),)),
        Column(name="json_id", kind=Kind.JSON),
        Column(name="place_id", kind=Kind.GEOGRAPHY),
    )
    told = decisions(source, {"candidate_id": 50_000, "short_id": 256})
    assert told["candidate_id"] == (
        False,
        "refused: text of up to 50000 characters (found), more than 256",
    )
    assert told["text_id"] == (
        False,
        "refused: text of up to 257 characters (declared), more than 256",
    )
    assert told["short_id"] == (True, "name:_id")
    assert told["tag_id"] == (False, "refused: an array")
    assert told["time_info"] == (False, "refused: an object")
    assert told["json_id"] == (False, "refused: JSON")
    assert told["place_id"] == (False, "refused: an object")


@pytest.mark.promise("C1", "C3")
def test_a_column_that_the_source_is_clustered_by_is_indexed_however_long_its_texts_are() -> None:
    source = schema(
        Column(name="declared", kind=Kind.STRING, max_length=257),
        Column(name="found", kind=Kind.STRING),
        Column(
            name="place", kind=Kind.GEOGRAPHY
        ),  # BigQuery clusters by it, and Harper has no such index
        clustering=("declared", "found", "place"),
    )
    told = decisions(source, {"found": 50_000})
    assert told["declared"] == (True, "cluster")
    assert told["found"] == (True, "cluster")
    assert told["place"] == (False, "refused: an object")


@pytest.mark.promise("C1")
def test_the_timestamp_is_indexed_where_no_other_rule_would_and_no_override_can_change_it() -> None:
    source = schema(Column(name="moved", kind=Kind.TIMESTAMP))
    assert decisions(source)["moved"] == (False, "no rule")
    assert decisions(source, timestamp_column="moved")["moved"] == (True, "timestampColumn")
    with pytest.raises(SchemaMismatch, match="moved is the timestampColumn, by whose index"):
        decisions(source, timestamp_column="moved", schema_overrides={"moved": {"indexed": False}})


def test_an_override_wins_over_every_rule() -> None:
    source = schema(
        Column(name="tags", kind=Kind.STRING, repeated=True),
        Column(name="user_id", kind=Kind.INT64),
    )
    overrides = {"tags": {"indexed": True}, "user_id": {"indexed": False}}
    told = decisions(source, schema_overrides=overrides)
    assert told["tags"] == (True, "override")
    assert told["user_id"] == (False, "override")


def test_an_override_of_the_type_alone_leaves_the_index_to_the_rules() -> None:
    told = decisions(
        schema(Column(name="user_id", kind=Kind.INT64)),
        schema_overrides={"user_id": {"type": "string"}},
    )
    assert told["user_id"] == (True, "name:_id")


@pytest.mark.promise("C1")
def test_the_plan_declares_all_columns_and_indexes_exactly_what_was_decided() -> None:
    source = schema(Column(name="user_id", kind=Kind.INT64), Column(name="note", kind=Kind.STRING))
    plan = harper_plan(contract(), source)
    assert [(each.name, each.type, each.indexed) for each in attributes_of(plan)] == [
        ("id", "String", False),
        ("event_time", "String", True),
        ("user_id", "Long", True),
        ("note", "String", False),
        ("_syncedAt", "String", False),
        ("_batch", "Long", False),
        ("_hash", "String", False),
    ]
    assert plan.indexed == ("event_time", "user_id")

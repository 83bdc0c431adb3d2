"""Records written under one version of a schema, read as rows of another."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.encoding.column_values import stored_values
from bq_harper_assets.stores.harper.encoding.geography import geojson_texts
from bq_harper_assets.stores.harper.reading.rows_as_version import as_version
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.types import HarperColumn
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.harper.reading.test_from_harper import VALUES, as_bigquery

pytestmark = pytest.mark.promise("F3")
AT = datetime(2026, 11, 16, 7, tzinfo=UTC)
AT_TEXT = "2026-11-16T07:00:00.000000Z"
SPEED = Column(name="speed", kind=Kind.STRING)
TRIP = Column(name="trip", kind=Kind.STRUCT, fields=(Column(name="from", kind=Kind.STRING),))
LONGER = Column(
    name="trip",
    kind=Kind.STRUCT,
    fields=(*TRIP.fields, Column(name="via", kind=Kind.STRING, repeated=True)),
)
NUMBERED = Column(name="trip", kind=Kind.STRUCT, fields=(Column(name="from", kind=Kind.INT64),))


def history(*versions: tuple[Column, ...], **changes: Any) -> list[TableVersion]:
    """What a table's versions are if its source has these columns one after the other."""
    found: list[TableVersion] = []
    for columns in versions:
        before = found[-1] if found else None
        declared = contract(key=["n"], **changes)
        key = Column(name="n", kind=Kind.INT64)
        found.append(harper_plan(declared, schema(key, *columns), before).version)
    return found


def record(**values: Any) -> dict[str, Any]:
    return {"id": 1, "n": 1, "event_time": AT_TEXT, "_batch": 7, "_hash": "x", **values}


def row(**values: Any) -> dict[str, Any]:
    return {"event_time": AT, "n": 1, **values}


def test_a_column_that_the_row_was_written_without_is_null_or_an_empty_array() -> None:
    first, second = history((), (SPEED, Column(name="tags", kind=Kind.STRING, repeated=True)))
    assert as_version(record(), first, second) == row(speed=None, tags=[])
    assert as_version(record(speed="9", tags=["a"]), second, first) == row()
    assert as_version(record(speed="9", tags=["a"]), second, second) == row(speed="9", tags=["a"])


def test_what_an_older_batch_left_in_a_removed_column_is_not_the_row_s() -> None:
    first, removed, back = history((SPEED,), (), (SPEED,))
    assert as_version(record(speed="9"), first, back) == row(speed="9")
    assert as_version(record(speed="9"), removed, first) == row(speed=None)
    assert as_version(record(speed="9"), removed, back) == row(speed=None)


@pytest.mark.promise("D2")
def test_each_successor_of_a_retyped_column_is_read_under_its_one_name() -> None:
    versions = history(
        (SPEED,), (replace(SPEED, kind=Kind.INT64),), (replace(SPEED, kind=Kind.FLOAT64),)
    )
    assert [v.live[-1].name for v in versions] == ["speed", "speed_v2", "speed_v3"]
    stale = {"speed": "1", "speed_v2": 2}  # of older batches that wrote the same row
    for written, values, expected in (
        (versions[0], {"speed": "12"}, ("12", 12, 12.0)),
        (versions[0], {"speed": "fast"}, ("fast", None, None)),
        (versions[1], {"speed": "1", "speed_v2": 12}, ("12", 12, 12.0)),
        (versions[2], {**stale, "speed_v3": 12.0}, ("12.0", 12, 12.0)),
        (versions[2], {**stale, "speed_v3": 12.5}, ("12.5", None, 12.5)),
        (versions[2], {**stale, "speed_v3": None}, (None, None, None)),
    ):
        read = [as_version(record(**values), written, wanted)["speed"] for wanted in versions]
        assert read == list(expected)


@pytest.mark.promise("N8")
def test_a_renamed_column_has_the_name_of_the_version_it_is_read_as() -> None:
    knots = Column(name="knots", kind=Kind.STRING)
    renames = {"renames": {"speed": "knots"}}
    first, renamed, retyped = history(
        (SPEED,), (knots,), (replace(knots, kind=Kind.INT64),), **renames
    )
    assert [v.live[-1].name for v in (first, renamed, retyped)] == ["speed", "speed", "speed_v2"]
    for written, values in (
        (first, {"speed": "9"}),
        (renamed, {"speed": "9"}),
        (retyped, {"speed": "1", "speed_v2": 9}),
    ):
        assert as_version(record(**values), written, first) == row(speed="9")
        assert as_version(record(**values), written, renamed) == row(knots="9")
        assert as_version(record(**values), written, retyped) == row(knots=9)


@pytest.mark.promise("N8")
def test_another_column_that_takes_a_name_that_became_free_is_not_taken_for_the_old_one() -> None:
    knots = Column(name="knots", kind=Kind.STRING)
    first, _, third = history((SPEED,), (knots,), (knots, SPEED), renames={"speed": "knots"})
    values = {"speed": "9", third.live[-1].name: "other"}
    assert as_version(record(**values), third, third) == row(knots="9", speed="other")
    assert as_version(record(**values), third, first) == row(speed="9")
    assert as_version(record(speed="9"), first, third) == row(knots="9", speed=None)


def test_a_column_renamed_to_what_another_was_called_is_not_taken_for_that_one() -> None:
    knots = Column(name="knots", kind=Kind.STRING)
    first, _, third = history((SPEED, knots), (SPEED,), (knots,), renames={"speed": "knots"})
    values = {"speed": "9", "knots": "left by an older batch"}
    assert as_version(record(**values), third, first) == row(speed="9", knots=None)
    assert as_version(record(**values), third, third) == row(knots="9")


def test_fields_inside_a_column_are_read_the_same_way() -> None:
    first, longer, numbered = history((TRIP,), (LONGER,), (NUMBERED,))
    assert [v.live[-1].name for v in (first, longer, numbered)] == ["trip", "trip", "trip_v2"]
    assert as_version(record(trip={"from": "5"}), first, longer)["trip"] == {"from": "5", "via": []}
    assert as_version(record(trip={"from": "5"}), first, numbered)["trip"] == {"from": 5}
    assert as_version(record(trip=None), first, longer)["trip"] is None
    stored = record(trip={"from": "5", "via": ["a"]})
    assert as_version(stored, longer, first)["trip"] == {"from": "5"}
    stored = record(trip={"from": "old"}, trip_v2={"from": 6})
    assert as_version(stored, numbered, longer)["trip"] == {"from": "6", "via": []}


def test_what_waits_or_was_not_synced_yet_is_in_no_row() -> None:
    first, waiting = history((), (SPEED,), schema_policy="approve")
    assert as_version(record(), first, waiting) == row()


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_rows_read_as_the_version_they_were_written_under_are_the_source_s(
    data: st.DataObject,
) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = tuple(Column(name=f"c{at}", kind=kind) for at, kind in enumerate(kinds))
    retyped = tuple(replace(c, kind=data.draw(st.sampled_from(list(VALUES)))) for c in columns)
    for written in history(columns, retyped):
        values, expected = {}, {}
        for column in written.live[2:]:
            type_, strategy = VALUES[column.kind]
            value = data.draw(st.none() | strategy)
            array = pa.array([value], type_)
            stored = stored_values(array, HarperColumn.of(column), geojson_texts)
            assume(not stored.faults)
            values[column.name] = json.loads(stored.as_json().to_pylist()[0])
            expected[column.source.name] = as_bigquery(value, column.kind)
        assert as_version(record(**values), written, written) == row(**expected)

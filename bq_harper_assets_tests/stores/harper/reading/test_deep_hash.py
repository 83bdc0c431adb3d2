"""A deep proof's hash: the same for the same meaning, another for another."""

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.reading.deep_hash import record_hash
from bq_harper_assets.sync.identity.row_id import hash_text, hashes_of_text
from bq_harper_assets_tests.stores.harper_columns import native_column

COLUMNS = (
    Column(name="ts", kind=Kind.TIMESTAMP),
    Column(name="a", kind=Kind.FLOAT64),
    Column(name="b", kind=Kind.JSON),
)
PLAN = RowPlan(columns=tuple(map(native_column, COLUMNS)), timestamp="ts")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1.0}, {"a": 1}),
        ({"a": -0.0}, {"a": 0}),
        ({"a": None, "b": []}, {}),
        ({"b": {"x": 1, "0": 2}}, {"b": {"0": 2.0, "x": 1}}),
        ({"a": 1, "_batch": 5, "__updatedtime__": 9}, {"a": 1, "_batch": 6}),
    ],
)
def test_records_of_one_meaning_share_a_hash(
    one: dict[str, object], other: dict[str, object]
) -> None:
    assert record_hash(one, PLAN) == record_hash(other, PLAN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 1.5}),
        ({"a": 1}, {"b": 1}),
        ({"b": "1"}, {"b": 1}),
        ({"b": [1, 2]}, {"b": [2, 1]}),
        ({"b": {"x": "y"}}, {"b": {"x": "z"}}),
        ({"a": 0}, {}),
    ],
)
def test_records_of_another_meaning_do_not(
    one: dict[str, object], other: dict[str, object]
) -> None:
    assert record_hash(one, PLAN) != record_hash(other, PLAN)


def test_a_stored_row_hash_is_read_as_it_was_written_and_anything_else_is_none() -> None:
    hashes = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    assert hashes_of_text(hash_text(hashes)).tolist() == hashes.tolist()
    others = pa.array([None, "", "short", "UUUUUUUUUUUUU", "0000000000000x", "ÄÄÄÄÄÄÄ"])
    assert hashes_of_text(others).tolist() == [0] * 6


def test_a_field_that_is_not_synced_counts_as_not_there() -> None:
    zip_ = Column(name="zip", kind=Kind.STRING)
    address = Column(name="address", kind=Kind.STRUCT, fields=(zip_,))
    columns = (
        address,
        Column(name="stops", kind=Kind.STRUCT, repeated=True, fields=(zip_,)),
        COLUMNS[0],
    )
    plan = RowPlan(columns=tuple(map(native_column, columns)), timestamp="ts")
    one = {"address": {"zip": "1"}, "stops": [{"zip": "2"}, {}]}
    aside = {"address": {"zip": "1", "city": "x"}, "stops": [{"zip": "2"}, {"city": "y"}]}
    assert record_hash(one, plan) == record_hash(aside, plan)
    assert record_hash(one, plan) != record_hash({"address": {"zip": "1"}}, plan)

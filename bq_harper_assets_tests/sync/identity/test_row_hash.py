"""Row hashes: the same for the same row, whatever it travels in."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.errors import UnhashableType
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets_tests.sync import reference_hash
from bq_harper_assets_tests.sync.typed_values import EVERY_TYPE, columns


def _hash(**columns: pa.Array) -> list[int]:
    return [int(number) for number in row_hashes(pa.record_batch(columns))]


@pytest.mark.promise("A9")
@settings(deadline=None, max_examples=300)
@given(columns(), st.sampled_from([0, 1]), st.integers(0, 3))
def test_the_hash_of_every_type_is_the_one_described(
    column: tuple[pa.DataType, list[Any]], lane: int, skipped: int
) -> None:
    type_, values = column
    batch = pa.record_batch({"c": pa.array(values, type_)})
    expected = [reference_hash.row_hash({"c": value}, lane) for value in values]
    assert row_hashes(batch, lane=lane).tolist() == expected
    assert row_hashes(batch.slice(skipped), lane=lane).tolist() == expected[skipped:]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_cuts_and_column_order_and_columns_without_values_change_nothing(
    data: st.DataObject,
) -> None:
    rows = data.draw(st.integers(1, 5))
    names = data.draw(
        st.lists(st.sampled_from(sorted(EVERY_TYPE)), min_size=1, max_size=5, unique=True)
    )
    table = {
        name: pa.array(
            data.draw(st.lists(st.none() | EVERY_TYPE[name][1], min_size=rows, max_size=rows)),
            EVERY_TYPE[name][0],
        )
        for name in names
    }
    batch = pa.record_batch(table)
    hashes = row_hashes(batch).tolist()
    reversed_and_longer = pa.record_batch(
        dict(reversed(table.items()))
        | {
            "added": pa.nulls(rows, pa.string()),
            "repeated": pa.array([[]] * rows, pa.list_(pa.int64())),
        }
    )
    assert row_hashes(reversed_and_longer).tolist() == hashes
    one_by_one = [row_hashes(batch.slice(at, 1))[0] for at in range(rows)]
    assert one_by_one == hashes


def test_fields_without_values_are_left_out_at_any_depth() -> None:
    before = pa.array([{"a": 1, "items": [{"x": 1}]}])
    after = pa.array(
        [{"a": 1, "items": [{"x": 1, "y": None, "z": []}], "b": None, "c": []}],
        pa.struct(
            [
                ("a", pa.int64()),
                (
                    "items",
                    pa.list_(
                        pa.struct(
                            [("x", pa.int64()), ("y", pa.string()), ("z", pa.list_(pa.date32()))]
                        )
                    ),
                ),
                ("b", pa.string()),
                ("c", pa.list_(pa.int64())),
            ]
        ),
    )
    assert _hash(s=before) == _hash(s=after)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array(["ab"]), pa.array(["ab"]).dictionary_encode()),
        (pa.array(["ab"]), pa.array(["ab"], pa.string_view())),
        (
            pa.array([Decimal("1.5")], pa.decimal128(38, 9)),
            pa.array([Decimal("1.5")], pa.decimal256(76, 38)),
        ),
        (pa.array([1], pa.timestamp("ms", "UTC")), pa.array([1000], pa.timestamp("us", "UTC"))),
        (pa.array([1], pa.int32()), pa.array([1], pa.int64())),
        (pa.array([[1]]), pa.array([[1]], pa.large_list(pa.int64()))),
    ],
    ids=lambda array: str(array.type),
)
def test_equal_values_hash_alike_whatever_holds_them(one: pa.Array, other: pa.Array) -> None:
    assert _hash(c=one) == _hash(c=other)


_PAIR = pa.struct([("a", pa.int64()), ("b", pa.int64())])


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.string(), [None, "", "\0", "\0\0", "x" * 64 + "y", "x" * 65]),
        (pa.string(), ["x" * 72 + "a" + "x" * 7 + "b", "x" * 72 + "b" + "x" * 7 + "a"]),
        (pa.list_(pa.int64()), [[], [0], [0, 0], [1, 2], [2, 1]]),
        (pa.list_(pa.string()), [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""]]),
        (
            _PAIR,
            [None, {"a": None, "b": None}, {"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1, "b": None}],
        ),
        (pa.int64(), [None, 0, 1, -1, 2**53, 2**53 + 1]),
        (pa.float64(), [None, 0.0, 5e-324, float("nan"), float("inf"), float("-inf")]),
    ],
)
def test_what_differs_hashes_differently(type_: pa.DataType, values: list[Any]) -> None:
    assert len(set(_hash(c=pa.array(values, type_)))) == len(values)


def test_the_same_values_in_other_columns_hash_differently() -> None:
    one, two = pa.array([1]), pa.array([2])
    assert len({*_hash(a=one, b=two), *_hash(a=two, b=one), *_hash(a=one), *_hash(b=one)}) == 4


def test_a_very_long_text_among_short_ones_is_hashed_in_one_go() -> None:
    texts = ["short", "y" * 5_000_000, ""]
    expected = [reference_hash.row_hash({"c": text}) for text in (texts[0], texts[2])]
    assert [_hash(c=pa.array(texts))[at] for at in (0, 2)] == expected
    assert _hash(c=pa.array(texts))[1] == _hash(c=pa.array([texts[1]]))[0]


@pytest.mark.promise("A9")
def test_hashes_stay_what_they_were_in_earlier_releases() -> None:
    batch = pa.record_batch(
        {
            "id": pa.array([1, -1]),
            "name": pa.array(["Ångström", None]),
            "at": pa.array([0, -62135596800000000], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("0.000000001"), Decimal("-12")], pa.decimal128(38, 9)),
            "tags": pa.array([["a", "b"], []]),
        }
    )
    assert [f"{number:016x}" for number in row_hashes(batch)] == [
        "1d482fce6cfcc8a5",
        "92f9017d924caab5",
    ]
    assert [f"{number:016x}" for number in row_hashes(batch, lane=1)] == [
        "d2ed797f5d3f8804",
        "4360e7a2a221fb4a",
    ]


def test_the_two_lanes_have_nothing_in_common() -> None:
    numbers = pa.record_batch({"n": pa.array(np.arange(20_000))})
    equal_bits = np.bitwise_count(~(row_hashes(numbers) ^ row_hashes(numbers, lane=1)))
    assert abs(float(equal_bits.mean()) - 32) < 0.2


def test_a_type_without_a_hash_is_named_with_a_way_out() -> None:
    with pytest.raises(UnhashableType, match=r"duration.*columns"):
        row_hashes(pa.record_batch({"c": pa.array([1], pa.duration("s"))}))


def test_a_column_without_any_value_needs_no_type_that_can_be_hashed() -> None:
    numbers = pa.array([1, 2])
    assert _hash(n=numbers, c=pa.nulls(2, pa.duration("s"))) == _hash(n=numbers)


def test_elements_without_a_value_hash_alike_whatever_their_type() -> None:
    of_nothing = pa.array([[None], [None, None]], pa.list_(pa.null()))
    of_numbers = pa.array([[None], [None, None]], pa.list_(pa.int64()))
    assert _hash(c=of_nothing) == _hash(c=of_numbers)


def test_a_type_that_is_no_value_at_all_is_named_too() -> None:
    pairs = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(UnhashableType, match="map"):
        row_hashes(pa.record_batch({"c": pairs}))


def test_rows_are_equal_over_no_columns_at_all() -> None:
    batch = pa.record_batch({"a": [1, 2]})
    first, second = row_hashes(batch, []).tolist()
    assert first == second != row_hashes(batch).tolist()[0]

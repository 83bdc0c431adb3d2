"""Encoding: what a row of BigQuery is in Harper's JSON, or why it is refused."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.record import Encoded, encode_batch
from bq_harper_assets.stores.harper.encoding.request_body import bodies
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.types import Form, HarperColumn
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets_tests.stores.harper_columns import native_column

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
MOMENT = pa.timestamp("us", "UTC")
K = Kind


def _geojson(wkt: pa.Array) -> pa.Array:
    known = pc.equal(wkt, "POINT(1 2)")
    return pc.if_else(known, '{"type":"Point","coordinates":[1,2]}', pa.scalar(None, pa.string()))


def encoded_batch(
    column: Column | HarperColumn, array: pa.Array, as_text: tuple[Kind, ...] = ()
) -> Encoded:
    stored = column if isinstance(column, HarperColumn) else native_column(column, as_text)
    at = native_column(Column(name="at", kind=K.TIMESTAMP))
    plan = RowPlan(columns=(stored, at), timestamp="at", geojson=_geojson)
    batch = pa.record_batch({stored.name: array, "at": pa.array([NOON] * len(array), MOMENT)})
    return encode_batch(batch, plan, identify(batch, plan), synced_at=NOON, batch_number=7)


def stored_rows(encoded: Encoded) -> list[dict[str, Any]]:
    return [
        row
        for body in bodies(encoded.accepted, most_rows=1000, most_bytes=10**8)
        for row in json.loads(body.content)
    ]


def stored_values(
    column: Column | HarperColumn, array: pa.Array, as_text: tuple[Kind, ...] = ()
) -> list[Any]:
    """What arrives; a refused row is the word REFUSED and the reason."""
    encoded = encoded_batch(column, array, as_text)
    rows = iter(stored_rows(encoded))
    return [
        next(rows)[column.name] if reason is None else f"REFUSED {reason}"
        for reason in encoded.reasons.to_pylist()
    ]


BEYOND = "beyond 2^53; with values.int64: string such columns are kept as text"
DIGITS = "more than 15 digits; with values.numeric: string such columns are kept as text"
UNBOUNDED = "NaN or infinite, which JSON cannot hold"
WAY_OUT = "with schemaOverrides type: string the column is kept as text"
NUMERIC, BIGNUMERIC = pa.decimal128(38, 9), pa.decimal256(76, 38)
TEXTS = ["", "\0", '"\\\n', "🚢", "x" * 5_000_000, None]
NO_BOUNDS = {"start": None, "end": None}
DATES = pa.struct([("start", pa.date32()), ("end", pa.date32())])


@pytest.mark.promise("B1", "B2", "B5", "B6")
def test_values_inside_of_arrays_and_records_follow_the_same_rules() -> None:
    fields = (
        Column(name="n", kind=K.INT64),
        Column(name="f", kind=K.FLOAT64, repeated=True),
        Column(name="d", kind=K.NUMERIC),
    )
    column = Column(name="v", kind=K.STRUCT, repeated=True, fields=fields)
    type_ = pa.list_(pa.struct([("n", pa.int64()), ("f", pa.list_(pa.float64())), ("d", NUMERIC)]))
    good = {"n": 1, "f": [0.5], "d": Decimal("1.5")}
    array = pa.array(
        [
            [good, good],
            [good, {**good, "n": 2**60}],
            [],
            [{**good, "f": [1.0, float("nan")]}],
            [{**good, "d": Decimal("1234567890.123456789")}],
            [{**good, "n": -(2**60), "f": [float("inf")]}],
        ],
        type_,
    )
    stored = {"n": 1, "f": [0.5], "d": 1.5}
    assert stored_values(column, array) == [
        [stored, stored],
        f"REFUSED v[].n: {BEYOND}",
        [],
        f"REFUSED v[].f[]: {UNBOUNDED}",
        f"REFUSED v[].d: {DIGITS}",
        f"REFUSED v[].n: {BEYOND}; v[].f[]: {UNBOUNDED}",
    ]
    texts = stored_values(column, array.slice(1, 1), (K.INT64,))
    assert texts == [[{**stored, "n": "1"}, {**stored, "n": str(2**60)}]]


def test_what_lies_under_a_null_refuses_nothing() -> None:
    inner = pa.StructArray.from_arrays(
        [pa.array([float("nan"), 1.0])], ["f"], mask=pa.array([True, False])
    )
    column = Column(name="v", kind=K.STRUCT, fields=(Column(name="f", kind=K.FLOAT64),))
    assert stored_values(column, inner) == [None, {"f": 1.0}]


@pytest.mark.promise("B2")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_every_finite_float_survives(values: list[float]) -> None:
    assert stored_values(Column(name="v", kind=K.FLOAT64), pa.array(values)) == values


@pytest.mark.promise("B2")
def test_nan_and_infinities_refuse_their_row() -> None:
    array = pa.array([5e-324, float("nan"), None, float("inf"), float("-inf"), 1e22])
    bad = f"REFUSED v: {UNBOUNDED}"
    assert stored_values(Column(name="v", kind=K.FLOAT64), array) == [
        5e-324,
        bad,
        None,
        bad,
        bad,
        1e22,
    ]


@pytest.mark.promise("B2")
@settings(deadline=None, max_examples=100)
@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 38))
def test_a_decimal_of_fifteen_digits_is_the_nearest_number(mantissa: int, exponent: int) -> None:
    value = Decimal(mantissa).scaleb(-exponent)
    [number] = stored_values(Column(name="v", kind=K.BIGNUMERIC), pa.array([value], BIGNUMERIC))
    assert number == float(value)
    assert Decimal(repr(number)) == value


@pytest.mark.promise("B2")
def test_longer_decimals_refuse_their_row_or_are_kept_as_text() -> None:
    values = [
        Decimal("123456789012345"),
        Decimal("1234567890123456"),
        Decimal("-0.1"),
        None,
        Decimal("1E-9"),
    ]
    longest = Decimal("9" * 29 + "." + "9" * 9)
    array = pa.array([*values, longest], NUMERIC)
    bad = f"REFUSED v: {DIGITS}"
    assert stored_values(Column(name="v", kind=K.NUMERIC), array) == [
        123456789012345,
        bad,
        -0.1,
        None,
        1e-9,
        bad,
    ]
    assert stored_values(Column(name="v", kind=K.NUMERIC), array, (K.NUMERIC,)) == [
        "123456789012345", "1234567890123456", "-0.1", None, "0.000000001", str(longest),
    ]  # fmt: skip


@pytest.mark.promise("B3", "B4")
@pytest.mark.parametrize(
    ("kind", "array", "expected"),
    [
        (K.STRING, pa.array(TEXTS), TEXTS),
        (K.STRING, pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (K.BOOL, pa.array([True, False, None]), [True, False, None]),
        (K.BYTES, pa.array([b"\x00\xff", b"", None]), ["AP8=", "", None]),
        (K.TIMESTAMP, pa.array([NOON, None], MOMENT), ["2026-11-16T12:00:00.000000Z", None]),
        (K.DATETIME, pa.array([0, None], pa.timestamp("us")), ["1970-01-01T00:00:00.000000", None]),
        (K.DATE, pa.array([date(2024, 2, 29), None]), ["2024-02-29", None]),
        (K.TIME, pa.array([time(23, 59, 59, 999999), None]), ["23:59:59.999999", None]),
    ],
)  # fmt: skip
def test_scalars_arrive_as_themselves_or_as_iso_text(
    kind: Kind, array: pa.Array, expected: list[Any]
) -> None:
    assert stored_values(Column(name="v", kind=kind), array) == expected
    repeated = pa.LargeListArray.from_arrays(pa.array([0, 0, len(array)], pa.int64()), array)
    assert stored_values(Column(name="v", kind=kind, repeated=True), repeated) == [[], expected]


@pytest.mark.promise("B5")
def test_records_three_deep_keep_nulls_apart_from_records_of_nulls() -> None:
    inner = Column(
        name="c",
        kind=K.STRUCT,
        fields=(Column(name="at", kind=K.DATE), Column(name="b", kind=K.BYTES)),
    )
    column = Column(
        name="v", kind=K.STRUCT, fields=(Column(name="m", kind=K.STRUCT, fields=(inner,)),)
    )
    leaf = pa.struct([("at", pa.date32()), ("b", pa.binary())])
    array = pa.array(
        [
            None,
            {"m": None},
            {"m": {"c": None}},
            {"m": {"c": {"at": None, "b": None}}},
            {"m": {"c": {"at": date(1, 1, 1), "b": b"\xff"}}},
        ],
        pa.struct([("m", pa.struct([("c", leaf)]))]),
    )  # fmt: skip
    assert stored_values(column, array) == [
        None,
        {"m": None},
        {"m": {"c": None}},
        {"m": {"c": {"at": None, "b": None}}},
        {"m": {"c": {"at": "0001-01-01", "b": "/w=="}}},
    ]


@pytest.mark.promise("B6")
def test_arrays_keep_their_order_and_a_null_array_is_an_empty_one() -> None:
    long = list(range(10_000))
    array = pa.array([[3, 1, 2], [], None, long])
    assert stored_values(Column(name="v", kind=K.INT64, repeated=True), array) == [
        [3, 1, 2],
        [],
        [],
        long,
    ]
    assert stored_values(Column(name="v", kind=K.INT64, repeated=True), array.slice(1, 2)) == [
        [],
        [],
    ]


@pytest.mark.promise("B8")
def test_json_arrives_as_native_values() -> None:
    texts = ['{"a": {"b": [1, null, "x"]},\n "c": 1.5}', "[]", '"text"', "17", "true", "null", None]
    expected = [None if text is None else json.loads(text) for text in texts]
    assert stored_values(Column(name="v", kind=K.JSON), pa.array(texts)) == expected


@pytest.mark.promise("B8")
def test_json_that_harper_would_bend_refuses_its_row_alone() -> None:
    array = pa.array(['{"a":1}', "{", '{"n":9007199254740993}', '{"a":1,"a":2}', "[1e999]"])
    refused = f"REFUSED v: not JSON that can be stored; {WAY_OUT}"
    too_large = f"REFUSED v: an integer beyond 2^53; {WAY_OUT}"
    assert stored_values(Column(name="v", kind=K.JSON), array) == [
        {"a": 1},
        refused,
        too_large,
        {"a": 2},
        refused,
    ]
    as_text = HarperColumn(name="v", kind=K.JSON, form=Form.TEXT)
    assert stored_values(as_text, array) == array.to_pylist()


@pytest.mark.promise("B8", "B5", "B6")
def test_json_inside_of_records_and_arrays_is_native_too() -> None:
    fields = (
        Column(name="j", kind=K.JSON),
        Column(name='q"', kind=K.STRING),
        Column(name="js", kind=K.JSON, repeated=True),
        Column(name="d", kind=K.DATE),
    )
    column = Column(name="v", kind=K.STRUCT, repeated=True, fields=fields)
    type_ = pa.list_(
        pa.struct(
            [
                ("j", pa.string()),
                ('q"', pa.string()),
                ("js", pa.list_(pa.string())),
                ("d", pa.date32()),
            ]
        )
    )
    row = {"j": '{"x":[1]}', 'q"': 'a"b', "js": ["1", '"y"'], "d": date(2026, 1, 1)}
    bare = {"j": None, 'q"': None, "js": [], "d": None}
    array = pa.array([[row, bare, None], [], None, [{**row, "js": ["{"]}]], type_)
    assert stored_values(column, array) == [
        [
            {"j": {"x": [1]}, 'q"': 'a"b', "js": [1, "y"], "d": "2026-01-01"},
            {"j": None, 'q"': None, "js": [], "d": None},
            None,
        ],
        [],
        [],
        f"REFUSED v[].js[]: not JSON that can be stored; {WAY_OUT}",
    ]


@pytest.mark.promise("B7")
def test_geography_is_geojson_and_what_cannot_be_read_refuses_its_row() -> None:
    array = pa.array(["POINT(1 2)", None, "CIRCLE(1)"])
    point = {"type": "Point", "coordinates": [1, 2]}
    refused = "REFUSED v: not a geometry that can be read"
    assert stored_values(Column(name="v", kind=K.GEOGRAPHY), array) == [point, None, refused]
    text = stored_values(HarperColumn(name="v", kind=K.GEOGRAPHY, form=Form.TEXT), array)
    assert [json.loads(text[0]), *text[1:]] == [point, None, refused]


@pytest.mark.promise("B9")
@pytest.mark.parametrize(
    ("kind", "array", "expected"),
    [
        (K.INTERVAL, pa.array([pa.MonthDayNano((1, 2, 0)), None]), ["0-1 2 0:0:0", None]),
        (K.RANGE, pa.array([NO_BOUNDS, None], DATES), ["[UNBOUNDED, UNBOUNDED)", None]),
        (K.UNKNOWN, pa.array(["as it is", None]), ["as it is", None]),
        (K.UNKNOWN, pa.array([b"\xff", None]), ["/w==", None]),
        (K.UNKNOWN, pa.array([1.5, None]), ["1.5", None]),
        (K.UNKNOWN, pa.array([{"a": [1]}, None]), ['{"a":[1]}', None]),
    ],
)  # fmt: skip
def test_kinds_without_a_counterpart_become_text(
    kind: Kind, array: pa.Array, expected: list[Any]
) -> None:
    assert stored_values(Column(name="v", kind=kind), array) == expected


@pytest.mark.parametrize(
    ("kind", "array", "expected"),
    [
        (K.FLOAT64, pa.array([0.5, None, 1e300]), ["0.5", None, "1.0e300"]),
        (K.BOOL, pa.array([True, None]), ["true", None]),
    ],
)
def test_an_override_keeps_other_kinds_as_text(
    kind: Kind, array: pa.Array, expected: list[Any]
) -> None:
    assert stored_values(HarperColumn(name="v", kind=kind, form=Form.TEXT), array) == expected


def test_a_form_that_a_kind_cannot_take_is_refused() -> None:
    with pytest.raises(ValueError, match="STRING is stored as text"):
        HarperColumn(name="v", kind=K.STRING, form=Form.NUMBER)


def test_an_empty_batch_is_no_body() -> None:
    assert (
        stored_rows(
            encoded_batch(
                Column(name="v", kind=K.JSON, repeated=True), pa.array([], pa.list_(pa.string()))
            )
        )
        == []
    )

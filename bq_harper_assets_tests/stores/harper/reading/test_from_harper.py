"""What the sync writes is read back as the value that BigQuery had."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.encoding.column_values import stored_values
from bq_harper_assets.stores.harper.encoding.geography import geojson_texts
from bq_harper_assets.stores.harper.encoding.text_forms import Range
from bq_harper_assets.stores.harper.errors import UnreadableValue
from bq_harper_assets.stores.harper.reading.from_harper import from_harper
from bq_harper_assets.stores.harper.types import Form, HarperColumn
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.stores.harper_columns import harper_column
from bq_harper_assets_tests.sync.typed_values import SCALARS

POLICIES = st.sampled_from(
    [{}, {"int64": "string", "numeric": "string"}, {"int64": "string"}, {"numeric": "string"}]
)
DAYS = st.none() | SCALARS["date"][1]
JSONS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=6,
)
POINTS = st.builds(
    lambda x, y: f"POINT({x!r} {y!r})",
    st.integers(-180, 180) | st.floats(-179.5, 179.5).filter(lambda x: not x.is_integer()),
    st.integers(-90, 90),
)
VALUES: dict[Kind, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    Kind.INT64: SCALARS["int64"],
    Kind.FLOAT64: SCALARS["float64"],
    Kind.NUMERIC: SCALARS["numeric"],
    Kind.BIGNUMERIC: SCALARS["bignumeric"],
    Kind.BOOL: SCALARS["bool"],
    Kind.STRING: (pa.string(), st.text(st.characters(codec="utf-8"))),
    Kind.BYTES: SCALARS["binary"],
    Kind.TIMESTAMP: SCALARS["timestamp"],
    Kind.DATETIME: SCALARS["datetime"],
    Kind.DATE: SCALARS["date"],
    Kind.TIME: SCALARS["time"],
    Kind.JSON: (pa.string(), JSONS.filter(lambda value: value is not None).map(json.dumps)),
    Kind.GEOGRAPHY: (pa.string(), POINTS),
    Kind.INTERVAL: SCALARS["interval"],
    Kind.RANGE: (
        pa.struct([("start", pa.date32()), ("end", pa.date32())]),
        st.fixed_dictionaries({"start": DAYS, "end": DAYS}),
    ),
    Kind.UNKNOWN: (pa.string(), st.text(st.characters(codec="utf-8"))),
}


def through_harper(array: pa.Array, column: HarperColumn) -> list[Any]:
    """The values as the encoder writes them and from_harper reads them."""
    stored = stored_values(array, column, geojson_texts)
    if stored.faults:
        assume(False)  # the row would be quarantined
    texts = stored.as_json().to_pylist()
    return [from_harper(json.loads(text), column) for text in texts]


def as_bigquery(value: Any, kind: Kind) -> Any:
    """The value as from_harper promises it."""
    if value is None:
        return None
    if kind is Kind.JSON:
        return json.loads(value)
    return Range(**value) if kind is Kind.RANGE else value


@pytest.mark.promise("B10")
@pytest.mark.parametrize("kind", VALUES)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_value_comes_back_as_it_was(kind: Kind, data: st.DataObject) -> None:
    type_, strategy = VALUES[kind]
    value = data.draw(st.none() | strategy)
    column = harper_column(Column(name="c", kind=kind), contract(values=data.draw(POLICIES)))
    assert through_harper(pa.array([value], type_), column) == [as_bigquery(value, kind)]


@pytest.mark.promise("B6", "B10")
@pytest.mark.parametrize("kind", VALUES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_every_array_and_struct_of_it_comes_back(kind: Kind, data: st.DataObject) -> None:
    type_, strategy = VALUES[kind]
    column = harper_column(
        Column(
            name="c",
            kind=Kind.STRUCT,
            repeated=True,
            fields=(Column(name="f", kind=kind), Column(name="g", kind=kind, repeated=True)),
        ),
        contract(values={"int64": "string", "numeric": "string"}),
    )
    item = st.fixed_dictionaries({"f": st.none() | strategy, "g": st.lists(strategy, max_size=2)})
    values = data.draw(st.lists(item, max_size=2))
    array = pa.array([values], pa.list_(pa.struct([("f", type_), ("g", pa.list_(type_))])))
    expected = [
        {
            "f": as_bigquery(value["f"], kind),
            "g": [as_bigquery(each, kind) for each in value["g"]],
        }
        for value in values
    ]
    assert through_harper(array, column) == [expected]


@pytest.mark.promise("B10")
@pytest.mark.parametrize(
    "kind", [Kind.FLOAT64, Kind.BOOL, Kind.JSON, Kind.GEOGRAPHY, Kind.INT64, Kind.NUMERIC]
)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_column_that_an_override_keeps_as_text_comes_back(
    kind: Kind, data: st.DataObject
) -> None:
    type_, strategy = VALUES[kind]
    value = data.draw(st.none() | strategy)
    column = harper_column(
        Column(name="c", kind=kind), contract(schema_overrides={"c": {"type": "string"}})
    )
    assert column.form is Form.TEXT
    assert through_harper(pa.array([value], type_), column) == [as_bigquery(value, kind)]


@pytest.mark.promise("B5")
def test_a_null_struct_is_not_a_struct_of_nulls() -> None:
    column = harper_column(
        Column(name="c", kind=Kind.STRUCT, fields=(Column(name="f", kind=Kind.DATE),)), contract()
    )
    array = pa.array([None, {"f": None}], pa.struct([("f", pa.date32())]))
    assert through_harper(array, column) == [None, {"f": None}]


def test_what_a_record_lacks_is_null_or_an_empty_array() -> None:
    columns = [
        harper_column(Column(name="a", kind=Kind.INT64), contract()),
        harper_column(Column(name="b", kind=Kind.INT64, repeated=True), contract()),
    ]
    assert [from_harper(None, column) for column in columns] == [None, []]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.INT64, "1"),
        (Kind.INT64, 1.5),
        (Kind.INT64, True),
        (Kind.FLOAT64, "1"),
        (Kind.BOOL, 1),
        (Kind.STRING, 1),
        (Kind.BYTES, "no base64"),
        (Kind.TIMESTAMP, "2026-11-16T07:00:00Z"),
        (Kind.TIMESTAMP, "2026-11-16T07:00:00.000000"),
        (Kind.TIMESTAMP, "2026-11-16T07:00:00.000000+01:00"),
        (Kind.DATETIME, "2026-11-16T07:00:00.000000Z"),
        (Kind.DATE, "20261116"),
        (Kind.TIME, "07:00"),
        (Kind.INTERVAL, "1 day"),
        (Kind.INTERVAL, "-0-0 0 0:0:0"),
        (Kind.INTERVAL, "0-12 0 0:0:0"),
        (Kind.INTERVAL, "0-0 -0 0:0:0"),
        (Kind.INTERVAL, "0-0 0 -0:0:0"),
        (Kind.INTERVAL, "0-0 0 0:60:0"),
        (Kind.INTERVAL, "300000000-0 0 0:0:0"),
        (Kind.INTERVAL, "0-0 3000000000 0:0:0"),
        (Kind.INTERVAL, "0-0 0 99999999999:0:0"),
        (Kind.INTERVAL, "0-0 0 0:0:0.100000"),
        (Kind.RANGE, "[2026-11-16, tomorrow)"),
        (Kind.GEOGRAPHY, {"type": "Circle"}),
        (Kind.GEOGRAPHY, {"type": "Point", "coordinates": [1, "2"]}),
        (Kind.STRUCT, "text"),
    ],
)
def test_a_value_that_the_sync_cannot_have_written_is_told(kind: Kind, value: Any) -> None:
    column = harper_column(Column(name="c", kind=kind), contract())
    with pytest.raises(UnreadableValue, match=r"Harper holds .* in c, where the sync stores"):
        from_harper(value, column)


def test_a_text_is_no_array_of_texts() -> None:
    column = harper_column(Column(name="c", kind=Kind.STRING, repeated=True), contract())
    assert from_harper(["a", "b"], column) == ["a", "b"]
    assert from_harper(None, column) == []
    with pytest.raises(UnreadableValue, match="in c, where the sync stores an array"):
        from_harper("ab", column)


def test_the_place_of_an_unreadable_value_is_named() -> None:
    column = harper_column(
        Column(
            name="a", kind=Kind.STRUCT, repeated=True, fields=(Column(name="b", kind=Kind.BOOL),)
        ),
        contract(),
    )
    with pytest.raises(UnreadableValue, match=r"a\[1\]\.b"):
        from_harper([{"b": True}, {"b": 0}], column)


@pytest.mark.promise("B2")
def test_a_number_of_fifteen_digits_is_the_decimal_that_was_written() -> None:
    column = harper_column(Column(name="c", kind=Kind.NUMERIC), contract())
    assert from_harper(json.loads("0.000123456789012"), column) == Decimal("0.000123456789012")
    assert from_harper(json.loads("1e+22"), column) == Decimal(10**22)

"""A value is converted to another type if that loses nothing."""

import math
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bq_harper_assets.schema.logical import Column, Kind, Spelling
from bq_harper_assets.schema.version import VersionColumn
from bq_harper_assets.stores.harper.reading.conversions import converted
from bq_harper_assets.stores.harper.schema import HarperTypes
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.stores.harper.reading.test_from_harper import VALUES, as_bigquery
from bq_harper_assets_tests.stores.harper.reading.test_rows_as_version_reading import AT, AT_TEXT

pytestmark = pytest.mark.promise("F3")


def _column(kind: Kind, repeated: bool = False) -> VersionColumn:
    column = Column(name="c", kind=kind, repeated=repeated)
    return VersionColumn.of(column, HarperTypes(contract()).spelling)


def _cast(value: Any, have: Kind, want: Kind) -> Any:
    return converted(value, _column(have), _column(want))


@pytest.mark.parametrize(
    ("have", "want", "value", "expected"),
    [
        (Kind.INT64, Kind.STRING, 5, "5"),
        (Kind.STRING, Kind.INT64, "12", 12),
        (Kind.STRING, Kind.INT64, "-012", -12),
        (Kind.STRING, Kind.INT64, "12 knots", None),
        (Kind.STRING, Kind.INT64, "9223372036854775808", None),
        (Kind.STRING, Kind.INT64, "1e999999999", None),
        (Kind.STRING, Kind.INT64, "١٢", None),
        (Kind.STRING, Kind.NUMERIC, "12.50", Decimal("12.5")),
        (Kind.STRING, Kind.NUMERIC, "0.1234567891", None),
        (Kind.STRING, Kind.FLOAT64, "1e3", 1000.0),
        (Kind.STRING, Kind.FLOAT64, "0.1000000000000000000001", None),
        (Kind.STRING, Kind.FLOAT64, "NaN", None),
        (Kind.STRING, Kind.BOOL, "True", True),
        (Kind.STRING, Kind.BOOL, "yes", None),
        (Kind.STRING, Kind.DATE, "2026-11-16", date(2026, 11, 16)),
        (Kind.STRING, Kind.DATE, "20261116", None),
        (Kind.STRING, Kind.DATE, "2026-02-30", None),
        (Kind.STRING, Kind.TIMESTAMP, "2026-11-16 07:00:00 UTC", AT),
        (Kind.STRING, Kind.TIMESTAMP, "2026-11-16T09:00:00+02", AT),
        (Kind.STRING, Kind.TIMESTAMP, "2026-11-16T07:00:00.123456789Z", None),
        (Kind.STRING, Kind.TIMESTAMP, "0001-01-01T00:00:00+02:00", None),
        (Kind.STRING, Kind.TIME, "07:00", time(7)),
        (Kind.STRING, Kind.BYTES, "é", "é".encode()),
        (Kind.STRING, Kind.JSON, '{"a": 1}', {"a": 1}),
        (Kind.STRING, Kind.JSON, "{", None),
        (Kind.STRING, Kind.GEOGRAPHY, "POINT(1 2)", None),
        (Kind.BYTES, Kind.STRING, b"\xff", None),
        (Kind.BOOL, Kind.STRING, True, "true"),
        (Kind.BOOL, Kind.INT64, True, 1),
        (Kind.INT64, Kind.BOOL, 2, None),
        (Kind.INT64, Kind.FLOAT64, 2**53 + 1, None),
        (Kind.INT64, Kind.TIMESTAMP, 0, None),
        (Kind.FLOAT64, Kind.INT64, 5.0, 5),
        (Kind.FLOAT64, Kind.INT64, 5.5, None),
        (Kind.FLOAT64, Kind.NUMERIC, 0.1, Decimal("0.1")),
        (Kind.BIGNUMERIC, Kind.NUMERIC, Decimal("1e-20"), None),
        (Kind.NUMERIC, Kind.BIGNUMERIC, Decimal("1.5"), Decimal("1.5")),
        (Kind.BIGNUMERIC, Kind.NUMERIC, Decimal("9" * 29 + ".9"), Decimal("9" * 29 + ".9")),
        (Kind.BIGNUMERIC, Kind.NUMERIC, Decimal("-" + "9" * 29), Decimal("-" + "9" * 29)),
        (Kind.BIGNUMERIC, Kind.NUMERIC, Decimal("-1e29"), None),
        (Kind.DATE, Kind.TIMESTAMP, date(2026, 11, 16), datetime(2026, 11, 16, tzinfo=UTC)),
        (Kind.TIMESTAMP, Kind.DATE, AT, None),
        (Kind.TIMESTAMP, Kind.DATE, AT.replace(hour=0), date(2026, 11, 16)),
        (Kind.TIMESTAMP, Kind.DATETIME, AT, AT.replace(tzinfo=None)),
        (Kind.TIMESTAMP, Kind.STRING, AT, AT_TEXT),
        (Kind.STRUCT, Kind.STRING, {}, None),
        (Kind.STRING, Kind.BIGNUMERIC, "9" * 38, Decimal("9" * 38)),
        (Kind.STRING, Kind.BIGNUMERIC, "9" * 39, None),
        (Kind.STRING, Kind.BIGNUMERIC, f"0.{'1' * 38}", Decimal(f"0.{'1' * 38}")),
        (Kind.STRING, Kind.BIGNUMERIC, f"0.{'1' * 39}", None),
        (Kind.STRING, Kind.NUMERIC, "1e999999999", None),
        (Kind.FLOAT64, Kind.INT64, float("nan"), None),
        (Kind.FLOAT64, Kind.NUMERIC, float("inf"), None),
        (Kind.STRING, Kind.BOOL, "false", False),
        (Kind.STRING, Kind.INT64, "9223372036854775807", 2**63 - 1),
        (Kind.STRING, Kind.INT64, "-9223372036854775808", -(2**63)),
        (Kind.STRING, Kind.INT64, "-9223372036854775809", None),
        (Kind.BYTES, Kind.STRING, b"\xc3\xa9", "é"),
        (Kind.JSON, Kind.STRING, {"a": ["é", 1]}, '{"a":["é",1]}'),
    ],
)  # fmt: skip
def test_a_value_is_converted_if_that_loses_nothing(
    have: Kind, want: Kind, value: Any, expected: Any
) -> None:
    made = _cast(value, have, want)
    assert (made, type(made)) == (expected, type(expected))


def test_a_column_that_became_repeated_keeps_its_value_and_one_that_ceased_to_be_its_only_one() -> (
    None
):
    one, many = _column(Kind.STRING), _column(Kind.INT64, repeated=True)
    assert [converted(value, one, many) for value in ("5", None)] == [[5], []]
    assert [converted(value, many, one) for value in ([5], [], [5, 6])] == ["5", None, None]
    texts = replace(one, repeated=True)
    assert converted(["5", "x"], texts, many) == [5, None]  # none is left out without a word


def test_a_range_is_kept_only_if_it_is_one_of_the_same_type() -> None:
    days, times = (
        replace(_column(Kind.RANGE), source=Spelling("c", f"RANGE<{of}>"))
        for of in ("DATE", "TIME")
    )
    assert converted("[a, b)", days, days) == "[a, b)"
    assert converted("[a, b)", days, times) is None
    numbers = replace(_column(Kind.INT64), source=Spelling("c", "INTEGER"))
    assert converted(5, numbers, _column(Kind.INT64)) == 5


def test_an_object_is_converted_field_by_field_with_what_it_was_written_without() -> None:
    def column(*fields: Column) -> VersionColumn:
        made = Column(name="c", kind=Kind.STRUCT, fields=fields)
        return VersionColumn.of(made, HarperTypes(contract()).spelling)

    text, tags = Column(name="a", kind=Kind.STRING), Column(name="t", kind=Kind.INT64)
    have = column(text, Column(name="gone", kind=Kind.INT64))
    want = column(replace(text, kind=Kind.INT64), tags, replace(tags, name="m", repeated=True))
    value = {"a": "5", "gone": 1}
    assert converted(value, have, want) == {"a": 5, "t": None, "m": []}
    assert converted(None, have, want) is None
    assert converted(value, have, _column(Kind.JSON)) is None


@settings(deadline=None, max_examples=300)
@given(data=st.data(), want=st.sampled_from(list(VALUES)))
def test_whatever_is_converted_can_be_converted_back(data: st.DataObject, want: Kind) -> None:
    have = data.draw(st.sampled_from([kind for kind in VALUES if kind is not Kind.STRING]))
    value = as_bigquery(data.draw(VALUES[have][1]), have)
    # Harper holds no NaN and no infinity: a row with one is in quarantine.
    assume(not isinstance(value, float) or math.isfinite(value))
    made = _cast(value, have, want)
    is_text_alone = want is Kind.STRING and have in (Kind.GEOGRAPHY, Kind.UNKNOWN)
    if made is not None and not is_text_alone:
        assert _cast(made, want, have) == value

"""Random values of every Arrow type that BigQuery's Storage API yields, nested too."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]


def decimals(digits: int, scale: int) -> Strategy:
    """Of up to so many digits, often of few."""
    unscaled = st.one_of(
        st.integers(-(10**digits) + 1, 10**digits - 1), st.integers(-20, 20), st.just(10**scale)
    )
    return unscaled.map(lambda number: Decimal((number < 0, _digits(number), -scale)))


def _digits(number: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(abs(number)))


TEXTS = st.text(max_size=40) | st.text("ab", min_size=60, max_size=200)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001
SCALARS: dict[str, tuple[pa.DataType, Strategy]] = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float64": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, 5e-324])),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["", "a", "bc"])),
    "binary": (pa.binary(), st.binary(max_size=100)),
    "timestamp": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda at: at.replace(tzinfo=UTC))),
    "datetime": (pa.timestamp("us"), MOMENTS),
    "date": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "time": (pa.time64("us"), st.times(time(0), time(23, 59, 59, 999999))),
    "numeric": (pa.decimal128(38, 9), decimals(38, 9)),
    "bignumeric": (pa.decimal256(76, 38), decimals(76, 38)),
    "interval": (
        pa.month_day_nano_interval(),
        st.builds(
            lambda months, days, nanos: pa.MonthDayNano((months, days, nanos)),
            st.integers(-120000, 120000),
            st.integers(-3660000, 3660000),
            st.integers(-(10**15), 10**15).map(lambda micros: micros * 1000),
        ),
    ),
}


def _nested() -> dict[str, tuple[pa.DataType, Strategy]]:
    nested: dict[str, tuple[pa.DataType, Strategy]] = {}
    for name, (type_, values) in SCALARS.items():
        nested[f"list of {name}"] = (pa.list_(type_), st.lists(st.none() | values, max_size=3))
    fields = [(name, type_) for name, (type_, _) in SCALARS.items()]
    record = st.fixed_dictionaries(
        {name: st.none() | values for name, (_, values) in SCALARS.items()}
    )
    struct = pa.struct(fields)
    nested["struct"] = (struct, record)
    nested["list of struct"] = (pa.list_(struct), st.lists(record, max_size=2))
    deep = pa.struct([("inner", pa.list_(struct)), ("note", pa.string())])
    nested["deep"] = (
        deep,
        st.fixed_dictionaries(
            {"inner": st.lists(record, max_size=1), "note": st.none() | st.text(max_size=3)}
        ),
    )
    day = st.none() | SCALARS["date"][1]
    nested["range"] = (
        pa.struct([("start", pa.date32()), ("end", pa.date32())]),
        st.fixed_dictionaries({"start": day, "end": day}),
    )
    nested["null"] = (pa.null(), st.none())
    return nested


EVERY_TYPE = SCALARS | _nested()


def columns(most_rows: int = 6) -> st.SearchStrategy[tuple[pa.DataType, list[Any]]]:
    """A type and a few values of it, some of them NULL."""

    def of(name: str) -> Strategy:
        type_, values = EVERY_TYPE[name]
        return st.tuples(st.just(type_), st.lists(st.none() | values, max_size=most_rows))

    return st.sampled_from(sorted(EVERY_TYPE)).flatmap(of)

"""Ids: a row has the same one each time, and no two rows share one."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.schema.table_plan import restricted
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.arrays.base32 import ALPHABET
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.identity.faults import reasons_of
from bq_harper_assets.sync.identity.row_id import Identity, hash_text, hashes_of_text, identify
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.harper_columns import native_column
from bq_harper_assets_tests.sync.typed_values import MOMENTS

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def _plan(*columns: Column, key: tuple[str, ...] = (), as_text: tuple[Kind, ...] = ()) -> RowPlan:
    stored = [native_column(column, as_text) for column in columns]
    at = native_column(Column(name="at", kind=Kind.TIMESTAMP))
    return RowPlan(columns=(*stored, at), timestamp="at", key=key, primary_key="_id")


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    rows = len(next(iter(columns.values())))
    return pa.record_batch(columns | {"at": pa.array([NOON] * rows, pa.timestamp("us", "UTC"))})


def _reasons(identity: Identity) -> list[str | None]:
    reasons: list[str | None] = reasons_of(identity.faults, len(identity.ids)).to_pylist()
    return reasons


def decoded(text: str) -> int:
    number = 0
    for character in text:
        number = number * 32 + ALPHABET.index(character)
    return number


@pytest.mark.promise("A9", "A8")
@pytest.mark.parametrize(
    ("kind", "type_", "value", "expected"),
    [
        (Kind.STRING, pa.string(), "vessel 1", "vessel 1"),
        (Kind.INT64, pa.int64(), -(2**53), -(2**53)),
        (Kind.DATE, pa.date32(), date(1, 1, 1), "0001-01-01"),
        (Kind.TIME, pa.time64("us"), time(1), "01:00:00.000000"),
        (Kind.TIMESTAMP, pa.timestamp("us", "UTC"), NOON, "2026-11-16T12:00:00.000000Z"),
        (
            Kind.DATETIME,
            pa.timestamp("us"),
            NOON.replace(tzinfo=None),
            "2026-11-16T12:00:00.000000",
        ),
        (Kind.NUMERIC, pa.decimal128(38, 9), Decimal("-1.50"), "-1.5"),
        (Kind.BIGNUMERIC, pa.decimal256(76, 38), Decimal("1E-38"), f"0.{'0' * 37}1"),
        (Kind.BYTES, pa.binary(), b"\xff\x00", "/wA="),
    ],
)
def test_a_key_of_one_column_is_the_id_as_it_is_stored(
    kind: Kind, type_: pa.DataType, value: Any, expected: Any
) -> None:
    batch = _batch(k=pa.array([value, None], type_))
    identity = identify(batch, _plan(Column(name="k", kind=kind), key=("k",)))
    assert identity.ids.to_pylist() == [expected, None]
    assert _reasons(identity) == [None, "key k: NULL"]
    read_back = pa.array([expected, None])
    assert identity.id_hashes.tolist() == id_hashes(read_back, keyless=False).tolist()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "key k: empty"),
        ("é" * 989, None),
        ("é" * 989 + "x", "key k: longer than 1978 bytes, more than Harper takes"),
    ],
)
def test_a_text_that_harper_takes_for_no_key_has_no_id(value: str, reason: str | None) -> None:
    identity = identify(
        _batch(k=pa.array(["ok", value])), _plan(Column(name="k", kind=Kind.STRING), key=("k",))
    )
    assert _reasons(identity) == [None, reason]
    assert (identity.ids[1].as_py() is None) == (reason is not None)


def test_an_integer_key_beyond_2_to_the_53_has_an_id_only_as_text() -> None:
    batch = _batch(k=pa.array([1, 2**53, 2**53 + 1, -(2**63)]))
    identity = identify(batch, _plan(Column(name="k", kind=Kind.INT64), key=("k",)))
    assert identity.ids.to_pylist() == [1, 2**53, None, None]
    assert [reason is not None for reason in _reasons(identity)] == [False, False, True, True]
    texts = identify(
        batch, _plan(Column(name="k", kind=Kind.INT64), key=("k",), as_text=(Kind.INT64,))
    )
    assert texts.ids.to_pylist() == ["1", str(2**53), str(2**53 + 1), str(-(2**63))]
    assert not texts.faults


@pytest.mark.promise("A9")
def test_a_key_of_several_columns_is_hashed_to_26_characters_of_128_bits() -> None:
    columns = (
        Column(name="a", kind=Kind.STRING),
        Column(name="b", kind=Kind.INT64),
        Column(name="note", kind=Kind.STRING),
    )
    plan = _plan(*columns, key=("a", "b"))
    a, b = pa.array(["x", "x", "y", None]), pa.array([1, 2, 1, 1])
    identity = identify(_batch(a=a, b=b, note=pa.array(["p", "q", "r", "s"])), plan)
    again = identify(_batch(note=pa.array(["changed"] * 4), b=b, a=a), plan)
    ids = identity.ids.to_pylist()
    assert again.ids.to_pylist() == ids
    assert len(set(ids)) == 4
    assert {len(text) for text in ids[:3]} == {26}
    assert _reasons(identity) == [None, None, None, "key a: NULL"]
    assert ids[0] == "1WWY130ZZGH2J1M0NM7W0RKWNF"


@pytest.mark.parametrize(
    ("kind", "values"), [(Kind.FLOAT64, [0.0, -0.0, 1.5]), (Kind.BOOL, [False, False, True])]
)
def test_a_key_that_harper_cannot_take_is_hashed(kind: Kind, values: list[Any]) -> None:
    ids = identify(
        _batch(k=pa.array(values)), _plan(Column(name="k", kind=kind), key=("k",))
    ).ids.to_pylist()
    assert ids[0] == ids[1] != ids[2]
    assert len(ids[0]) == 26


@pytest.mark.promise("J1", "A9")
@settings(deadline=None)
@given(st.lists(MOMENTS, min_size=2, max_size=8))
def test_ids_without_a_key_sort_by_time(moments: list[datetime]) -> None:
    batch = pa.record_batch({"at": pa.array(moments, pa.timestamp("us"))})
    plan = RowPlan(columns=(native_column(Column(name="at", kind=Kind.DATETIME)),), timestamp="at")
    ids = identify(batch, plan).ids.to_pylist()
    assert {len(text) for text in ids} == {23}
    start = datetime(1, 1, 1)  # noqa: DTZ001
    milliseconds = [(moment - start) // timedelta(milliseconds=1) for moment in moments]
    assert [decoded(text[:10]) for text in ids] == milliseconds


@pytest.mark.promise("A9")
def test_equal_rows_are_told_apart_by_their_number_and_share_all_else() -> None:
    batch = _batch(a=pa.array(["x", "x", "x", "y"]))
    plan = _plan(Column(name="a", kind=Kind.STRING))
    plain = identify(batch, plan)
    numbered = identify(batch, plan, pa.array([0, 1, 12, 0]))
    ids = plain.ids.to_pylist()
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert numbered.ids.to_pylist() == [ids[0], f"{ids[0]}-1", f"{ids[0]}-12", ids[3]]
    assert numbered.id_hashes.tolist() == plain.id_hashes.tolist()
    assert ids[0][10:] == hash_text(plain.row_hashes)[0].as_py()


def test_a_row_without_key_and_timestamp_has_no_id() -> None:
    batch = pa.record_batch({"at": pa.array([None, 0], pa.timestamp("us", "UTC"))})
    identity = identify(
        batch,
        RowPlan(columns=(native_column(Column(name="at", kind=Kind.TIMESTAMP)),), timestamp="at"),
    )
    assert _reasons(identity) == ["the timestamp is NULL", None]
    assert identity.ids.is_null().to_pylist() == [True, False]


@pytest.mark.promise("A9", "D1")
def test_ids_without_a_key_are_made_of_what_the_first_sync_had_at_any_depth() -> None:
    zip_, city = Column(name="zip", kind=Kind.STRING), Column(name="city", kind=Kind.STRING)
    address = Column(name="address", kind=Kind.STRUCT, fields=(zip_,))
    stops = Column(name="stops", kind=Kind.STRUCT, repeated=True, fields=(zip_,))
    rows = [
        {"address": {"zip": "1"}, "stops": [{"zip": "2"}, {"zip": "3"}]},
        {"address": None, "stops": []},
    ]
    first = harper_plan(contract(), schema(address, stops))
    before = identify(_read(rows, (zip_,)), RowPlan.of(first))

    wider = [replace(column, fields=(city, zip_)) for column in (address, stops)]
    second = harper_plan(contract(), schema(*wider, city), first.version)
    more = [
        {"address": {"zip": "1", "city": "a"}, "stops": [{"zip": "2", "city": "b"}, {"zip": "3"}]},
        {"address": None, "stops": [], "city": "c"},
    ]
    after = identify(_read(more, (city, zip_), city), RowPlan.of(second))
    assert after.ids.to_pylist() == before.ids.to_pylist()
    assert not {*after.row_hashes.tolist()} & {*before.row_hashes.tolist()}
    common = RowPlan.of(restricted(second, first.version.live_paths))
    again = identify(common.named(_read(more, (city, zip_), city)), common)
    assert again.ids.to_pylist() == before.ids.to_pylist()
    assert again.row_hashes.tolist() == before.row_hashes.tolist()


def _read(
    rows: list[dict[str, Any]], fields: tuple[Column, ...], *others: Column
) -> pa.RecordBatch:
    struct = pa.struct([(field.name, pa.string()) for field in fields])
    types = {"address": struct, "stops": pa.list_(struct)}
    types |= {column.name: pa.string() for column in others}
    arrays = {n: pa.array([row.get(n) for row in rows], type_) for n, type_ in types.items()}
    times = pa.array([NOON] * len(rows), pa.timestamp("us", "UTC"))
    return pa.record_batch(arrays | {"event_time": times})


@pytest.mark.promise("A9")
def test_half_a_million_rows_one_microsecond_apart_have_as_many_ids() -> None:
    micros = pa.array(np.arange(500_000) + 10**15).cast(pa.timestamp("us", "UTC"))
    plan = RowPlan(columns=(native_column(Column(name="at", kind=Kind.TIMESTAMP)),), timestamp="at")
    ids = identify(pa.record_batch({"at": micros}), plan).ids
    assert pc.count_distinct(ids).as_py() == 500_000


PROGRAM = """
import pyarrow as pa
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets_tests.stores.harper_columns import native_column
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
at = pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC"))
columns = {"at": at, "name": pa.array(["Ångström"]), "day": pa.array([19000], pa.date32())}
kinds = {"at": Kind.TIMESTAMP, "name": Kind.STRING, "day": Kind.DATE}
planned = (native_column(Column(name=name, kind=kind)) for name, kind in kinds.items())
plan = RowPlan(columns=tuple(planned), timestamp="at")
print(identify(pa.record_batch(columns), plan).ids[0].as_py())
"""


@pytest.mark.promise("A9")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_another_process_in_another_zone_makes_the_same_id(zone: str) -> None:
    environment = {"TZ": zone, "PYTHONHASHSEED": "7"}
    outcome = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert outcome.stdout.strip() == "1T1VH14G3V7GRT57NWKKS44"


LOST = "64 or more characters with one of U+0000 to U+0004"


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        (["x" * 63 + "\x01"], [True]),
        (["x" * 62 + "\x01"], [False]),
        (["x" * 64], [False]),
        (["\u00e9" * 32 + "\x01"], [False]),  # 65 bytes, and 33 characters
        (["x" * 99, "x" * 63 + "\x04", None, "\x00", "\x00" + "y" * 99], [0, 1, 0, 0, 1]),
    ],
)
def test_a_text_that_harpers_indexes_would_lose_has_no_id(
    values: list[str | None], lost: list[bool]
) -> None:
    identity = identify(
        _batch(k=pa.array(values, pa.string())),
        _plan(Column(name="k", kind=Kind.STRING), key=("k",)),
    )
    reasons = _reasons(identity)
    assert [LOST in (reason or "") for reason in reasons] == [bool(each) for each in lost]
    assert [reason == "key k: NULL" for reason in reasons] == [value is None for value in values]


def test_equal_rows_differ_by_the_hashes_of_their_whole_ids() -> None:
    plan = _plan(Column(name="a", kind=Kind.STRING))
    batch = _batch(a=pa.array(["x", "x", "y"]))
    numbered = identify(batch, plan, pa.array([0, 1, 0]))
    whole = numbered.whole_id_hashes.tolist()
    assert whole == id_hashes(numbered.ids, keyless=False).tolist()
    assert len({*whole}) == 3
    assert len({*numbered.id_hashes.tolist()}) == 2


def test_an_identity_can_be_cut_to_some_of_its_rows() -> None:
    plan = _plan(Column(name="k", kind=Kind.STRING), key=("k",))
    batch = _batch(k=pa.array(["a", None, "c"]))
    rows = np.array([False, True, True])
    some = identify(batch, plan).where(rows)
    again = identify(batch.filter(pa.array(rows)), plan)
    assert some.ids.to_pylist() == again.ids.to_pylist() == [None, "c"]
    assert some.row_hashes.tolist() == again.row_hashes.tolist()
    assert some.id_hashes.tolist() == again.id_hashes.tolist()
    assert _reasons(some) == ["key k: NULL", None]


def test_hashes_are_read_back_as_they_are_written() -> None:
    hashes = np.array([0, 1, 2**64 - 1], np.uint64)
    assert hashes_of_text(hash_text(hashes)).tolist() == hashes.tolist()
    assert hashes_of_text(pa.array(["none", None, ""])).tolist() == [0, 0, 0]

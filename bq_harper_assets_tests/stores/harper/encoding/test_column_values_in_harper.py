"""Encoded rows in a real Harper: what was sent is what is read back."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.key_ids import LONGEST_KEY
from bq_harper_assets.stores.harper.encoding.record import encode_batch
from bq_harper_assets.stores.harper.encoding.request_body import bodies
from bq_harper_assets.stores.harper.encoding.row_plan import RowPlan
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.identity.row_id import identify
from bq_harper_assets_tests.stores.harper_columns import native_column

pytestmark = pytest.mark.harper
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
STRUCT = pa.struct([("n", pa.int64()), ("j", pa.string())])
FIELDS = (Column(name="n", kind=Kind.INT64), Column(name="j", kind=Kind.JSON))
COLUMNS = {
    Column(name="at", kind=Kind.TIMESTAMP): pa.array([NOON, NOON], pa.timestamp("us", "UTC")),
    Column(name="whole", kind=Kind.INT64): pa.array([2**53, -(2**53)]),
    Column(name="part", kind=Kind.FLOAT64): pa.array([5e-324, 1e22]),
    Column(name="price", kind=Kind.NUMERIC): pa.array(
        [Decimal("0.1"), Decimal(10**14 + 1)], pa.decimal128(38, 9)
    ),
    Column(name="name", kind=Kind.STRING): pa.array(['\0🚢"\\', None]),
    Column(name="raw", kind=Kind.BYTES): pa.array([bytes(range(256)), None]),
    Column(name="flag", kind=Kind.BOOL): pa.array([True, None]),
    Column(name="day", kind=Kind.DATE): pa.array([date(1, 1, 1), date(9999, 12, 31)]),
    Column(name="hour", kind=Kind.TIME): pa.array([time(1, 2, 3), None]),
    Column(name="free", kind=Kind.JSON): pa.array(['{"a":[1,{"b":null}]}', "[]"]),
    Column(name="tags", kind=Kind.STRING, repeated=True): pa.array([["b", "a"], []]),
    Column(name="inner", kind=Kind.STRUCT, fields=FIELDS): pa.array(
        [{"n": 1, "j": '{"deep":true}'}, None], STRUCT
    ),
}


@pytest.fixture(scope="module")
def client(harper_connection: HarperConnection) -> Iterator[HarperClient]:
    with HarperClient(harper_connection) as client:
        yield client


def _plan(*columns: Column, key: tuple[str, ...] = ()) -> RowPlan:
    return RowPlan(columns=tuple(map(native_column, columns)), timestamp="at", key=key)


@pytest.mark.promise("B3", "B4", "B5", "B6", "B8", "J2")
def test_every_kind_of_value_is_read_back_as_it_was_sent(client: HarperClient) -> None:
    client.create_table("EncodedKinds", "id", [Attribute(name="id", type="String")])
    batch = pa.record_batch({column.name: array for column, array in COLUMNS.items()})
    plan = _plan(*COLUMNS)
    identity = identify(batch, plan)
    encoded = encode_batch(batch, plan, identity, synced_at=NOON, batch_number=1)
    [body] = bodies(encoded.accepted, most_rows=10, most_bytes=10**6)
    assert client.upsert_body("EncodedKinds", body.content).done == 2
    sent = json.loads(body.content)
    stored = client.search_by_id("EncodedKinds", [row["id"] for row in sent], ["*"])
    assert stored == sent
    assert sent[0]["free"] == {"a": [1, {"b": None}]}
    read_back = id_hashes(pa.array([row["id"] for row in stored]), keyless=True)
    assert read_back.tolist() == identity.id_hashes.tolist()


NAMES = ("then", "toJSON", "constructor", "toString", "__op__", "0", "")
THENABLE = ['{"then":"s"}', '{"a":1,"then":{}}']
READABLE = [
    '{"then":null}',
    *(f'{{"o":{{"{name}":7,"q":[{{"{name}":7}}]}}}}' for name in NAMES),
    *(f'{{"{name}":7}}' for name in NAMES[1:]),
]


@pytest.mark.promise("B3", "B8")
def test_only_json_that_harper_cannot_read_is_refused_for_the_names_in_it(
    client: HarperClient,
) -> None:
    client.create_table(
        "EncodedNames", "id", [Attribute(name="id", type="String"), Attribute(name="free")]
    )
    texts = [*THENABLE, *READABLE]
    batch = pa.record_batch(
        {
            "k": pa.array([f"{at:02}" for at in range(len(texts))]),
            "at": pa.array([NOON] * len(texts), pa.timestamp("us", "UTC")),
            "free": pa.array(texts),
        }
    )
    columns = (
        Column(name="k", kind=Kind.STRING),
        Column(name="at", kind=Kind.TIMESTAMP),
        Column(name="free", kind=Kind.JSON),
    )
    plan = _plan(*columns, key=("k",))
    encoded = encode_batch(batch, plan, identify(batch, plan), synced_at=NOON, batch_number=1)
    reasons = encoded.reasons.to_pylist()
    assert reasons[len(THENABLE) :] == [None] * len(READABLE)
    assert all("free: Harper cannot read" in reason for reason in reasons[: len(THENABLE)])

    [body] = bodies(encoded.rows, most_rows=100, most_bytes=10**6)
    assert client.upsert_body("EncodedNames", body.content).done == len(texts)
    sent = {row["id"]: row["free"] for row in json.loads(body.content)}
    ids = sorted(sent)
    stored = client.search_by_id("EncodedNames", ids[len(THENABLE) :], ["id", "free"])
    assert {row["id"]: row["free"] for row in stored} == {
        name: sent[name] for name in ids[len(THENABLE) :]
    }
    # What we refuse: it was stored, and cannot be read by name.
    for unreadable in ids[: len(THENABLE)]:
        [row] = client.search_by_id("EncodedNames", [unreadable], ["id", "free"])
        assert "free" not in row


@pytest.mark.promise("A9")
def test_the_longest_key_that_has_an_id_is_one_that_harper_takes(client: HarperClient) -> None:
    client.create_table("EncodedKeys", "id", [Attribute(name="id", type="String")])
    keys = ["x" * LONGEST_KEY, "é" * (LONGEST_KEY // 2), "\0" * 63]
    batch = pa.record_batch(
        {"k": pa.array(keys), "at": pa.array([NOON] * len(keys), pa.timestamp("us", "UTC"))}
    )
    plan = _plan(
        Column(name="k", kind=Kind.STRING), Column(name="at", kind=Kind.TIMESTAMP), key=("k",)
    )
    encoded = encode_batch(batch, plan, identify(batch, plan), synced_at=NOON, batch_number=1)
    for body in bodies(encoded.accepted, most_rows=1, most_bytes=10**6):
        assert client.upsert_body("EncodedKeys", body.content).done == 1

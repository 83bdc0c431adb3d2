"""Streams that break at a chosen message give each row once; what cannot be read on is told."""

from collections.abc import Sequence

import grpc
import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.retries.retry import Retry
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryForbidden,
    BigQueryUnavailable,
    ReadSessionLost,
)
from bq_harper_assets.stores.bigquery.read_session import open_session, read_stream
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.stores.bigquery.storage_by_hand import StorageByHand
from bq_harper_assets_tests.stores.small_tables import utc

SCHEMA = pa.schema([("k", pa.int64())])
BATCHES = [pa.record_batch({"k": each}, schema=SCHEMA) for each in ([0, 1, 2], [3, 4], [5])]
TABLE = TableRef("p", "d", "t")
Code = grpc.StatusCode


def connection(storage: StorageByHand, retries: int = 2) -> BigQueryConnection:
    return BigQueryConnection(
        project="p",
        endpoint="http://127.0.0.1:9",  # the discard port
        storage_endpoint=storage.address,
        max_retries=retries,
        initial_retry_delay_ms=1,
    )


def storage_of(*faults: tuple[int, grpc.StatusCode | None]) -> StorageByHand:
    return StorageByHand(SCHEMA, {"s": BATCHES}, faults=list(faults))


def read(
    storage: StorageByHand, retries: int = 2, silence_s: float = 5.0
) -> tuple[list[int], Sequence[Retry]]:
    told: list[Retry] = []
    known = connection(storage, retries)
    calls = BigQueryCalls(known, on_retry=told.append, sleep=lambda _: None)
    schema = SCHEMA.serialize().to_pybytes()
    batches = read_stream(known, "s", schema, calls=calls, silence_s=silence_s)
    return [k for batch in batches for k in batch.column("k").to_pylist()], told


def test_every_message_is_read_and_one_without_rows_is_not_the_end() -> None:
    with storage_of() as storage:
        assert read(storage) == ([0, 1, 2, 3, 4, 5], [])
    [asked] = storage.reads
    assert (asked.read_stream, asked.offset) == ("s", 0)


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.CANCELLED, Code.INTERNAL])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_stream_that_breaks_is_read_on_behind_its_last_row(
    code: grpc.StatusCode, after: int
) -> None:
    with storage_of((after, code)) as storage:
        rows, [told] = read(storage)
    behind = [0, 3, 5][after]
    assert rows == [0, 1, 2, 3, 4, 5]
    assert [asked.offset for asked in storage.reads] == [0, behind]
    assert f"reading rows from {behind} on" in str(told.call)


def test_the_time_of_a_stream_that_gave_rows_is_no_fault_and_of_one_that_gave_none_is() -> None:
    with storage_of((1, Code.DEADLINE_EXCEEDED)) as storage:
        assert read(storage, retries=0) == ([0, 1, 2, 3, 4, 5], [])
    assert [asked.offset for asked in storage.reads] == [0, 3]
    with (
        storage_of((1, Code.DEADLINE_EXCEEDED), (0, Code.DEADLINE_EXCEEDED)) as storage,
        pytest.raises(BigQueryUnavailable),
    ):
        read(storage, retries=0)


@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.FAILED_PRECONDITION])
def test_a_session_that_is_lost_is_told_at_once(code: grpc.StatusCode) -> None:
    with (
        storage_of((1, code)) as storage,
        pytest.raises(
            ReadSessionLost, match=r"lost a read session: told by hand\. What was stored"
        ),
    ):
        read(storage)
    assert len(storage.reads) == 1


def test_a_stream_that_falls_silent_is_given_up_and_read_on_behind_its_last_row() -> None:
    with storage_of((2, None)) as storage:
        rows, [told] = read(storage, silence_s=0.05)
    assert rows == [0, 1, 2, 3, 4, 5]
    assert "sent nothing for 0.05 s" in told.reason
    assert [asked.offset for asked in storage.reads] == [0, 5]
    assert storage.given_up == [True]


def test_what_may_not_be_read_is_asked_once() -> None:
    with storage_of((0, Code.PERMISSION_DENIED)) as storage, pytest.raises(BigQueryForbidden):
        read(storage)
    assert len(storage.reads) == 1


def test_a_stream_that_is_left_early_is_closed() -> None:
    with storage_of() as storage:
        known = connection(storage)
        batches = read_stream(known, "s", SCHEMA.serialize().to_pybytes())
        assert next(batches).column("k").to_pylist() == [0, 1, 2]
        batches.close()  # type: ignore[attr-defined]
        assert list(batches) == []


def test_a_session_asks_for_columns_rows_and_streams_as_they_were() -> None:
    streams = {"a": BATCHES, "b": BATCHES[:1]}
    with StorageByHand(SCHEMA, streams, estimated_bytes=77) as storage:
        calls = BigQueryCalls(connection(storage))
        with connect_storage(calls.connection) as client:
            plan = open_session(client, calls, TABLE, ["k", "v"], "k > 1", utc(2026, 1, 5), 7)
            open_session(client, calls, TABLE, ["k"], "", None, 1)
    assert (plan.table, plan.streams, plan.estimated_bytes) == (TABLE, ("a", "b"), 77)
    assert pa.ipc.read_schema(pa.py_buffer(plan.schema)) == SCHEMA
    then, now = storage.sessions
    assert (then.parent, then.max_stream_count) == ("projects/p", 7)
    assert then.read_session.table == "projects/p/datasets/d/tables/t"
    assert then.read_session.table_modifiers.snapshot_time == utc(2026, 1, 5)
    assert list(then.read_session.read_options.selected_fields) == ["k", "v"]
    assert then.read_session.read_options.row_restriction == "k > 1"
    assert then.read_session.data_format.name == "ARROW"
    assert not now.read_session.table_modifiers.snapshot_time
    assert now.max_stream_count == 1

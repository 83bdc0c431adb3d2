"""The Storage API on the real emulator: pinned, projected, restricted, and exact after a fault."""

import pickle
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.retries.retry import Retry, RetryPolicy
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryMissing,
    BigQueryUnavailable,
    ReadSessionLost,
)
from bq_harper_assets.stores.bigquery.read_session import (
    ReadPlan,
    decode,
    open_session,
    read_stream,
)
from bq_harper_assets.stores.bigquery.restriction import between, literal
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.stores.cutting_proxy import CuttingProxy, cutting_proxy
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.stores.storage_proxy import StorageProxy, storage_proxy

START, END = utc(2026, 3, 1), utc(2026, 3, 2)
TS = Column(name="ts", kind=Kind.TIMESTAMP)
WIDE_ROWS = 60_000


@pytest.fixture(scope="module")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    return SmallTables.at(bigquery_connection)


@pytest.fixture(scope="module")
def wide(tables: SmallTables) -> TableRef:
    """Several messages of rows, one row per second, most of it in one column."""
    return tables.make_from(
        "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-03-01 00:00:00+00', INTERVAL k SECOND) AS ts,"
        f" k, REPEAT('x', 200) AS filler FROM UNNEST(GENERATE_ARRAY(0, {WIDE_ROWS - 1})) AS k"
    )


@pytest.fixture
def proxy(bigquery_connection: BigQueryConnection) -> Iterator[CuttingProxy]:
    with cutting_proxy(str(bigquery_connection.storage_endpoint)) as proxy:
        yield proxy


def plan_of(
    connection: BigQueryConnection,
    table: TableRef,
    columns: tuple[str, ...] = ("k",),
    restriction: str = "",
    at: datetime | None = None,
    streams: int = 1,
) -> ReadPlan:
    with connect_storage(connection) as client:
        return open_session(
            client, BigQueryCalls(connection), table, columns, restriction, at, streams
        )


def read(
    connection: BigQueryConnection, plan: ReadPlan, calls: BigQueryCalls | None = None
) -> list[int]:
    return [
        k
        for stream in plan.streams
        for batch in read_stream(connection, stream, plan.schema, calls=calls)
        for k in batch.column("k").to_pylist()
    ]


def through(connection: BigQueryConnection, proxy: CuttingProxy) -> BigQueryConnection:
    return connection.model_copy(
        update={
            "storage_endpoint": proxy.address,
            "max_retries": 3,
            "initial_retry_delay_ms": 10,
        }
    )


@pytest.mark.bigquery
def test_a_pinned_read_sees_the_past_after_updates_and_deletes(
    tables: SmallTables, bigquery_connection: BigQueryConnection
) -> None:
    table = tables.make("ts TIMESTAMP, k INT64")
    tables.run(f"INSERT INTO {table.sql} VALUES ({literal(TS.kind, START)}, 1)")
    first = server_time(tables.queries)
    tables.run(f"INSERT INTO {table.sql} VALUES ({literal(TS.kind, START)}, 2)")
    second = server_time(tables.queries)
    tables.run(f"UPDATE {table.sql} SET k = 3 WHERE k = 1")
    third = server_time(tables.queries)
    tables.run(f"DELETE FROM {table.sql} WHERE k = 2")

    seen = [
        sorted(read(bigquery_connection, plan_of(bigquery_connection, table, at=at)))
        for at in (first, second, third, None)
    ]

    assert seen == [[1], [1, 2], [2, 3], [3]]


@pytest.mark.bigquery
def test_a_pinned_time_sees_every_acknowledged_write_and_stays_the_same_beside_a_writer(
    tables: SmallTables, bigquery_connection: BigQueryConnection
) -> None:
    table = tables.make("ts TIMESTAMP, k INT64")
    acknowledged: list[int] = []

    def write() -> None:
        for k in range(12):
            tables.run(f"INSERT INTO {table.sql} VALUES ({literal(TS.kind, START)}, {k})")
            acknowledged.append(k)

    writer = threading.Thread(target=write)
    writer.start()
    pinned: list[tuple[datetime, list[int]]] = []
    while writer.is_alive():
        before = len(acknowledged)
        at = server_time(tables.queries)
        rows = sorted(read(bigquery_connection, plan_of(bigquery_connection, table, at=at)))
        assert rows[:before] == list(range(before))
        pinned.append((at, rows))
    writer.join()

    assert len(acknowledged) == 12
    for at, rows in pinned:
        again = sorted(read(bigquery_connection, plan_of(bigquery_connection, table, at=at)))
        assert again == rows


@pytest.mark.bigquery
@pytest.mark.promise("E4")
def test_a_stream_that_breaks_twice_gives_every_row_once_and_in_order(
    bigquery_connection: BigQueryConnection, wide: TableRef
) -> None:
    columns = ("k", "filler")
    plan = plan_of(bigquery_connection, wide, columns)
    retries: list[str] = []
    with cutting_proxy(str(bigquery_connection.storage_endpoint), 3_000_000, 5_000_000) as proxy:
        connection = through(bigquery_connection, proxy)
        calls = BigQueryCalls(connection, on_retry=lambda retry: retries.append(str(retry.call)))

        rows = read(connection, plan, calls)

    assert rows == list(range(WIDE_ROWS))
    assert proxy.connections == 3
    assert len(retries) == 2
    assert all("reading rows from" in retry for retry in retries)
    assert "from 0 on" not in retries[0]


@pytest.mark.bigquery
def test_a_slow_reader_outlives_the_time_limit_of_a_stream(
    bigquery_connection: BigQueryConnection, wide: TableRef
) -> None:
    plan = plan_of(bigquery_connection, wide, ("k", "filler"))
    retries: list[Retry] = []
    calls = BigQueryCalls(bigquery_connection, on_retry=retries.append)
    rows: list[int] = []

    for batch in read_stream(
        bigquery_connection, plan.streams[0], plan.schema, calls=calls, timeout_s=1.0
    ):
        if not rows:
            time.sleep(1.2)
        rows += batch.column("k").to_pylist()

    assert rows == list(range(WIDE_ROWS))
    assert retries == []


@pytest.mark.bigquery
@pytest.mark.promise("G9")
def test_a_server_that_stays_away_is_tried_as_often_as_the_connection_says(
    bigquery_connection: BigQueryConnection, wide: TableRef
) -> None:
    plan = plan_of(bigquery_connection, wide)
    waits: list[float] = []
    with cutting_proxy(str(bigquery_connection.storage_endpoint), *[0] * 50) as proxy:
        connection = through(bigquery_connection, proxy)
        policy = RetryPolicy(max_retries=2, initial_delay_s=0.01, sleep=waits.append)

        with pytest.raises(BigQueryUnavailable):
            read(connection, plan, BigQueryCalls(connection, retry=policy))

    assert len(waits) == 2
    assert 0.01 <= waits[0] <= 0.02 <= waits[1] <= 0.04


@pytest.mark.bigquery
@pytest.mark.promise("G5")
def test_columns_that_are_not_asked_for_do_not_travel(
    bigquery_connection: BigQueryConnection, wide: TableRef, proxy: CuttingProxy
) -> None:
    connection = through(bigquery_connection, proxy)

    narrow_plan = plan_of(connection, wide, ("k",))
    assert read(connection, narrow_plan) == list(range(WIDE_ROWS))
    narrow = proxy.received
    wide_plan = plan_of(connection, wide, ("k", "filler"))
    read(connection, wide_plan)

    assert pa.ipc.read_schema(pa.py_buffer(narrow_plan.schema)).names == ["k"]
    assert narrow * 10 < proxy.received - narrow
    assert narrow_plan.estimated_bytes < wide_plan.estimated_bytes


@pytest.mark.bigquery
def test_rows_outside_the_restriction_do_not_travel(
    bigquery_connection: BigQueryConnection, wide: TableRef, proxy: CuttingProxy
) -> None:
    connection = through(bigquery_connection, proxy)
    minute = between(TS, START + timedelta(minutes=1), START + timedelta(minutes=2))

    plan = plan_of(connection, wide, ("k", "filler"), minute)

    assert read(connection, plan) == list(range(60, 120))
    assert proxy.received < 100_000


@pytest.mark.bigquery
@pytest.mark.parametrize("kind", [Kind.TIMESTAMP, Kind.DATETIME, Kind.DATE])
def test_a_range_of_time_is_half_open_for_every_type_of_time(
    tables: SmallTables, bigquery_connection: BigQueryConnection, kind: Kind
) -> None:
    table = tables.make(f"`order by` {kind}, k INT64")
    column = Column(name="order by", kind=kind)
    step = timedelta(days=1) if kind is Kind.DATE else timedelta(microseconds=1)
    times = [START - step, START, END - step, END]
    values = ", ".join(f"({literal(kind, time)}, {k})" for k, time in enumerate(times))
    tables.run(f"INSERT INTO {table.sql} VALUES {values}, (NULL, 4)")

    inside = plan_of(bigquery_connection, table, restriction=between(column, START, END))
    filtered = between(column, START, END, row_filter="k = 1 OR k = 0")
    some = plan_of(bigquery_connection, table, restriction=filtered)

    # A filter's OR does not let in what lies outside the range.
    assert sorted(set(read(bigquery_connection, inside))) == [1, 2]
    assert read(bigquery_connection, some) == [1]


@pytest.mark.bigquery
def test_a_plan_is_small_travels_by_pickle_and_its_streams_share_the_rows(
    bigquery_connection: BigQueryConnection, wide: TableRef
) -> None:
    plan = plan_of(bigquery_connection, wide, ("k", "filler"), streams=4)

    travelled = pickle.dumps(plan)

    assert len(travelled) < 8_000
    assert len(plan.streams) == 4
    assert sorted(read(bigquery_connection, pickle.loads(travelled))) == list(range(WIDE_ROWS))


@pytest.mark.bigquery
def test_a_restriction_that_no_row_fits_gives_no_rows(
    bigquery_connection: BigQueryConnection, wide: TableRef
) -> None:
    plan = plan_of(bigquery_connection, wide, restriction=between(TS, END, END))

    assert read(bigquery_connection, plan) == []


@pytest.mark.bigquery
def test_a_table_that_is_not_there_is_named(
    bigquery_connection: BigQueryConnection, tables: SmallTables
) -> None:
    missing = tables.new_name()

    with pytest.raises(BigQueryMissing, match=missing.table):
        plan_of(bigquery_connection, missing)


@pytest.mark.parametrize("codec", ["lz4", "zstd", None])
def test_a_compressed_message_is_read_like_a_plain_one(codec: str | None) -> None:
    batch = pa.record_batch({"s": ["a" * 1000] * 100})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(sink.getvalue()))
    reader.read_next_message()  # the schema
    message = reader.read_next_message().serialize().to_pybytes()

    assert (len(message) < 10_000) == (codec is not None)
    assert decode(message, batch.schema) == batch


@pytest.fixture
def storage(bigquery_connection: BigQueryConnection) -> Iterator[StorageProxy]:
    with storage_proxy(str(bigquery_connection.storage_endpoint)) as proxy:
        yield proxy


def beside(connection: BigQueryConnection, storage: StorageProxy) -> BigQueryConnection:
    fields = {"storage_endpoint": storage.address, "max_retries": 2, "initial_retry_delay_ms": 10}
    return connection.model_copy(update=fields)


@pytest.mark.bigquery
def test_a_stream_that_falls_silent_after_rows_is_an_error_that_is_retried_where_it_was(
    bigquery_connection: BigQueryConnection, wide: TableRef, storage: StorageProxy
) -> None:
    """A half-open connection: nothing comes, and nothing says that nothing will."""
    connection = beside(bigquery_connection, storage)
    plan = plan_of(connection, wide, ("k", "filler"))
    storage.silent_after = 1
    retries: list[Retry] = []
    calls = BigQueryCalls(connection, on_retry=retries.append)
    rows: list[int] = []

    def read_on() -> None:
        for batch in read_stream(
            connection, plan.streams[0], plan.schema, calls=calls, silence_s=0.5
        ):
            rows.extend(batch.column("k").to_pylist())
            if len(storage.offsets) == 2:
                storage.silent_after = 0  # now it gives no rows at all

    with pytest.raises(BigQueryUnavailable, match=r"sent nothing for 0\.5 s"):
        read_on()

    assert rows == list(range(len(rows)))
    assert len(set(storage.offsets)) == 3  # two that gave rows, and one that gave none
    # Its first try was the end of the second opening; then it was opened again for each retry.
    assert storage.offsets[2:] == [len(rows)] * 2
    assert {retry.reason.count("sent nothing") for retry in retries} == {1}

    storage.silent_after = None
    whole = read_stream(connection, plan.streams[0], plan.schema, calls=calls)
    assert sum(batch.num_rows for batch in whole) == WIDE_ROWS


@pytest.mark.bigquery
def test_a_stream_that_bigquery_itself_cancels_is_told_with_its_reason_and_read_on(
    bigquery_connection: BigQueryConnection, wide: TableRef, storage: StorageProxy
) -> None:
    connection = beside(bigquery_connection, storage)
    plan = plan_of(connection, wide, ("k", "filler"))
    storage.cancelled = {0}
    retries: list[Retry] = []
    calls = BigQueryCalls(connection, on_retry=retries.append)
    batches = list(read_stream(connection, plan.streams[0], plan.schema, calls=calls))
    assert sum(batch.num_rows for batch in batches) == WIDE_ROWS
    [retry] = retries
    assert "The server is going away" in retry.reason
    assert "sent nothing" not in retry.reason


@pytest.mark.bigquery
def test_a_silent_stream_says_when_it_is_given_up(
    bigquery_connection: BigQueryConnection, wide: TableRef, storage: StorageProxy
) -> None:
    connection = beside(bigquery_connection, storage)
    plan = plan_of(connection, wide, ("k", "filler"))
    storage.silent_after = 0
    said: list[str] = []
    began = datetime.now(UTC)
    with WAITS.listen(said.append), pytest.raises(BigQueryUnavailable):
        list(
            read_stream(
                connection,
                plan.streams[0],
                plan.schema,
                calls=BigQueryCalls(connection, retry=RetryPolicy(max_retries=0)),
                silence_s=7.0,
            )
        )
    ends = began + timedelta(seconds=7)
    close = {f"{ends + timedelta(seconds=late):%H:%M:%S}" for late in range(3)}
    [line] = said
    assert line.startswith("waits for BigQuery at ")
    found = re.search(r"; gives this try up at ([\d:]{8}) UTC at the latest$", line)
    assert found is not None
    assert found[1] in close


@pytest.mark.bigquery
def test_a_stream_whose_time_is_over_is_opened_again_once_and_then_it_is_an_error(
    bigquery_connection: BigQueryConnection, wide: TableRef, storage: StorageProxy
) -> None:
    connection = beside(bigquery_connection, storage).model_copy(update={"max_retries": 0})
    plan = plan_of(connection, wide, ("k", "filler"))
    storage.silent_after = 1
    batches = read_stream(connection, plan.streams[0], plan.schema, timeout_s=0.5, silence_s=60.0)
    first = next(batches).num_rows
    storage.silent_after = 0

    with pytest.raises(BigQueryUnavailable):
        next(batches)

    assert storage.offsets == [0, first]


@pytest.mark.bigquery
def test_a_session_that_bigquery_has_lost_is_told_as_such_and_not_asked_for_again(
    bigquery_connection: BigQueryConnection, wide: TableRef, storage: StorageProxy
) -> None:
    connection = beside(bigquery_connection, storage)
    plan = plan_of(connection, wide)
    storage.lost = range(9)

    with pytest.raises(ReadSessionLost, match="opened again"):
        read(connection, plan)

    assert len(storage.offsets) == 1

"""Every key of the contract does something: each is changed, and what is sent changes with it."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.stores.bigquery.errors import BigQueryUnavailable
from bq_harper_assets.sync.errors import TurnFailed, WindowStillOpen
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.fault_proxy import Answer, Delay, FaultProxy, Seen
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 1)
ROWS = 120
BEYOND = 2**53 + 1  # a number of Harper's cannot hold it
SELECT = (
    "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n * 30 SECOND) AS ts, n AS number,"
    f" IF(n = 5, {BEYOND}, n) AS big, CAST(n AS NUMERIC) / 8 AS price,"
    " CONCAT('ship ', CAST(n AS STRING)) AS name, REPEAT('x', 1000) AS text"
    f" FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
)


@dataclass(frozen=True)
class Watched:
    """Runs whose requests are seen on their way to Harper."""

    sync: Sync
    proxy: FaultProxy
    tables: SmallTables

    def contract(self, **declared: Any) -> TableContract:
        """Of a new source with the rows above; by default nothing is cut by bytes."""
        known: dict[str, Any] = {"slices": 1, "max_request_bytes": 8 * 1024 * 1024}
        return self.sync.contract(self.tables.make_from(SELECT), **(known | declared))

    def run(self, contract: TableContract) -> TurnReport:
        """The hour of the rows."""
        return self.sync.run(contract, self.sync.cells(contract, START, END))

    def upserts(self, contract: TableContract) -> list[Seen]:
        """The requests with rows."""
        return self.proxy.seen(operation="upsert", table=contract.target.table)

    def sent(self, contract: TableContract) -> list[dict[str, Any]]:
        """The rows of those requests."""
        return [row for seen in self.upserts(contract) for row in json.loads(seen.body)["records"]]

    def synced(self, **declared: Any) -> list[dict[str, Any]]:
        """The rows that a contract with these keys sends."""
        contract = self.contract(**declared)
        self.run(contract)
        return self.sent(contract)


@pytest.fixture
def watched(
    sync: Sync, tables: SmallTables, harper_connection: HarperConnection
) -> Iterator[Watched]:
    with FaultProxy(harper_connection.url) as proxy:
        yield Watched(through(sync, proxy, requests_in_flight=1), proxy, tables)


def through(sync: Sync, proxy: FaultProxy, **harper: Any) -> Sync:
    known = sync.stores.harper.model_copy(update={"url": proxy.url, **harper})
    return replace(sync, stores=replace(sync.stores, harper=known))


@pytest.mark.promise("G7")
def test_the_batch_size_of_the_phase_is_the_rows_of_a_request(watched: Watched) -> None:
    half_an_hour_ago = datetime.now(UTC) - timedelta(minutes=30)
    start = half_an_hour_ago.replace(minute=half_an_hour_ago.minute // 5 * 5, second=0)
    start = start.replace(microsecond=0)
    source = watched.tables.make_from(
        f"SELECT TIMESTAMP '{start:%F %T}+00' AS ts, n FROM UNNEST(GENERATE_ARRAY(0, 99)) AS n"
    )
    sizes = {"initialBatchSize": 40, "catchupBatchSize": 30, "steadyBatchSize": 20}
    # The lag is always about half an hour: the thresholds say what that is called.
    for thresholds, phase, expected in (
        ({"catchupThreshold": 900}, "initial", [40, 40, 20]),
        ({"catchupThreshold": 7200}, "catchup", [30, 30, 30, 10]),
        ({"catchupThreshold": 7200, "steadyThreshold": 3600}, "steady", [20] * 5),
    ):
        contract = watched.sync.contract(
            source, window="5m", slices=1, sync={**sizes, **thresholds}
        )
        report = watched.sync.run(
            contract, watched.sync.cells(contract, start, start + contract.window)
        )
        assert report.phase.value == phase
        assert [seen.records for seen in watched.upserts(contract)] == expected


@pytest.mark.promise("G7")
def test_no_request_is_larger_than_max_request_bytes(watched: Watched) -> None:
    contract = watched.contract()
    watched.run(contract)
    [whole] = [seen.size for seen in watched.upserts(contract)]
    for limit, requests in ((whole - 1, 2), (16 * 1024, 10)):
        contract = watched.contract(max_request_bytes=limit)
        watched.run(contract)
        sizes = [seen.size for seen in watched.upserts(contract)]
        assert max(sizes) <= limit
        assert len(sizes) == requests
        assert len(watched.sent(contract)) == ROWS - 1


@pytest.mark.promise("G5")
def test_columns_are_what_is_read_and_sent(
    watched: Watched, bigquery_connection: BigQueryConnection
) -> None:
    assert bigquery_connection.endpoint is not None
    with FaultProxy(bigquery_connection.endpoint) as bigquery:
        known = bigquery_connection.model_copy(update={"endpoint": bigquery.url})
        stores = replace(watched.sync.stores, bigquery=known)
        watched = replace(watched, sync=replace(watched.sync, stores=stores))
        contract = watched.contract(columns=["ts", "name"])
        report = watched.run(contract)
        asked = b"".join(seen.body for seen in bigquery.seen())
    rows = watched.sent(contract)
    assert len(rows) == ROWS
    assert {frozenset(row) for row in rows} == {
        frozenset({"id", "ts", "name", "_hash", "_batch", "_syncedAt"})
    }
    assert report.cells[0].result.bytes < ROWS * 250  # the text alone has 1000 in each row
    assert b"name" in asked
    assert b"price" not in asked


def test_slices_and_window_cut_the_same_rows_into_other_cells(watched: Watched) -> None:
    whole = watched.synced()
    parts = watched.synced(window="15m", slices=3)
    assert len({row["_batch"] for row in whole}) == 1
    assert len({row["_batch"] for row in parts}) == 4 * 3
    quarters = {row["_batch"]: row["number"] // 30 for row in parts}
    assert all(quarters[row["_batch"]] == row["number"] // 30 for row in parts)
    assert {row["id"] for row in parts} == {row["id"] for row in whole}


def test_a_key_is_the_id_and_without_one_the_row_is(watched: Watched) -> None:
    keyed = watched.synced(key="name")
    assert [row["id"] for row in keyed] == [row["name"] for row in keyed]
    hashed = watched.synced(key=["name", "number"])
    keyless = watched.synced()
    ids = [{row["id"] for row in rows} for rows in (keyed, hashed, keyless)]
    assert [len(each) for each in ids] == [ROWS - 1] * 3
    assert not ids[0] & ids[1]
    assert not ids[1] & ids[2]


def test_value_policies_overrides_and_the_filter_change_what_is_sent(watched: Watched) -> None:
    contract = watched.contract()
    report = watched.run(contract)
    plain = {row["number"]: row for row in watched.sent(contract)}
    assert sorted(plain) == [n for n in range(ROWS) if n != 5]
    assert report.cells[0].result.quarantined == 1
    assert (plain[7]["big"], plain[7]["price"], plain[7]["number"]) == (7, 0.875, 7)
    assert indexed(watched, contract) == {"ts"}

    contract = watched.contract(
        values={"int64": "string", "numeric": "string"},
        row_filter="number < 10",
        schema_overrides={"name": {"indexed": True}},
    )
    watched.run(contract)
    other = {row["number"]: row for row in watched.sent(contract)}
    assert sorted(other, key=int) == [str(n) for n in range(10)]
    assert other["5"]["big"] == str(BEYOND)
    assert other["7"]["price"] == "0.875"
    assert indexed(watched, contract) == {"ts", "name"}

    as_text = watched.synced(schema_overrides={"number": {"type": "string"}})
    assert {type(row["number"]) for row in as_text} == {str}
    assert {type(row["big"]) for row in as_text} == {int}


def indexed(watched: Watched, contract: TableContract) -> set[str]:
    """As it was asked for when the table was made."""
    [made] = watched.proxy.seen(operation="create_table", table=contract.target.table)
    attributes = json.loads(made.body)["attributes"]
    return {each["name"] for each in attributes if each.get("indexed")}


@pytest.mark.parametrize("tasks", [1, 2])
def test_requests_in_flight_is_how_many_tasks_write(watched: Watched, tasks: int) -> None:
    # BigQuery gives one stream only to tables of less than a megabyte.
    large = watched.tables.make_from(
        "SELECT TIMESTAMP '2026-01-05' AS ts, n, REPEAT('x', 1200) AS filler"
        " FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS n"
    )
    contract = watched.sync.contract(large, slices=1)
    go_on = threading.Event()
    watched.proxy.on(Delay(go_on), operation="upsert", table=contract.target.table, times=tasks)
    some = replace(watched, sync=through(watched.sync, watched.proxy, requests_in_flight=tasks))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(some.run, contract)
        limit = time.monotonic() + 30
        while len(watched.upserts(contract)) < tasks and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(0.3)
        unanswered = len(watched.upserts(contract))
        go_on.set()
        running.result()
    assert unanswered == tasks
    assert len(watched.upserts(contract)) > 4
    assert len(watched.sent(contract)) == 1000


def test_the_safety_lag_keeps_a_window_open(watched: Watched) -> None:
    now = datetime.now(UTC)
    hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    cells = watched.sync.cells(watched.contract(), hour, hour + timedelta(hours=1))
    contract = watched.contract(safety_lag="3h", live=False)
    with pytest.raises(WindowStillOpen, match="is open until"):
        watched.sync.run(contract, cells)
    assert watched.upserts(contract) == []


def test_give_up_after_is_how_long_a_storm_is_waited_out(watched: Watched) -> None:
    busy = Answer(429, {"error": "slow down"}, {"Retry-After": "1"})
    for limit, is_outlived in (("1s", False), ("10m", True)):
        contract = watched.contract(sync={"giveUpAfter": limit})
        watched.proxy.on(busy, operation="upsert", table=contract.target.table, times=3)
        if is_outlived:
            assert watched.run(contract).rows == ROWS - 1
        else:
            with pytest.raises(TurnFailed, match="answered 429: slow down"):
                watched.run(contract)
        watched.proxy.heal()


def refused_gets(proxy: FaultProxy, contract: TableContract) -> list[Seen]:
    return [
        s for s in proxy.seen() if s.path.partition("?")[0].endswith(str(contract.source.table))
    ]


@pytest.mark.promise("G9")
@pytest.mark.parametrize(("retries", "delay_ms"), [(2, 10), (1, 200), (0, 10)])
def test_bigquery_is_asked_again_as_often_and_as_late_as_configured(
    sync: Sync,
    tables: SmallTables,
    bigquery_connection: BigQueryConnection,
    retries: int,
    delay_ms: int,
) -> None:
    assert bigquery_connection.endpoint is not None
    with FaultProxy(bigquery_connection.endpoint) as proxy:
        known = bigquery_connection.model_copy(
            update={
                "endpoint": proxy.url,
                "max_retries": retries,
                "initial_retry_delay_ms": delay_ms,
            }
        )
        some = replace(sync, stores=replace(sync.stores, bigquery=known))
        contract = some.contract(tables.make("ts TIMESTAMP"))
        proxy.on(
            Answer(503, {"error": {"code": 503, "message": "busy"}}),
            matching=lambda seen: str(contract.source.table) in seen.path,
            times=99,
        )
        with pytest.raises(BigQueryUnavailable):
            some.run(contract, some.cells(contract, START, END))
        asked = refused_gets(proxy, contract)
    waits = [later.at - before.at for before, later in pairwise(asked)]
    assert len(asked) == retries + 1
    for number, wait in enumerate(waits):
        least = delay_ms / 1000 * 2**number
        assert least <= wait < 2 * least + 0.1  # what sending takes comes on top

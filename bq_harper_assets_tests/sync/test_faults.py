"""Runs among faults: requests lost, late or refused; drivers, workers and Harper that die."""

import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.records import BatchState, CellState, LedgerRoute, Mode
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.lease.keeper import LeaseTimes
from bq_harper_assets_tests.conftest import environ_without_settings
from bq_harper_assets_tests.fault_proxy import (
    Answer,
    CutAnswer,
    Delay,
    FaultProxy,
    NoAnswer,
    Reset,
    Seen,
)
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.other_driver import Asked, OtherDriver
from bq_harper_assets_tests.sync.spark_workers import workers_at

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
DAY, HOURS = utc(2026, 1, 5), utc(2026, 1, 5, 3)
ROWS = 1500
SELECT = (
    "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n * 7 SECOND) AS ts,"
    f" n AS number, 'old' AS name FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
)
SMALL_REQUESTS = {"initial_batch_size": 100}
SHORT = LeaseTimes(timedelta(seconds=5), timedelta(seconds=0.5))
BUSY = Answer(503, headers={"Retry-After": "1"})


@pytest.fixture
def proxy(harper_connection: HarperConnection) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


@pytest.fixture
def spoilt(sync: Sync, proxy: FaultProxy) -> Sync:
    """Writes through the proxy; reads rows back without it."""
    return _through(sync, proxy)


@pytest.fixture(scope="module")
def drivers(spark: object) -> Iterator[list[OtherDriver]]:
    """At most one at a time, since its Spark takes long to start; begun by the first test."""
    alive: list[OtherDriver] = []
    yield alive
    for driver in alive:
        driver.kill()


@pytest.fixture
def other_driver(drivers: list[OtherDriver]) -> OtherDriver:
    if not drivers:
        drivers.append(OtherDriver())
    return drivers[0]


def _through(sync: Sync, proxy: FaultProxy) -> Sync:
    harper = sync.stores.harper.model_copy(update={"url": proxy.url})
    return replace(
        sync,
        stores=replace(sync.stores, harper=harper),
        retry=RetryPolicy(max_retries=9, initial_delay_s=0.01),
    )


def _keyed(sync: Sync, tables: SmallTables) -> TableContract:
    return sync.contract(tables.make_from(SELECT), sync=SMALL_REQUESTS, key=["number"])


def _keyless(sync: Sync, tables: SmallTables) -> TableContract:
    return sync.contract(tables.make_from(SELECT), sync=SMALL_REQUESTS)


def _asked(
    sync: Sync,
    contract: TableContract,
    owner: str,
    ledger: Path,
    cells: Sequence[Cell] | None = None,
) -> Asked:
    cells = cells or sync.cells(contract, DAY, HOURS)
    stores = sync.stores
    return Asked(
        bigquery=stores.bigquery,
        harper=stores.harper,
        ledger=ledger,
        contract=contract,
        cells=cells,
        owner=owner,
        times=SHORT,
    )


def _table(sync: Sync, contract: TableContract) -> LedgerRoute:
    table = sync.stores.ledger.find_route(contract.id)
    assert table is not None
    return table


def _is_held(sync: Sync, contract: TableContract) -> bool:
    return any(lease.is_live for lease in sync.stores.ledger.leases(_table(sync, contract)))


def _assert_all_agree(sync: Sync, contract: TableContract, numbers: Sequence[int]) -> None:
    """Source, Harper and ledger name the same rows, each once, cell by cell."""
    rows = sync.rows(contract)
    assert sorted(row["number"] for row in rows) == list(numbers)
    cells = sync.stores.ledger.cells(_table(sync, contract), DAY, HOURS)
    assert {cell.state for cell in cells} == {CellState.SYNCED}
    committed = {str(cell.cell): cell.commit.rows for cell in cells if cell.commit}
    ids = pa.array([row["id"] for row in rows])
    parts = slice_of(id_hashes(ids, keyless=not contract.key), contract.slices)
    found = Counter(
        f"{row['ts'][:13]}:00|s{part:02}" for row, part in zip(rows, parts, strict=True)
    )
    assert found == {cell: count for cell, count in committed.items() if count}


def _from(first: int, reached: threading.Event | None = None) -> Callable[[Seen], bool]:
    """Matches from the request of this number on, counted from 0, and says so."""
    numbers = itertools.count()

    def matches(seen: Seen) -> bool:
        if next(numbers) < first:
            return False
        if reached is not None:
            reached.set()
        return True

    return matches


@pytest.mark.promise("E4")
def test_a_request_applied_but_never_answered_is_sent_again_and_its_lease_left_to_expire(
    spoilt: Sync, proxy: FaultProxy, tables: SmallTables
) -> None:
    """With the times as shipped: nobody else may begin for as long as it might act again."""
    contract = _keyless(spoilt, tables)
    cells = spoilt.cells(contract, DAY, HOURS)
    proxy.on(NoAnswer(), operation="upsert", table=contract.target.table, matching=_from(4))
    report = spoilt.run(contract, cells, times=LeaseTimes())
    assert report.retries == 1
    assert len(proxy.seen(operation="upsert", table=contract.target.table)) == 16
    _assert_all_agree(spoilt, contract, range(ROWS))
    (owner,) = {lease.owner for lease in spoilt.stores.ledger.leases(_table(spoilt, contract))}
    with pytest.raises(LeaseHeld, match=f"slice 0: {owner} until"):
        spoilt.run(contract, cells)


@pytest.mark.promise("E4")
def test_refused_reset_and_cut_requests_in_mid_run_have_their_effect_once(
    spoilt: Sync, proxy: FaultProxy, tables: SmallTables
) -> None:
    contract = _keyless(spoilt, tables)
    faults = (
        Answer(503, headers={"Retry-After": "0"}),
        Answer(429, headers={"Retry-After": "0"}),
        Reset("before"),
        Reset("inside"),
        Reset("after"),
        CutAnswer(),
        Answer(502),
    )
    for number, fault in enumerate(faults):
        proxy.on(fault, operation="upsert", table=contract.target.table, matching=_from(number))
    report = spoilt.run(contract, spoilt.cells(contract, DAY, HOURS))
    assert report.retries == len(faults)
    met = [seen.fault for seen in proxy.seen()]
    assert all(fault in met for fault in faults)
    _assert_all_agree(spoilt, contract, range(ROWS))


@pytest.mark.promise("E4", "I1")
@pytest.mark.parametrize("status", [429, 503])
def test_a_storm_of_30_answers_in_mid_run_is_outlived(
    spoilt: Sync, proxy: FaultProxy, tables: SmallTables, status: int
) -> None:
    """Each was answered, so that the lease is free at the end; an empty 200 is not an answer."""
    contract = _keyless(spoilt, tables)
    busy = Answer(status, {"error": "slow down"}, {"Retry-After": "0"})
    target = contract.target.table
    proxy.on(busy, operation="upsert", table=target, matching=_from(3), times=30)
    report = spoilt.run(contract, spoilt.cells(contract, DAY, HOURS))
    assert report.retries == 30
    _assert_all_agree(spoilt, contract, range(ROWS))
    assert not _is_held(spoilt, contract)


@pytest.mark.promise("E4")
def test_an_empty_answer_is_sent_again_and_the_lease_left_to_expire(
    spoilt: Sync, proxy: FaultProxy, tables: SmallTables
) -> None:
    contract = _keyless(spoilt, tables)
    proxy.on(Answer(200), operation="upsert", table=contract.target.table, matching=_from(3))
    proxy.on(Answer(200), operation="describe_table", table=contract.target.table)
    report = spoilt.run(contract, spoilt.cells(contract, DAY, HOURS))
    assert report.retries == 1
    _assert_all_agree(spoilt, contract, range(ROWS))
    assert _is_held(spoilt, contract)


def test_a_lease_is_free_at_once_after_a_failure_with_every_request_answered(
    spoilt: Sync, proxy: FaultProxy, tables: SmallTables
) -> None:
    contract = _keyless(spoilt, tables)
    cells = spoilt.cells(contract, DAY, HOURS)
    proxy.on(Answer(403), operation="upsert", table=contract.target.table, matching=_from(6))
    with pytest.raises(Exception, match="The first that failed is 2026-01-05T01:00"):
        spoilt.run(contract, cells)
    assert not _is_held(spoilt, contract)
    states = [c.state for c in spoilt.stores.ledger.cells(_table(spoilt, contract), DAY, HOURS)]
    assert states == [CellState.SYNCED] * 2 + [CellState.FAILED] * 4
    report = spoilt.run(contract, cells)
    assert {cell.mode for cell in report.cells} == {Mode.RECONCILE}
    _assert_all_agree(spoilt, contract, range(ROWS))


def test_the_old_version_of_a_row_that_cannot_be_stored_any_more_is_deleted(
    spoilt: Sync, proxy: FaultProxy, tables: SmallTables
) -> None:
    """Whoever refuses it: the encoder or Harper. Keys are numbers in Harper, not their text."""
    source = tables.make_from(
        "SELECT TIMESTAMP '2026-01-05 00:30:00' AS ts, n AS number, 'fine' AS name, 0.5 AS ratio"
        " FROM UNNEST(GENERATE_ARRAY(1, 9)) AS n"
    )
    contract = spoilt.contract(source, key=["number"])
    cells = spoilt.cells(contract, DAY, utc(2026, 1, 5, 1))
    spoilt.run(contract, cells)
    tables.run(f"UPDATE {source.sql} SET ratio = CAST('nan' AS FLOAT64) WHERE number = 3")
    tables.run(f"UPDATE {source.sql} SET name = 'poison' WHERE number = 7")
    proxy.on(
        Answer(400, {"error": "no poison here"}),
        operation="upsert",
        table=contract.target.table,
        matching=lambda seen: b"poison" in seen.body,
        times=99,
    )
    report = spoilt.run(contract, cells)
    assert [row["number"] for row in spoilt.rows(contract)] == [1, 2, 4, 5, 6, 8, 9]
    assert sum(cell.result.quarantined for cell in report.cells) == 2
    quarantined = spoilt.stores.ledger.quarantined(_table(spoilt, contract))
    assert {row.rejection.row_id for row in quarantined} == {"3", "7"}
    proxy.heal()
    tables.run(f"UPDATE {source.sql} SET ratio = 1.5 WHERE number = 3")
    spoilt.run(contract, cells)
    assert len(spoilt.rows(contract)) == 9
    assert not spoilt.stores.ledger.quarantined(_table(spoilt, contract))


@pytest.mark.promise("O6")
def test_a_worker_killed_in_mid_request_is_replaced_and_its_lease_left_to_expire(
    spoilt: Sync, proxy: FaultProxy, tables: SmallTables
) -> None:
    contract = _keyless(spoilt, tables)
    reached, forward = threading.Event(), threading.Event()
    proxy.on(
        Delay(forward),
        operation="upsert",
        table=contract.target.table,
        matching=_from(5, reached),
    )
    with ThreadPoolExecutor(1) as pool:
        cells = spoilt.cells(contract, DAY, HOURS)
        running = pool.submit(spoilt.run, contract, cells, times=LeaseTimes())
        try:
            assert reached.wait(60)
            (worker,) = workers_at(proxy)
            worker.kill()
            report = running.result(60)
        finally:
            forward.set()
    assert report.rows == ROWS
    assert report.retries == 0  # the new try knows nothing of the request that was under way
    assert _is_held(spoilt, contract)
    _assert_all_agree(spoilt, contract, range(ROWS))


def test_of_two_processes_that_move_the_same_cells_one_works_and_the_other_says_who_does(
    spoilt: Sync,
    proxy: FaultProxy,
    tables: SmallTables,
    other_driver: OtherDriver,
    tmp_path: Path,
) -> None:
    contract = _keyless(spoilt, tables)
    reached, forward = threading.Event(), threading.Event()
    proxy.on(
        Delay(forward),
        operation="upsert",
        table=contract.target.table,
        matching=_from(3, reached),
    )
    other_driver.begin(_asked(spoilt, contract, "the other process", tmp_path / "ledger.db"))
    try:
        assert reached.wait(60)
        with pytest.raises(LeaseHeld, match="slice 0: the other process until"):
            spoilt.run(contract, spoilt.cells(contract, DAY, HOURS))
    finally:
        forward.set()
    assert other_driver.ended()["rows"] == ROWS
    _assert_all_agree(spoilt, contract, range(ROWS))


def test_a_run_that_stood_still_past_its_lease_sends_nothing_over_newer_rows(
    sync: Sync,
    spoilt: Sync,
    proxy: FaultProxy,
    tables: SmallTables,
    other_driver: OtherDriver,
    tmp_path: Path,
) -> None:
    """Its driver is stopped, its tasks go on until the deadline that they know of."""
    contract = _keyed(spoilt, tables)
    reached = threading.Event()
    proxy.on(
        BUSY,
        operation="upsert",
        table=contract.target.table,
        matching=_from(3, reached),
        times=999,
    )
    other_driver.begin(_asked(spoilt, contract, "the stopped run", tmp_path / "ledger.db"))
    assert reached.wait(60)
    other_driver.process.send_signal(signal.SIGSTOP)
    try:
        cells = sync.cells(contract, DAY, HOURS)
        with pytest.raises(LeaseHeld, match="the stopped run"):
            sync.run(contract, cells)
        tables.run(f"UPDATE small_tables.{contract.source.table} SET name = 'new' WHERE TRUE")
        _wait_until_free(sync, contract)
        report = sync.run(contract, cells)
        proxy.heal()
        late = len(proxy.seen(operation="upsert", table=contract.target.table))
        time.sleep(2)  # longer than it was told to wait
        assert len(proxy.seen(operation="upsert", table=contract.target.table)) == late
    finally:
        other_driver.process.send_signal(signal.SIGCONT)
    ended = other_driver.ended()
    assert ended["error"] == "TurnFailed"
    assert "could not be renewed in time" in ended["said"]
    assert {cell.mode for cell in report.cells} == {Mode.RECONCILE}
    assert {row["name"] for row in sync.rows(contract)} == {"new"}
    _assert_all_agree(sync, contract, range(ROWS))


def _wait_until_free(sync: Sync, contract: TableContract) -> None:
    limit = time.monotonic() + 2 * SHORT.ttl.total_seconds()
    while _is_held(sync, contract):
        assert time.monotonic() < limit
        time.sleep(0.1)


@pytest.mark.promise("H2", "H9")
def test_a_driver_killed_in_mid_run_holds_up_its_own_slice_only_and_the_next_run_completes_it(
    sync: Sync,
    spoilt: Sync,
    proxy: FaultProxy,
    tables: SmallTables,
    other_driver: OtherDriver,
    drivers: list[OtherDriver],
    tmp_path: Path,
) -> None:
    contract = _keyless(spoilt, tables)
    ours, theirs = (
        [cell for cell in sync.cells(contract, DAY, HOURS) if cell.slice == part] for part in (0, 1)
    )
    reached = threading.Event()
    proxy.on(
        BUSY,
        operation="upsert",
        table=contract.target.table,
        matching=_from(4, reached),
        times=999,
    )
    ledger = tmp_path / "ledger.db"
    other_driver.begin(_asked(spoilt, contract, "the killed run", ledger, theirs))
    assert reached.wait(60)
    drivers.remove(other_driver)
    other_driver.kill()
    table = _table(sync, contract)
    assert {batch.state for batch in sync.stores.ledger.history(table)} == {BatchState.PLANNED}
    with pytest.raises(LeaseHeld, match="slice 1: the killed run"):
        sync.run(contract, theirs)
    beside = sync.run(contract, ours)
    assert {cell.mode for cell in beside.cells} == {Mode.COPY}
    _wait_until_free(sync, contract)
    report = sync.run(contract, theirs)
    assert {cell.mode for cell in report.cells} == {Mode.RECONCILE}  # it may hold rows: never copy
    assert len({batch.t for batch in sync.stores.ledger.history(table, limit=len(theirs))}) == 1
    assert sum(cell.result.read for cell in (*beside.cells, *report.cells)) == ROWS
    _assert_all_agree(sync, contract, range(ROWS))


@pytest.mark.promise("H9")
def test_harper_killed_and_started_again_in_mid_run_loses_and_doubles_nothing(
    sync: Sync, tables: SmallTables, project_root: Path, tmp_path: Path
) -> None:
    environ = environ_without_settings()
    stack = LocalStack(
        project_root, tmp_path / "stack", preferred={}, persistent=False, environ=environ
    )
    addresses = stack.up(print, servers=["harper"])
    try:
        password = addresses.harper_password_file.read_text(encoding="ascii")
        harper = sync.stores.harper.model_copy(
            update={
                "url": addresses.harper_url,
                "password": type(sync.stores.harper.password)(password),
            }
        )
        with FaultProxy(addresses.harper_url) as proxy, HarperClient(harper) as client:
            direct = replace(sync, stores=replace(sync.stores, harper=harper), harper=client)
            patient = RetryPolicy(
                max_retries=40,
                initial_delay_s=0.5,
                sleep=lambda seconds: time.sleep(min(seconds, 1.0)),
            )
            spoilt = replace(_through(direct, proxy), retry=patient)
            contract = _keyless(spoilt, tables)
            reached, forward = threading.Event(), threading.Event()
            proxy.on(
                Delay(forward),
                operation="upsert",
                table=contract.target.table,
                matching=_from(5, reached),
            )
            with ThreadPoolExecutor(1) as pool:
                cells = spoilt.cells(contract, DAY, HOURS)
                running = pool.submit(spoilt.run, contract, cells)
                try:
                    assert reached.wait(60)
                    (pid,) = (s.pid for s in stack.status().servers if s.name == "harper")
                    assert pid is not None
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)  # a zombie would still count as running
                finally:
                    forward.set()
                stack.up(print, servers=["harper"])
                report = running.result(60)
            assert report.retries > 0
            _assert_all_agree(spoilt, contract, range(ROWS))
    finally:
        stack.purge(print)

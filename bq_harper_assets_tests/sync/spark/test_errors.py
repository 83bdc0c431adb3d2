"""What Spark does on its own account: tries beside each other, and giving up."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.ledger.errors import LeaseHeld
from bq_harper_assets.ledger.records import BatchState, LedgerRoute
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper
from bq_harper_assets.sync.errors import SparkGaveUp, TaskCannotSucceed
from bq_harper_assets.sync.lease.keeper import LeaseTimes
from bq_harper_assets.sync.spark.errors import errors_of_spark
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.run_elsewhere import Errand
from bq_harper_assets_tests.sync.spark_workers import workers_at

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 2)
ROWS = 120
SELECT = (
    "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE) AS ts, n AS number"
    f" FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
)
TRIES = 4  # of a task, as the tests' Spark is set
SHORT = LeaseTimes(timedelta(seconds=5), timedelta(seconds=0.5))


@pytest.fixture
def proxy(harper_connection: HarperConnection) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


@pytest.mark.promise("O6")
def test_where_spark_may_run_a_task_twice_at_once_the_lease_is_left_to_expire(
    sync: Sync, tables: SmallTables, tmp_path: Path
) -> None:
    """The try that is killed leaves no trace, and may have sent what nobody answered."""
    contract = sync.contract(tables.make_from(SELECT))
    cells = sync.cells(contract, START, END)
    errand = Errand(
        bigquery=sync.stores.bigquery,
        harper=sync.stores.harper,
        ledger_url=f"sqlite:///{tmp_path / 'ledger.db'}",
        contract=contract,
        cells=cells,
        settings={"spark.speculation": "True "},
    )
    assert errand.send()[-1] == str(ROWS)
    with pytest.raises(LeaseHeld, match="slice 0: elsewhere until"):
        sync.run(contract, cells)
    assert sorted(row["number"] for row in sync.rows(contract)) == list(range(ROWS))


@pytest.mark.promise("O6")
def test_a_worker_that_dies_at_every_try_ends_the_run_with_its_cells_and_what_to_do(
    sync: Sync, tables: SmallTables, proxy: FaultProxy
) -> None:
    contract = sync.contract(tables.make_from(SELECT))
    cells = sync.cells(contract, START, END)
    spoilt = sync.stores.harper.model_copy(update={"url": proxy.url})
    through = replace(sync, stores=replace(sync.stores, harper=spoilt))
    never = threading.Event()
    proxy.on(Delay(never), operation="upsert", table=contract.target.table, times=TRIES)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(through.run, contract, cells, times=SHORT)
        for tried in range(1, TRIES + 1):
            _kill_the_worker(proxy, contract, tried, running)
        with pytest.raises(SparkGaveUp) as told:
            running.result(60)
    for part in (
        f"Spark gave up on {contract.id}, 4 cells",
        "from 2026-01-05T00:00|s00 to 2026-01-05T01:00|s01",
        "failed 4 times",
        "None of them is committed",
        f"Next: bqh sync {contract.id}",
    ):
        assert part in str(told.value)
    assert "\n" not in str(told.value)
    table = _table(sync, contract)
    assert {batch.state for batch in sync.stores.ledger.history(table)} == {BatchState.PLANNED}
    with pytest.raises(LeaseHeld):  # the last request may still take effect
        sync.run(contract, cells)
    limit = time.monotonic() + 2 * SHORT.ttl.total_seconds()
    while any(lease.is_live for lease in sync.stores.ledger.leases(table)):
        assert time.monotonic() < limit
        time.sleep(0.1)
    assert sync.run(contract, cells).rows == ROWS
    assert sorted(row["number"] for row in sync.rows(contract)) == list(range(ROWS))


@pytest.mark.promise("M13")
def test_a_proof_whose_workers_die_at_every_try_is_a_failed_check_of_its_cells(
    sync: Sync, tables: SmallTables, proxy: FaultProxy
) -> None:
    contract = sync.contract(tables.make_from(SELECT))
    cells = sync.cells(contract, START, END)
    sync.run(contract, cells)
    spoilt = sync.stores.harper.model_copy(update={"url": proxy.url})
    prover = Prover(
        BigQueryToHarper(replace(sync.stores, harper=spoilt), contract), sync.spark, sync.retry
    )
    never = threading.Event()
    proxy.on(Delay(never), operation="search_by_conditions", table=contract.target.table, times=99)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(prover.prove, cells)
        limit = time.monotonic() + 60
        while not running.done():
            assert time.monotonic() < limit
            for worker in workers_at(proxy):
                worker.kill()
            time.sleep(0.02)
    proofs = running.result()
    assert {proof.status for proof in proofs} == {ProofStatus.CHECK_FAILED}
    told = proofs[0].message
    assert told.startswith(f"Spark gave up on {contract.id}, 4 cells from 2026-01-05T00:00|s00")
    assert told.endswith(f". A proof writes nothing. Next: bqh verify {contract.id}")
    assert "\n" not in told
    assert {proof.status for proof in sync.prover(contract).prove(cells)} == {ProofStatus.PROVED}


def _kill_the_worker(
    proxy: FaultProxy, contract: TableContract, tried: int, running: Future[TurnReport]
) -> None:
    limit = time.monotonic() + 60
    while len(proxy.seen(operation="upsert", table=contract.target.table)) < tried:
        assert not running.done()
        assert time.monotonic() < limit
        time.sleep(0.02)
    (worker,) = workers_at(proxy)
    worker.kill()


def _table(sync: Sync, contract: TableContract) -> LedgerRoute:
    table = sync.stores.ledger.find_route(contract.id)
    assert table is not None
    return table


def test_what_a_task_would_raise_again_is_told_as_such_and_not_as_what_may_heal(
    sync: Sync, tables: SmallTables
) -> None:
    cells = sync.cells(sync.contract(tables.new_name()), START, END)

    def missing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import there_is_no_such_module  # noqa: F401

        yield from batches

    def full(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise OSError(28, "No space left on device")
        yield from batches

    one_row = sync.spark.range(1)
    told = {}
    for name, job in {
        "module": lambda: one_row.mapInArrow(missing, "id long").collect(),
        "column": lambda: one_row.select("nope").collect(),
        "disk": lambda: one_row.mapInArrow(full, "id long").collect(),
    }.items():
        with pytest.raises(BqhError) as raised, errors_of_spark("ships", cells, "All is safe"):
            job()
        told[name] = raised.value
    assert isinstance(told["module"], TaskCannotSucceed)
    assert not isinstance(told["module"], TransientError)
    assert str(told["module"]) == (
        "Spark cannot do ships, 4 cells from 2026-01-05T00:00|s00 to 2026-01-05T01:00|s01, and"
        " trying again would not help: ModuleNotFoundError: No module named"
        " 'there_is_no_such_module'. All is safe"
    )
    assert isinstance(told["column"], TaskCannotSucceed)
    assert "UNRESOLVED_COLUMN" in str(told["column"])
    assert isinstance(told["disk"], TransientError)  # it may have room next time

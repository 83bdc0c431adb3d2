"""What a proof says of a cell that moves, waits or was never synced: neither equal nor wrong."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from bq_harper_assets.validation.verdict import ProofStatus, Severity
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy, Seen
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import (
    DAY,
    KEYED,
    ONE,
    TWO,
    Table,
    made,
)
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.validation.proof.test_prover import prove, statuses

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("M13")
def test_a_cell_that_is_synced_while_it_is_proved_is_called_moving_and_not_different(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET name = 'later' WHERE number = 60")
    read, go_on = threading.Event(), threading.Event()

    def is_read_back(seen: Seen) -> bool:
        read.set()
        return True

    with FaultProxy(sync.stores.harper.url) as proxy, ThreadPoolExecutor(1) as pool:
        target = table.contract.target.table
        proxy.on(
            Delay(go_on),
            operation="search_by_conditions",
            table=target,
            matching=is_read_back,
            times=9,
        )
        spoilt = sync.stores.harper.model_copy(update={"url": proxy.url})
        slow = replace(table, sync=replace(sync, stores=replace(sync.stores, harper=spoilt)))
        proving = pool.submit(prove, slow)
        try:
            assert read.wait(60)
            table.run(DAY, ONE)  # it commits after the proof's first look and before its last
        finally:
            go_on.set()
        proofs = proving.result(60)
    for key, proof in proofs.items():
        of_the_first_hour = key.startswith("2026-01-05T00")
        expected = ProofStatus.MOVING if of_the_first_hour else ProofStatus.PROVED
        assert proof.status is expected, key
    assert statuses(prove(table)) == {ProofStatus.PROVED}


def test_a_cell_that_was_never_synced_or_is_being_moved_is_not_called_proved(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables)
    other = Table(
        sync=sync, tables=tables, source=table.source, contract=sync.contract(table.source)
    )
    assert statuses(prove(other)) == {ProofStatus.NOT_SYNCED}
    assert all(not proof.verdict.passed for proof in prove(other).values())


def test_a_cell_that_is_marked_waits_for_its_sync_and_is_not_called_different(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    table.change("UPDATE T SET ts = TIMESTAMP_ADD(ts, INTERVAL 1 HOUR) WHERE number = 60")
    # Only the window to which the row has moved: the one that it has left is marked.
    sync.run(table.contract, sync.cells(table.contract, ONE, TWO))
    proofs = prove(table)
    [waiting] = [proof for proof in proofs.values() if proof.status is not ProofStatus.PROVED]
    assert waiting.status is ProofStatus.MOVING
    assert (waiting.verdict.passed, waiting.verdict.severity) == (False, Severity.WARN)
    assert "waits to be synced again" in waiting.message
    assert f"bqh sync {table.contract.id} --from" in waiting.message
    sync.run(table.contract, [waiting.cell])
    assert statuses(prove(table)) == {ProofStatus.PROVED}

"""A full reconcile makes every window be compared, under this ledger and above all older leases."""

import time
from typing import Any

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.stores.harper.errors import HarperInUse
from bq_harper_assets.stores.harper.lease.full_reconcile import distrust_everything
from bq_harper_assets.stores.harper.lease.ledger_agreement import require_in_step
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper
from bq_harper_assets_tests.sync.memory_source import DAY, HOUR, small_contract

ORDERS = small_contract()


def copy(name: str, **changes: Any) -> dict[str, Any]:
    known = {"ledger": "another", "owner": "o", "epoch": 30, "batch": 70, "deadline": 5.0}
    return {"id": f"Ships|{name}", **known, **changes}


def distrusted(ledger: Ledger, memory: MemoryHarper) -> LedgerRoute:
    bigquery = BigQueryConnection(project="p")
    with memory.client() as client:
        return distrust_everything(ledger, client, ORDERS, bigquery, DAY, DAY + 3 * HOUR)


def test_every_window_is_compared_next_above_all_epochs_and_batches(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    memory.make("SyncLease", copy("s00"), copy("s01", epoch=50, batch=20), copy("s05"))
    before = time.time()
    table = distrusted(ledger, memory)
    newest = ledger.newest(table)
    assert (newest.epochs, newest.batch) == ({0: 51, 1: 51}, 70)
    cells = ledger.cells(table, 0, 1 << 62)
    assert len(cells) == 6
    assert not any(cell.is_clean for cell in cells)
    rows = memory.rows("SyncLease")
    assert [row["id"] for row in rows] == ["Ships|s00", "Ships|s01"]
    assert {row["ledger"] for row in rows} == {str(ledger.identity())}
    assert {row["owner"] for row in rows} == {"bqh reconcile"}
    assert [row["epoch"] for row in rows] == [newest.epochs[0], newest.epochs[1]]
    assert {row["batch"] for row in rows} == {newest.batch}
    assert all(before <= row["deadline"] <= time.time() for row in rows)
    with memory.client() as client:
        require_in_step(ledger, client, table, adopted=True)


@pytest.mark.parametrize(("copies", "epoch"), [([], 1), ([copy("s00", batch=None)], 31)])
def test_a_table_without_copies_gets_its_own(
    memory: MemoryHarper, ledger: Ledger, copies: list[dict[str, Any]], epoch: int
) -> None:
    memory.make("SyncLease", *copies)
    newest = ledger.newest(distrusted(ledger, memory))
    assert (newest.epochs, newest.batch) == ({0: epoch, 1: epoch}, 0)
    assert [row["id"] for row in memory.rows("SyncLease")] == ["Ships|s00", "Ships|s01"]


def test_the_first_lease_of_a_ledger_that_knows_none_is_a_newer_copy_of_it(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    own = copy("s09", ledger=str(ledger.identity()), epoch=1, deadline=time.time() + 60)
    memory.make("SyncLease", own)
    with pytest.raises(HarperInUse):
        distrusted(ledger, memory)


@pytest.mark.parametrize("owner", ["another ledger", "a newer copy of this one"])
def test_while_a_run_of_another_ledger_may_write_nothing_is_done(
    memory: MemoryHarper, ledger: Ledger, owner: str
) -> None:
    name = "another" if owner == "another ledger" else str(ledger.identity())
    late = copy("s00", ledger=name, deadline=time.time() + 60)
    memory.make("SyncLease", late, copy("s01", deadline=time.time() - 60))
    with pytest.raises(HarperInUse):
        distrusted(ledger, memory)
    assert memory.rows("SyncLease")[0] == late
    assert memory.of("delete") == []


def test_a_lease_of_this_ledger_itself_is_the_ledgers_to_judge(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    table = distrusted(ledger, memory)
    epoch = ledger.newest(table).epochs[0]
    rows = memory.tables["SyncLease"].rows
    rows["Ships|s00"]["deadline"] = time.time() + 60
    assert rows["Ships|s00"]["epoch"] == epoch
    distrusted(ledger, memory)
    assert ledger.newest(table).epochs[0] > epoch

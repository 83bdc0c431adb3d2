"""Each slice's checkpoint is copied as the ledger has it; a Harper that is away does no harm."""

from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.stores.harper.mirror.checkpoints import (
    checkpoint_id,
    mirror_checkpoints,
    node_id,
)
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets_tests.ledger.sample import commit_cell, result
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper
from bq_harper_assets_tests.stores.small_tables import utc

NOON, HOUR = utc(2026, 1, 5, 12), timedelta(hours=1)
ORDERS = contract(
    slices=2, window="1h", sync={"start_timestamp": "2026-01-05T12:10:00Z"}, safety_lag="0s"
)


def synced(ledger: Ledger) -> None:
    """Slice 0 is synced for two hours, with 5 rows in each, and slice 1 for one with 7."""
    table = ledger.register_route(table_facts(ORDERS, "p"))
    ledger.record_schema(table, {"columns": ["ts"]}, 0)
    leases = ledger.acquire(table, [0, 1], "me", HOUR)
    for hour, slice_, rows in ((0, 0, 5), (1, 0, 5), (0, 1, 7)):
        at = NOON + hour * HOUR
        cell = CellKey.of_window(at, at + HOUR, slice_)
        wanted = [Wanted(cell=cell, mode=Mode.COPY, fingerprint="f")]
        [batch] = ledger.plan(leases, NOON + 5 * HOUR, 1, wanted, "run")
        commit_cell(ledger, leases, batch, result(rows))


def test_the_row_of_a_slice_says_how_far_it_is_and_how_late(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    synced(ledger)
    with memory.client() as client:
        assert mirror_checkpoints(ledger, client, ORDERS, now=NOON + 150 * HOUR / 60) is None
    first, second = memory.rows("SyncCheckpoint")
    assert first == {
        "id": "orders|s00",
        "tableId": "orders",
        "nodeId": "orders-s00",
        "lastTimestamp": "2026-01-05T14:00:00.000000Z",
        "phase": "catchup",
        "recordsIngested": 10,
        "lastSyncTime": "2026-01-05T14:30:00.000000Z",
        "batchSize": ORDERS.sync.catchup_batch_size,
        "lagSeconds": 1800,
        "derivedFrom": f"ledger {ledger.identity()}",
    }
    assert (second["id"], second["recordsIngested"], second["lagSeconds"]) == (
        "orders|s01", 7, 5400,
    )  # fmt: skip


def test_a_slice_is_never_ahead_of_the_time(memory: MemoryHarper, ledger: Ledger) -> None:
    synced(ledger)
    with memory.client() as client:
        mirror_checkpoints(ledger, client, ORDERS, now=NOON)
    assert [row["lagSeconds"] for row in memory.rows("SyncCheckpoint")] == [0, 0]


def test_a_table_that_was_never_synced_or_has_no_start_has_no_checkpoint(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    with memory.client() as client:
        assert mirror_checkpoints(ledger, client, ORDERS) is None
        synced(ledger)
        assert mirror_checkpoints(ledger, client, contract(slices=2, window="1h")) is None
    assert memory.asked == []


def test_checkpoints_are_shown_from_the_start_that_the_ledger_recorded_too(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    synced(ledger)
    table = ledger.find_route("orders")
    assert table is not None
    ledger.record_start("orders", NOON)
    with memory.client() as client:
        assert mirror_checkpoints(ledger, client, contract(slices=2, window="1h")) is None
    first, _ = memory.rows("SyncCheckpoint")
    assert first["lagSeconds"] > 0  # now is the ledger's


def test_a_harper_that_does_not_take_them_is_a_warning(
    memory: MemoryHarper, ledger: Ledger
) -> None:
    synced(ledger)
    memory.refuses = lambda asked: (403, {"error": "no"})
    with memory.client() as client:
        told = mirror_checkpoints(ledger, client, ORDERS, now=NOON)
    assert told is not None
    assert told.startswith("the checkpoints of orders could not be copied to Harper's table Sync")


def test_nodes_are_named_by_their_slice() -> None:
    assert (checkpoint_id("orders", 7), node_id("orders", 7)) == ("orders|s07", "orders-s07")
    assert node_id("orders") == "orders"
    assert node_id("orders", 0) == "orders-s00"

"""SyncCheckpoint in Harper: one row per table and slice, copied from the ledger."""

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.checkpoints import mirror_checkpoints
from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS
from bq_harper_assets_tests.stores.harper_clients import selected
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.conftest import MINUTE, Bench, bench

__all__ = ["bench"]

pytestmark = [pytest.mark.harper, pytest.mark.bigquery]
NOON = utc(2026, 1, 5, 12)


@pytest.mark.promise("M5")
def test_each_slice_has_a_row_that_says_how_far_it_is_and_how_many_rows_it_holds(
    bench: Bench, harper_connection: HarperConnection
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    bench.commit(contract, NOON, NOON + 10 * MINUTE, rows=7)
    bench.commit(contract, NOON + 10 * MINUTE, NOON + 15 * MINUTE, [0], rows=2)
    now = NOON + 20 * MINUTE
    assert mirror_checkpoints(bench.ledger, bench.harper, contract, now=now) is None
    first, second = _rows(harper_connection, contract.id)
    assert first == {
        "id": f"{contract.id}|s00",
        "tableId": contract.id,
        "nodeId": f"{contract.id}-s00",
        "lastTimestamp": "2026-01-05T12:15:00.000000Z",
        "phase": "steady",
        "recordsIngested": 16,
        "lastSyncTime": "2026-01-05T12:20:00.000000Z",
        "batchSize": 500,
        "lagSeconds": 300,
        "derivedFrom": f"ledger {bench.ledger.identity()}",
    }
    assert (second["nodeId"], second["recordsIngested"]) == (f"{contract.id}-s01", 14)
    assert (second["lastTimestamp"], second["phase"]) == ("2026-01-05T12:10:00.000000Z", "steady")


@pytest.mark.promise("M5")
def test_a_cell_that_is_moved_again_counts_once_and_an_empty_poll_moves_the_time_only(
    bench: Bench, harper_connection: HarperConnection
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    for _ in range(2):
        bench.commit(contract, NOON, NOON + 5 * MINUTE, rows=7)
    for minute in (70, 71):
        mirror_checkpoints(bench.ledger, bench.harper, contract, now=NOON + minute * MINUTE)
    (row, _) = _rows(harper_connection, contract.id)
    assert (row["recordsIngested"], row["phase"]) == (7, "initial")
    assert row["lastSyncTime"] == "2026-01-05T13:11:00.000000Z"
    assert row["batchSize"] == contract.sync.initial_batch_size


def test_a_table_that_was_never_synced_has_no_row(bench: Bench) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    assert mirror_checkpoints(bench.ledger, bench.harper, contract) is None


@pytest.mark.promise("M5")
def test_a_harper_that_does_not_take_them_gives_a_warning(
    bench: Bench, harper_connection: HarperConnection, nowhere: str
) -> None:
    contract = bench.contract(bench.source(NOON), NOON)
    bench.commit(contract, NOON, NOON + 5 * MINUTE)
    stopped = harper_connection.model_copy(update={"url": nowhere})
    with HarperClient(stopped, retry=RetryPolicy(max_retries=0), breakers=Breakers()) as away:
        warning = mirror_checkpoints(bench.ledger, away, contract)
    assert warning is not None
    assert CHECKPOINTS.name in warning


def _rows(harper: HarperConnection, table: str) -> list[dict[str, object]]:
    return selected(
        harper,
        f"SELECT * FROM data.{CHECKPOINTS.name} WHERE tableId = '{table}' ORDER BY nodeId",
    )

"""Rows that are gone are deleted, marked or left, all of them and under the lease."""

import time
from datetime import UTC, datetime

import pytest

from bq_harper_assets.ledger.records import Batch, LedgerRoute, Mode
from bq_harper_assets.stores.harper.errors import HarperError
from bq_harper_assets.stores.harper.writing.removal import HarperRemoval
from bq_harper_assets.sync.errors import LeaseRanOut
from bq_harper_assets.sync.protocols import DeletePolicy, LeaseTerms
from bq_harper_assets_tests.ledger.sample import FACTS, cell
from bq_harper_assets_tests.stores.memory_harper import ONCE, MemoryHarper

T = datetime(2026, 1, 5, 12, tzinfo=UTC)
BATCH = Batch(
    route=LedgerRoute(1, 1, FACTS),
    seq=1,
    cell=cell(),
    mode=Mode.RECONCILE,
    t=T,
    rank=1,
    schema_version=1,
    epoch=1,
    upto=T,
)


def removal(memory: MemoryHarper, lasts_s: float = 3600.0) -> HarperRemoval:
    lease = LeaseTerms(
        target="Ships",
        epochs={0: 1},
        deadline=time.time() + lasts_s,
        effect_within_s=1.0,
        max_clock_skew_s=0.0,
    )
    return HarperRemoval(memory.connection, "Ships", lease, ONCE)


def test_every_row_is_deleted_however_many_there_are(memory: MemoryHarper) -> None:
    memory.make("Ships", *({"id": n} for n in range(2_002)))
    with removal(memory) as ours:
        ours.remove(BATCH, list(range(2_001)), "mirror", "id", T)
        assert ours.all_answered
    assert [row["id"] for row in memory.rows("Ships")] == [2_001]
    assert [len(asked["ids"]) for asked in memory.of("delete")] == [1_000, 1_000, 1]


def test_flagged_rows_stay_with_the_time_at_which_they_were_gone(memory: MemoryHarper) -> None:
    memory.make("Ships", {"mmsi": 1, "name": "a"}, {"mmsi": 2}, key="mmsi")
    with removal(memory) as ours:
        ours.remove(BATCH, [1], "flag", "mmsi", T)
    marked = {"mmsi": 1, "name": "a", "_deletedAt": "2026-01-05T12:00:00.000000Z"}
    assert memory.rows("Ships") == [marked, {"mmsi": 2}]


@pytest.mark.parametrize(("ids", "policy"), [([1], "keep"), ([], "mirror"), ([], "flag")])
def test_where_nothing_goes_nothing_is_sent(
    memory: MemoryHarper, ids: list[int], policy: DeletePolicy
) -> None:
    memory.make("Ships", {"id": 1})
    with removal(memory) as ours:
        ours.remove(BATCH, ids, policy, "id", T)
    assert memory.asked == []


def test_nothing_is_deleted_once_the_lease_is_about_to_end(memory: MemoryHarper) -> None:
    memory.make("Ships", {"id": 1})
    memory.make("SyncLease")
    with removal(memory, 0.9) as ours:
        with pytest.raises(LeaseRanOut):
            ours.remove(BATCH, [1], "mirror", "id", T)
        assert ours.all_answered
    assert memory.rows("Ships") == [{"id": 1}]


def test_a_delete_that_was_not_answered_is_remembered(memory: MemoryHarper) -> None:
    memory.make("Ships", {"id": 1})
    memory.refuses = lambda asked: (504, {"error": "a gateway gave up"})
    with removal(memory) as ours:
        with pytest.raises(HarperError):
            ours.remove(BATCH, [1], "mirror", "id", T)
        assert not ours.all_answered

"""What a run shows of its leases in Harper, and what it must not overwrite there."""

from typing import Any

import pytest

from bq_harper_assets.ledger.records import Lease, Leases, LedgerRoute
from bq_harper_assets.stores.harper.errors import HarperError
from bq_harper_assets.stores.harper.lease.lease_mirror import HarperLeaseMirror
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets_tests.ledger.sample import FACTS, START
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, memory_harper

LEASES = Leases(LedgerRoute(1, 1, FACTS), "me", (Lease(0, 4, START, 9.0), Lease(3, 6, START, 9.0)))


def mirror(memory: MemoryHarper, hurried: MemoryHarper | None = None) -> HarperLeaseMirror:
    slow, fast = memory.client(), (hurried or memory).client()
    return HarperLeaseMirror(slow, fast, "Positions", "the ledger", "me")


def copies(memory: MemoryHarper) -> list[dict[str, Any]]:
    return memory.rows(MIRRORED_LEASES.name)


def test_a_copy_names_its_ledger_owner_epoch_and_deadline(memory: MemoryHarper) -> None:
    ours = mirror(memory)
    ours.create()
    ours.create()  # it may exist
    ours.show(LEASES, 77.5)
    known = {"ledger": "the ledger", "owner": "me", "deadline": 77.5}
    assert copies(memory) == [
        {"id": "Positions|s00", "epoch": 4, **known},
        {"id": "Positions|s03", "epoch": 6, **known},
    ]


def test_a_renewal_leaves_the_batch_and_a_batch_leaves_the_deadline(memory: MemoryHarper) -> None:
    ours = mirror(memory)
    ours.create()
    ours.show(LEASES, 50.0)
    ours.show_batch(LEASES, 12)
    ours.show(LEASES, 60.0)
    assert [(row["batch"], row["deadline"]) for row in copies(memory)] == [(12, 60.0)] * 2
    ours.show_batch(LEASES, 13, 61.0)
    assert [(row["batch"], row["deadline"]) for row in copies(memory)] == [(13, 61.0)] * 2


def test_only_what_must_not_wait_is_sent_in_a_hurry(memory: MemoryHarper) -> None:
    with memory_harper() as other:
        ours = mirror(memory, other)
        ours.create()
        other.make(MIRRORED_LEASES.name)
        ours.show(LEASES, 1.0)
        ours.show_batch(LEASES, 2)
        assert (len(memory.of("upsert")), len(other.of("upsert"))) == (2, 0)
        ours.show(LEASES, 3.0, at_once=True)
        ours.show_batch(LEASES, 4, 5.0)
        assert (len(memory.of("upsert")), len(other.of("upsert"))) == (2, 2)


def test_a_batch_that_was_not_answered_is_remembered_also_after_one_that_was(
    memory: MemoryHarper,
) -> None:
    ours = mirror(memory)
    ours.create()
    ours.show_batch(LEASES, 1)
    assert not ours.is_unanswered
    memory.refuses = lambda asked: (504, {"error": "a gateway gave up"})
    with pytest.raises(HarperError):
        ours.show_batch(LEASES, 2)
    assert ours.is_unanswered
    memory.refuses = lambda asked: None
    ours.show_batch(LEASES, 3)
    assert ours.is_unanswered


def test_a_renewal_that_was_not_answered_does_not_count_as_a_batch(memory: MemoryHarper) -> None:
    ours = mirror(memory)
    ours.create()
    memory.refuses = lambda asked: (504, {"error": "a gateway gave up"})
    with pytest.raises(HarperError):
        ours.show(LEASES, 1.0)
    memory.refuses = lambda asked: None
    ours.show_batch(LEASES, 3)
    assert not ours.is_unanswered

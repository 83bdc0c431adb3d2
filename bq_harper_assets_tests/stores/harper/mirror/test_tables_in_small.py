"""The sync's own tables in Harper are made where they are missing, and are never in the way."""

import pytest

from bq_harper_assets.stores.harper.errors import HarperError, HarperNotFound
from bq_harper_assets.stores.harper.mirror.tables import (
    AUDITS,
    CHECKPOINTS,
    LOCKS,
    MIRROR_TABLES,
    MIRRORED_LEASES,
    look_at_system_tables,
    make_system_tables,
)
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper

MISSING = "Table 'data.SyncAudit' does not exist"


def test_a_table_is_made_with_its_types_and_its_indexes(memory: MemoryHarper) -> None:
    with memory.client() as client:
        CHECKPOINTS.create(client)
        LOCKS.create(client)
    made = memory.tables["SyncCheckpoint"]
    assert made.primary_key == "id"
    assert {"attribute": "tableId", "type": "String", "indexed": True} in made.attributes
    assert {"attribute": "batchSize", "type": "Long"} in made.attributes
    assert [each["attribute"] for each in made.attributes] == list(CHECKPOINTS.types)
    assert memory.tables["SchemaLock"].primary_key == "lockId"


def test_rows_are_written_at_once_and_a_missing_table_is_made_first(memory: MemoryHarper) -> None:
    with memory.client() as client:
        AUDITS.upsert(client, [{"id": "a", "status": "ok"}])
        AUDITS.upsert(client, [{"id": "b", "status": "bad"}])
    assert [asked["operation"] for asked in memory.asked] == [
        "upsert", "create_table", "upsert", "upsert",
    ]  # fmt: skip
    assert [row["id"] for row in memory.rows("SyncAudit")] == ["a", "b"]


def test_a_table_that_stays_missing_is_an_error(memory: MemoryHarper) -> None:
    memory.refuses = lambda asked: (
        (404, {"error": MISSING}) if asked["operation"] == "upsert" else None
    )
    # Right after it was made, another thread may not know it yet: this one asks once.
    with memory.client() as client, pytest.raises(HarperError) as failed:
        AUDITS.upsert(client, [{"id": "a"}])
    assert not isinstance(failed.value, HarperNotFound)


def test_only_tables_that_are_missing_are_made(memory: MemoryHarper) -> None:
    memory.make("SyncAudit")
    with memory.client() as client:
        assert make_system_tables(client) == ()
        assert set(memory.tables) == {table.name for table in MIRROR_TABLES}
        assert len(memory.of("create_table")) == len(MIRROR_TABLES) - 1
        assert make_system_tables(client) == ()
    assert len(memory.of("create_table")) == len(MIRROR_TABLES) - 1


def test_a_table_that_cannot_be_made_is_a_warning_and_the_others_are_made(
    memory: MemoryHarper,
) -> None:
    memory.refuses = lambda asked: (
        (403, {"error": "no"})
        if (asked["operation"], asked.get("table")) == ("create_table", "SyncAudit")
        else None
    )
    with memory.client() as client:
        [warning] = make_system_tables(client)
    assert "Harper's table SyncAudit, which only shows what the ledger knows" in warning
    assert len(memory.tables) == len(MIRROR_TABLES) - 1


def test_each_table_is_told_as_present_missing_unknown_or_of_another_layout(
    memory: MemoryHarper,
) -> None:
    with memory.client() as client:
        MIRRORED_LEASES.create(client)
        CHECKPOINTS.create(client)
        LOCKS.create(client)
        del memory.tables["SyncCheckpoint"].attributes[3:5]
        memory.tables["SchemaLock"].attributes.append({"attribute": "more"})
        memory.refuses = lambda asked: (
            (500, {"error": "RangeError"}) if asked.get("table") == "SyncAudit" else None
        )
        found = {each.name: each for each in look_at_system_tables(client)}
    assert {name: each.state for name, each in found.items()} == {
        "SyncCheckpoint": "other layout",
        "SyncAudit": "unknown",
        "SchemaMetadata": "missing",
        "SchemaLock": "present",
        "SyncLease": "present",
    }
    assert found["SyncCheckpoint"].lacking == ("lastTimestamp", "phase")
    assert found["SchemaLock"].attributes == (*LOCKS.types, "more")
    assert found["SyncLease"].lacking == ()
    assert "RangeError" in found["SyncAudit"].problem
    assert {name: each.version for name, each in found.items()} == {
        "SyncCheckpoint": 1,
        "SyncAudit": 1,
        "SchemaMetadata": 2,
        "SchemaLock": 1,
        "SyncLease": 2,
    }

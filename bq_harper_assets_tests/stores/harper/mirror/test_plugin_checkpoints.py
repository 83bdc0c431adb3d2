"""What the plugin says it has ingested is summed up over its nodes, and only of its own rows."""

from typing import Any

import pytest

from bq_harper_assets.stores.harper.mirror.plugin_checkpoints import moment_of, read_checkpoints
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper
from bq_harper_assets_tests.stores.small_tables import utc

NOON, ONE = "2026-01-05T12:00:00.123456789Z", "2026-01-05T13:00:00Z"


def node(
    row_id: str, until: str | None, table: str | None = "ships", **more: Any
) -> dict[str, Any]:
    return {"id": row_id, "tableId": table, "lastTimestamp": until, **more}


def test_without_the_table_or_without_rows_of_the_plugin_there_is_nothing(
    memory: MemoryHarper,
) -> None:
    with memory.client() as client:
        assert read_checkpoints(client, "ships") is None
        ours = node("c", NOON, derivedFrom="ledger x")
        memory.make("SyncCheckpoint", node("a", NOON, "others"), {"id": "b"}, ours)
        assert read_checkpoints(client, "ships") is None


def test_nodes_add_up_and_the_one_that_is_least_far_counts(memory: MemoryHarper) -> None:
    memory.make(
        "SyncCheckpoint",
        node("a", ONE, recordsIngested=5),
        node("b", NOON, recordsIngested="7"),
        node("c", ONE),
        node("d", "2020-01-01T00:00:00Z", "others", recordsIngested=100),
        node("e", "2020-01-01T00:00:00Z", derivedFrom="ledger x", recordsIngested=100),
    )
    with memory.client() as client:
        found = read_checkpoints(client, "ships")
    assert found is not None
    assert (found.nodes, found.ingested) == (3, 12)
    assert found.covered_until == utc(2026, 1, 5, 12).replace(microsecond=123456)


@pytest.mark.parametrize("until", [None, "soon"])
def test_a_node_that_does_not_say_how_far_it_is_leaves_it_open(
    memory: MemoryHarper, until: str | None
) -> None:
    memory.make("SyncCheckpoint", node("a", ONE), node("b", until))
    with memory.client() as client:
        found = read_checkpoints(client, "ships")
    assert found is not None
    assert (found.nodes, found.covered_until) == (2, None)


def test_rows_that_name_no_table_are_of_the_only_one(memory: MemoryHarper) -> None:
    memory.make("SyncCheckpoint", node("a", ONE, None), node("b", ONE))
    with memory.client() as client:
        found = read_checkpoints(client, "default")
    assert found is not None
    assert found.nodes == 1


def test_a_time_without_a_zone_is_utc() -> None:
    assert moment_of("2026-01-05T12:00:00") == utc(2026, 1, 5, 12)
    assert moment_of("2026-01-05T12:00:00+02:00") == utc(2026, 1, 5, 10)
    assert moment_of(None) is None

"""What the client sends for each of its verbs, and what it makes of the answer."""

import json
from typing import Any

import pytest

from bq_harper_assets.stores.harper.answers import Attribute, WriteCount
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import HarperNotFound, HarperUnauthorized
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper

HIDDEN: dict[str, Any] = {
    "error": "no",
    "invalid_schema_items": ["Table 'data.Ships' does not exist"],
}


def sent(memory: MemoryHarper) -> dict[str, Any]:
    return dict(memory.asked[-1])


def test_a_table_is_made_with_its_attributes_and_is_new_once(memory: MemoryHarper) -> None:
    attributes = [Attribute(name="id", type="Long"), Attribute(name="at", indexed=True)]
    with memory.client() as client:
        assert client.create_table("Ships", "id", attributes).is_new
        assert sent(memory) == {
            "operation": "create_table",
            "database": "data",
            "table": "Ships",
            "primary_key": "id",
            "attributes": [{"name": "id", "type": "Long"}, {"name": "at", "indexed": True}],
        }
        again = client.create_table("Ships", "id", attributes)
        assert (again.is_new, "already exists" in again.said) == (False, True)
        client.create_table("Bare", "key", [])
        assert sent(memory)["attributes"] == [{"name": "key"}]
        assert client.create_attribute("Ships", "more").is_new
        assert not client.create_attribute("Ships", "more").is_new
        described = client.describe_table("Ships")
    assert described is not None
    assert {each.name: each.indexed for each in described.attributes} == {
        "id": False, "at": True, "more": True,
    }  # fmt: skip


def test_a_missing_table_is_described_as_none(memory: MemoryHarper) -> None:
    with memory.client() as client:
        assert client.describe_table("Ships") is None
        assert client.describe_all() == {}
        memory.make("Ships", {"id": 1})
        assert set(client.describe_all()) == {"Ships"}


def test_a_table_that_the_role_may_not_see_is_told_from_a_missing_one(
    memory: MemoryHarper,
) -> None:
    memory.refuses = lambda asked: (403, HIDDEN) if asked["operation"] == "describe_table" else None
    with memory.client() as client:
        assert client.describe_table("Ships") is None
        memory.make("Ships", {"id": 1})
        found = client.describe_table("Ships")
        assert found is not None
        assert found.record_count == 1
        # The client has made it itself: it is there, and hidden.
        client.create_table("Other", "id", [])
        del memory.tables["Other"]
        memory.refuses = lambda asked: (
            (403, HIDDEN) if asked["operation"] == "describe_table" else None
        )
        with pytest.raises(HarperUnauthorized):
            client.describe_table("Other")
        for items in ([], [*HIDDEN["invalid_schema_items"], "another right"]):
            said = {"error": "no", "invalid_schema_items": items}
            memory.refuses = lambda asked, said=said: (
                (403, said) if asked["operation"] == "describe_table" else None
            )
            with pytest.raises(HarperUnauthorized):
                client.describe_table("Ships")


def test_rows_are_written_and_deleted_in_the_database_of_the_client(memory: MemoryHarper) -> None:
    memory.make("Ships")
    with memory.client(database="other") as client:
        assert client.upsert("Ships", [{"id": 1}, {"id": 2}]) == WriteCount(2)
        assert sent(memory)["database"] == "other"
        assert client.delete("Ships", [2, 3]) == WriteCount(2)
        assert sent(memory) == {
            "operation": "delete", "database": "other", "table": "Ships", "ids": [2, 3],
        }  # fmt: skip
        with pytest.raises(ValueError, match="not JSON compliant"):
            client.upsert("Ships", [{"id": float("nan")}])
    assert memory.rows("Ships") == [{"id": 1}]


def test_the_frame_of_an_upsert_is_all_but_the_records(memory: MemoryHarper) -> None:
    memory.make("Ships")
    records = b'[{"id":1}]'
    with memory.client() as client:
        frame = client.upsert_frame("Ships")
        client.upsert_body("Ships", records)
    assert frame + len(records) == len(json.dumps(sent(memory), separators=(",", ":")))


def _searches(client: HarperClient) -> None:
    client.search_by_value("Ships", "at", "x")


def test_a_search_names_what_it_looks_for(memory: MemoryHarper) -> None:
    memory.make("Ships", {"id": 1, "at": "b"}, {"id": 2, "at": "a"}, {"id": 3, "at": "c"})
    everything = ("*",)
    with memory.client() as client:
        assert client.search_by_id("Ships", [3, 9, 1], ("id",)) == [{"id": 3}, {"id": 1}]
        assert client.search_by_id("Ships", [2]) == [{"id": 2, "at": "a"}]
        _searches(client)
        assert sent(memory) == {
            "operation": "search_by_value",
            "database": "data",
            "table": "Ships",
            "attribute": "at",
            "value": "x",
            "get_attributes": ["*"],
        }
        newest = client.search_by_value("Ships", "at", "*", everything, limit=1, reverse=True)
        assert [row["id"] for row in newest] == [3]
        within = [Condition("at", "gelt", ["a", "c"])]
        found = client.search_by_conditions("Ships", within, ("id",), sort_by="at", limit=5)
        assert found == [{"id": 2}, {"id": 1}]
        assert sent(memory)["operator"] == "and"
        assert sent(memory)["sort"] == {"attribute": "at", "descending": False}
        found = client.search_by_conditions("Ships", within, ("id",), sort_by="at", descending=True)
        assert found == [{"id": 1}, {"id": 2}]
        client.search_by_conditions("Ships", within)
        assert not {"sort", "limit"} & set(sent(memory))
        with pytest.raises(ValueError, match="cannot look for null"):
            client.search_by_value("Ships", "at", None)


def test_an_error_of_a_search_names_its_table_and_its_cell(memory: MemoryHarper) -> None:
    with memory.client() as client, pytest.raises(HarperNotFound, match="cell here") as failed:
        client.search_by_conditions("Ships", [Condition("a", "equals", 1)], cell="here")
    assert "on table 'Ships'" in str(failed.value)


def test_only_threads_that_answer_requests_are_counted(memory: MemoryHarper) -> None:
    memory.threads = 3
    with memory.client() as client:
        assert client.server_threads() == 3
        assert sent(memory) == {"operation": "system_information", "attributes": ["threads"]}
        client.system_information()
        assert sent(memory) == {"operation": "system_information"}
        memory.refuses = lambda asked: (403, {"error": "no"})
        assert client.server_threads() is None


def test_a_write_without_an_answer_is_remembered_by_its_time(memory: MemoryHarper) -> None:
    memory.make("Ships")
    memory.refuses = lambda asked: (504, {"error": "gone"})
    with memory.client(clock=lambda: 77.0) as client:
        with pytest.raises(Exception, match="gone"):
            client.search_by_id("Ships", [1])
        assert client.last_unanswered_at is None
        with pytest.raises(Exception, match="gone"):
            client.delete("Ships", [1])
        assert client.last_unanswered_at == 77.0

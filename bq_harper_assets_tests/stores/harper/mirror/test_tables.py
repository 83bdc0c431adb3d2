"""The sync's own tables: all there after a table's first run, whoever else makes them."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bq_harper_assets.contract import identifiers
from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.tables import (
    AUDITS,
    LOCKS,
    MIRROR_TABLES,
    look_at_system_tables,
    make_system_tables,
)
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.harper_clients import admin

PAGE = Path(__file__).parents[4] / "docs" / "validation.md"
RACERS = 10


@pytest.fixture
def empty(harper_connection: HarperConnection) -> Iterator[HarperConnection]:
    """A Harper without any of them; other tests find them made anew."""
    drop_system_tables(harper_connection)
    yield harper_connection
    drop_system_tables(harper_connection)


def drop_system_tables(connection: HarperConnection) -> None:
    """As if nothing was ever synced to this Harper."""
    for table in MIRROR_TABLES:
        admin(connection, "drop_table", database="data", table=table.name)


def assert_as_declared(connection: HarperConnection) -> None:
    """Each has the attributes, types and indexes that it is declared with."""
    with HarperClient(connection) as harper:
        for table in MIRROR_TABLES:
            found = harper.describe_table(table.name)
            assert found is not None, table.name
            key = next(iter(table.types))
            assert found.primary_key == key
            assert {(each.name, each.type, each.indexed) for each in found.attributes} == {
                (name, type_, name in table.indexed) for name, type_ in table.types.items()
            }


@pytest.mark.harper
@pytest.mark.promise("A11")
def test_ten_first_runs_at_once_end_with_all_tables_as_declared(empty: HarperConnection) -> None:
    with HarperClient(empty) as harper, ThreadPoolExecutor(RACERS) as pool:
        told = list(pool.map(lambda _: make_system_tables(harper), range(RACERS)))
    assert told == [()] * RACERS
    assert_as_declared(empty)


@pytest.mark.harper
@pytest.mark.promise("A11")
def test_one_that_cannot_be_made_is_told_and_the_others_are_made(empty: HarperConnection) -> None:
    with FaultProxy(empty.url) as proxy:
        proxy.on(Answer(403, {"error": "no"}), operation="create_table", table=AUDITS.name)
        through = empty.model_copy(update={"url": proxy.url})
        with HarperClient(through, retry=RetryPolicy(max_retries=0)) as harper:
            (told,) = make_system_tables(harper)
            states = {table.name: table.state for table in look_at_system_tables(harper)}
            assert make_system_tables(harper) == ()  # the next one makes up for it
    assert told.startswith(
        "Harper's table SyncAudit, which only shows what the ledger knows, could not be made: "
    )
    assert told.endswith(". Syncs do not need it, and the next copy to it tries again")
    assert states.pop(AUDITS.name) == "missing"
    assert set(states.values()) == {"present"}
    assert_as_declared(empty)


@pytest.mark.harper
def test_a_role_that_may_not_create_is_not_asked_to_where_all_are_there(
    empty: HarperConnection,
) -> None:
    with FaultProxy(empty.url) as proxy:
        with HarperClient(empty.model_copy(update={"url": proxy.url})) as harper:
            make_system_tables(harper)
            made = len(proxy.seen(operation="create_table"))
            make_system_tables(harper)
        assert (made, len(proxy.seen(operation="create_table"))) == (5, 5)


@pytest.mark.harper
@pytest.mark.promise("A11")
def test_a_table_of_another_layout_is_seen_with_what_it_lacks(empty: HarperConnection) -> None:
    with HarperClient(empty) as harper:
        harper.create_table(
            LOCKS.name, "lockId", [Attribute(name="lockId"), Attribute(name="nodeId")]
        )
        (lock,) = [t for t in look_at_system_tables(harper) if t.name == LOCKS.name]
    assert (lock.state, lock.version) == ("other layout", LOCKS.version)
    assert set(lock.attributes) == {"lockId", "nodeId"}
    assert lock.lacking == ("acquiredAt", "expiresAt")


@pytest.mark.harper
def test_one_that_harper_does_not_speak_of_is_unknown_with_the_reason(
    empty: HarperConnection,
) -> None:
    with FaultProxy(empty.url) as proxy:
        proxy.on(Answer(400, {"error": "not now"}), operation="describe_table", table=AUDITS.name)
        through = empty.model_copy(update={"url": proxy.url})
        with HarperClient(through, retry=RetryPolicy(max_retries=0)) as harper:
            found = {table.name: table for table in look_at_system_tables(harper)}
    unknown = found.pop(AUDITS.name)
    assert (unknown.state, "not now" in unknown.problem) == ("unknown", True)
    assert {table.state for table in found.values()} == {"missing"}


def test_no_contract_can_take_the_name_of_one() -> None:
    assert sorted(identifiers.RESERVED_TARGETS) == sorted(table.name for table in MIRROR_TABLES)


def test_the_page_names_every_attribute_of_each() -> None:
    page = PAGE.read_text(encoding="utf-8")
    kept = page.partition("\n## What is kept\n")[2].partition("\n## ")[0]
    names = "|".join(table.name for table in MIRROR_TABLES)
    parts = re.split(rf"`({names})`", kept)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(told) == [table.name for table in MIRROR_TABLES]
    for table in MIRROR_TABLES:
        assert set(table.types) <= set(re.findall(r"`(\w+)`", told[table.name])), table.name

"""The table is there as planned before any row is, whoever else makes it at the same time."""

import subprocess
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets.retries.retry import Call
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.harper.answers import Attribute, Creation, TableDescription
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import HarperIndexing
from bq_harper_assets.stores.harper.schema import attributes_of, harper_plan
from bq_harper_assets.stores.harper.table.ensure_table import (
    NothingToAdopt,
    TableConflict,
    TableNotEnsured,
    ensure_table,
)
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets_tests.conftest import PROJECT_ROOT, environ_without_settings
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.schema.samples import contract, schema
from bq_harper_assets_tests.stores.harper_clients import admin
from bq_harper_assets_tests.stores.racing_tables import plan_with, race, racing, said_wrong

RACERS = 12


@pytest.fixture
def client(harper_connection: HarperConnection) -> Iterator[HarperClient]:
    with HarperClient(harper_connection) as client:
        yield client


@pytest.fixture
def table() -> str:
    return f"T{uuid.uuid4().hex[:12]}"


def indexed(client: HarperClient, table: str) -> set[str]:
    found = client.describe_table(table)
    assert found is not None
    return {attribute.name for attribute in found.attributes if attribute.indexed}


@pytest.mark.harper
@pytest.mark.promise("A2", "A8", "C1")
def test_a_missing_table_is_created_with_exactly_the_planned_indexes(
    client: HarperClient, table: str
) -> None:
    source = schema(
        Column(name="mmsi", kind=Kind.INT64),
        Column(name="user_id", kind=Kind.STRING),
        Column(name="note", kind=Kind.STRING),
    )
    plan = harper_plan(contract(target_table=table, key="mmsi"), source)
    ensured = ensure_table(client, plan)
    assert (ensured.action, ensured.unindexed) == ("created", ())
    found = client.describe_table(table)
    assert found is not None
    assert found.primary_key == "id"
    assert {(each.name, each.type, each.indexed) for each in found.attributes} == {
        ("id", "Long", False),
        ("event_time", "String", True),
        ("mmsi", "Long", False),
        ("user_id", "String", True),
        ("note", "String", False),
        ("_syncedAt", "String", False),
        ("_batch", "Long", False),
        ("_hash", "String", False),
    }
    assert ensure_table(client, plan).action is TableAction.UP_TO_DATE


@pytest.mark.harper
@pytest.mark.promise("C1")
def test_a_range_of_the_timestamp_returns_the_exact_set(client: HarperClient, table: str) -> None:
    ensure_table(client, plan_with(table))
    times = [f"2026-11-16T07:{minute:02d}:00.{micros:06d}Z" for minute in range(4)
             for micros in (0, 1, 999_999)]  # fmt: skip
    client.upsert(table, [{"id": str(at), "event_time": time} for at, time in enumerate(times)])
    start, end = "2026-11-16T07:01:00.000000Z", "2026-11-16T07:03:00.000000Z"
    rows = client.search_by_conditions(
        table, [Condition("event_time", "gelt", [start, end])], ["event_time"]
    )
    assert sorted(row["event_time"] for row in rows) == times[3:9]


@pytest.mark.harper
@pytest.mark.promise("A2")
def test_a_new_column_that_must_be_searched_is_added_and_old_rows_are_found_by_it(
    client: HarperClient, table: str
) -> None:
    assert ensure_table(client, plan_with(table, "a_id")).action is TableAction.CREATED
    client.upsert(table, [{"id": "1", "b_id": 7}])
    ensured = ensure_table(client, plan_with(table, "a_id", "b_id"))
    assert (ensured.action, ensured.added) == (TableAction.MIGRATED, ("b_id",))
    assert indexed(client, table) == {"event_time", "a_id", "b_id"}
    assert [row["id"] for row in client.search_by_value(table, "b_id", 7)] == ["1"]
    assert ensure_table(client, plan_with(table, "a_id", "b_id")).action == "up_to_date"


@pytest.mark.harper
@pytest.mark.promise("F4")
@pytest.mark.parametrize("came_later", [True, False])
def test_an_index_that_is_asked_for_later_is_built_unless_the_table_was_made_with_the_column(
    client: HarperClient, table: str, came_later: bool
) -> None:
    note, plain = Column(name="note", kind=Kind.STRING), contract(target_table=table)
    made = harper_plan(plain, schema() if came_later else schema(note))
    ensure_table(client, made)
    second = harper_plan(plain, schema(note), made.version)
    ensure_table(client, second)
    client.upsert(table, [{"id": "1", "note": "x"}])
    indexing = contract(target_table=table, schema_overrides={"note": {"indexed": True}})
    ensured = ensure_table(client, harper_plan(indexing, schema(note), second.version))
    assert ensured.added == (("note",) if came_later else ())
    assert ensured.unindexed == (() if came_later else ("note",))
    assert ("note" in indexed(client, table)) is came_later
    assert [row["id"] for row in client.search_by_value(table, "note", "x")] == ["1"]


@pytest.mark.harper
def test_columns_that_are_gone_or_need_no_index_change_nothing(
    client: HarperClient, table: str
) -> None:
    ensure_table(client, plan_with(table, "a_id", "b_id"))
    before = client.describe_table(table)
    assert ensure_table(client, plan_with(table, "a_id", "note")).action == "up_to_date"
    assert client.describe_table(table) == before


@pytest.mark.harper
@pytest.mark.promise("C4")
def test_a_table_made_without_attributes_is_told_to_index_everything(
    harper_connection: HarperConnection, client: HarperClient, table: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    make_schemaless(harper_connection, table)
    ensured = ensure_table(client, plan_with(table, "a_id"))
    assert ensured.action is TableAction.UP_TO_DATE
    assert "Harper indexes every one" in caplog.text
    client.upsert(table, [{"id": "1", "a_id": 7, "note": "x"}])
    assert {"a_id", "note"} <= indexed(client, table)


@pytest.mark.harper
def test_an_attribute_declared_without_an_index_is_told_to_have_none(
    client: HarperClient, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    ensure_table(client, plan_with(table, "note"))
    plan = harper_plan(
        contract(target_table=table, schema_overrides={"note": {"indexed": True}}),
        schema(Column(name="note", kind=Kind.INT64)),
    )
    ensured = ensure_table(client, plan)
    assert (ensured.action, ensured.unindexed) == (TableAction.UP_TO_DATE, ("note",))
    assert "note has no index" in caplog.text


@pytest.mark.harper
def test_a_table_that_cannot_hold_the_rows_is_left_alone(client: HarperClient, table: str) -> None:
    client.create_table(
        table,
        "key",
        [Attribute(name="key"), Attribute(name="event_time", type="Date"), Attribute(name="a_id")],
    )
    before = client.describe_table(table)
    with pytest.raises(TableConflict) as caught:
        ensure_table(client, plan_with(table, "a_id"))
    assert str(caught.value) == (
        f"Harper's table {table} cannot hold the rows of this contract:\n"
        "  - its primary key is key, and the rows' is id\n"
        "  - event_time is Date there, and the rows hold String\n"
        "Nothing was changed. Name another targetTable, or drop this table yourself if nobody needs"
        " it, then run it again"
    )
    assert client.describe_table(table) == before


@pytest.mark.harper
@pytest.mark.promise("A3")
def test_ten_threads_that_create_the_same_table_at_once_end_with_one_schema(
    harper_connection: HarperConnection, client: HarperClient, table: str
) -> None:
    plan = plan_with(table, "a_id")

    def ensure(_: int) -> TableAction:
        with HarperClient(harper_connection) as own:
            return ensure_table(own, plan).action

    with ThreadPoolExecutor(10) as pool:
        actions = Counter(pool.map(ensure, range(10)))
    assert set(actions) <= {TableAction.CREATED, TableAction.UP_TO_DATE}
    assert actions[TableAction.CREATED] >= 1
    assert indexed(client, table) == {"event_time", "a_id"}


@pytest.fixture(scope="module")
def two_threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackAddresses]:
    """A Harper whose threads each have their own idea of what tables there are."""
    stack = LocalStack(
        PROJECT_ROOT,
        tmp_path_factory.mktemp("two-threads"),
        preferred={},
        threads=2,
        environ=environ_without_settings(),
    )
    try:
        yield stack.up(print, servers=["harper"])
    finally:
        stack.purge(print)


@pytest.fixture
def racers(
    two_threads: StackAddresses, table: str, tmp_path: Path
) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that all have a connection to the same Harper, and wait for their columns."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    with racing(two_threads, table, url, RACERS) as started:
        yield started


@pytest.mark.harper
@pytest.mark.promise("A4")
def test_twelve_processes_make_one_table_and_follow_two_changes_of_it_without_losing_a_column(
    two_threads: StackAddresses, table: str, racers: list[subprocess.Popen[str]]
) -> None:
    first = race(racers, lambda racer: [f"c{number}_id" for number in range(racer + 1)])
    assert first["created"] == 1
    assert set(first) <= {"created", "migrated", "up_to_date"}

    # Some see the first change, some the second, some neither.
    everything = [f"c{number}_id" for number in range(RACERS)]
    second = race(racers, lambda racer: [*everything, *["d_id", "e_id"][: racer % 3]])
    third = race(racers, lambda racer: [*everything, f"f{racer}_id"])

    assert set(second) | set(third) <= {"migrated", "up_to_date"}
    expected = {"event_time", *everything, "d_id", "e_id", *(f"f{n}_id" for n in range(RACERS))}
    password = two_threads.harper_password_file.read_text(encoding="ascii")
    connection = HarperConnection(
        url=two_threads.harper_url, user="admin", password=SecretStr(password)
    )
    for _ in range(8):  # each on a connection of its own, so that both threads are asked
        with HarperClient(connection) as client:
            assert indexed(client, table) == expected
    assert said_wrong(racers) == [""] * RACERS


class ScriptedTable:
    """Harper's answers in an order that no server gives on request."""

    def __init__(self, looks: Sequence[TableDescription | None], *, creates: bool) -> None:
        self.looks = list(looks)
        self.creates = creates
        self.asked: list[str] = []
        self.declared: Sequence[Attribute] = ()

    def describe_table(self, table: str) -> TableDescription | None:
        self.asked.append("describe")
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def create_table(
        self, table: str, primary_key: str, attributes: Sequence[Attribute]
    ) -> Creation:
        self.asked.append("create")
        self.declared = attributes
        return Creation(self.creates, "answered 200" if self.creates else "answered 400: it exists")

    def create_attribute(self, table: str, name: str) -> Creation:
        self.asked.append(f"add {name}")
        return Creation(True, "answered 200")

    def search_by_value(self, *args: object, **more: object) -> list[dict[str, object]]:
        return []

    def search_by_conditions(self, *args: object, **more: object) -> list[dict[str, object]]:
        return []


PLAN = plan_with("Orders", "a_id", "b_id")
WHOLE = TableDescription(
    database="data",
    name="Orders",
    primary_key="id",
    attributes=tuple(
        Attribute(name=each.name, type=each.type, indexed=each.indexed)
        for each in attributes_of(PLAN)
    ),
    schema_defined=True,
    audit=True,
    record_count=0,
    is_count_exact=True,
)
WITHOUT_B = replace(WHOLE, attributes=tuple(a for a in WHOLE.attributes if a.name != "b_id"))
LATE_B = Attribute(name="b_id", type=None, indexed=True)  # create_attribute gives it no type
WITH_LATE_B = replace(WITHOUT_B, attributes=(*WITHOUT_B.attributes, LATE_B))


@pytest.mark.harper
@pytest.mark.promise("A3")
def test_it_gives_up_after_three_attempts_and_names_table_and_harpers_own_answer(
    harper_connection: HarperConnection, client: HarperClient, table: str
) -> None:
    client.create_table(table, "id", [Attribute(name="id", type="String")])
    waits: list[float] = []
    with FaultProxy(harper_connection.url) as proxy:
        # As by a thread of the server that never hears of it; creates are answered by Harper.
        missing = Answer(404, {"error": f"Table 'data.{table}' does not exist"})
        proxy.on(missing, operation="describe_table", table=table, times=100)
        through = harper_connection.model_copy(update={"url": proxy.url})
        with HarperClient(through) as hasty, pytest.raises(TableNotEnsured) as caught:
            ensure_table(hasty, plan_with(table), sleep=waits.append, chance=lambda: 0.0)
        sent = [each.operation for each in proxy.seen(table=table)]
    assert sent == ["describe_table", *["describe_table", "create_table"] * 3, "describe_table"]
    assert waits == pytest.approx([0.1, 0.2, 0.3])
    assert str(caught.value) == (
        f"failed to ensure table {table} after 3 attempts; Harper's last answer: create_table"
        f" answered 400: Table '{table}' already exists in 'data', and describe_table finds no"
        " table. No row was written and nothing was dropped; see `bqh doctor`, then run it again"
    )


@pytest.mark.harper
@pytest.mark.promise("A3")
def test_an_attribute_that_harper_says_it_has_and_never_shows_is_given_up_with_its_answer(
    harper_connection: HarperConnection, client: HarperClient, table: str
) -> None:
    ensure_table(client, plan_with(table, "a_id"))
    stale = described_by(harper_connection, table)
    client.create_attribute(table, "b_id")
    with FaultProxy(harper_connection.url) as proxy:
        proxy.on(Answer(200, stale), operation="describe_table", table=table, times=100)
        through = harper_connection.model_copy(update={"url": proxy.url})
        with HarperClient(through) as hasty, pytest.raises(TableNotEnsured) as caught:
            ensure_table(hasty, plan_with(table, "a_id", "b_id"), sleep=lambda _: None)
        assert len(proxy.seen(operation="create_attribute", table=table)) == 3
    assert (
        f"Harper's last answer: create_attribute answered 400: attribute 'b_id' already exists in"
        f" data.{table}, and describe_table shows no index on b_id." in str(caught.value)
    )


def test_waits_are_jittered() -> None:
    waits: list[float] = []
    with pytest.raises(TableNotEnsured):
        ensure_table(
            ScriptedTable([None], creates=False), PLAN, sleep=waits.append, chance=lambda: 1.0
        )
    assert waits == pytest.approx([0.15, 0.3, 0.45])


def test_half_the_chance_makes_a_wait_a_quarter_longer() -> None:
    waits: list[float] = []
    with pytest.raises(TableNotEnsured) as caught:
        ensure_table(
            ScriptedTable([None], creates=False), PLAN, sleep=waits.append, chance=lambda: 0.5
        )
    assert waits == pytest.approx([0.125, 0.25, 0.375])
    assert caught.value.table == "Orders"


def test_a_table_that_one_thread_has_created_is_not_created_again_by_a_slower_one() -> None:
    harper = ScriptedTable([None, None, None, WHOLE], creates=True)
    ensured = ensure_table(harper, PLAN, sleep=lambda _: None)
    assert ensured.action is TableAction.CREATED
    assert harper.asked.count("create") == 1


@pytest.mark.promise("A4")
def test_an_attribute_that_harper_lost_after_saying_yes_is_added_again() -> None:
    harper = ScriptedTable([WITHOUT_B, WITHOUT_B, WITHOUT_B, WHOLE], creates=True)
    ensured = ensure_table(harper, PLAN, sleep=lambda _: None)
    assert (ensured.action, ensured.added) == (TableAction.MIGRATED, ("b_id",))
    assert harper.asked.count("add b_id") == 2


def test_a_table_that_was_created_is_told_as_created_though_an_attribute_was_lost() -> None:
    harper = ScriptedTable([None, None, WITHOUT_B, WHOLE], creates=True)
    ensured = ensure_table(harper, PLAN, sleep=lambda _: None)
    assert (ensured.action, ensured.added) == (TableAction.CREATED, ("b_id",))


def test_an_attribute_that_never_stays_is_an_error_that_names_it() -> None:
    with pytest.raises(TableNotEnsured, match="shows no index on b_id"):
        ensure_table(ScriptedTable([WITHOUT_B], creates=True), PLAN, sleep=lambda _: None)


def test_the_lock_is_taken_only_for_changes_and_what_changed_meanwhile_is_seen() -> None:
    entered: list[str] = []

    @contextmanager
    def alone() -> Iterator[None]:
        entered.append("locked")
        yield

    assert ensure_table(ScriptedTable([WHOLE], creates=True), PLAN, alone=alone).action == (
        TableAction.UP_TO_DATE
    )
    assert entered == []
    harper = ScriptedTable([None, WHOLE], creates=True)
    assert ensure_table(harper, PLAN, alone=alone).action is TableAction.UP_TO_DATE
    assert entered == ["locked"]
    assert "create" not in harper.asked


class TableBeingIndexed(ScriptedTable):
    """Harper says `so many` times that it still builds the index on b_id."""

    so_many = 3

    def create_attribute(self, table: str, name: str) -> Creation:
        super().create_attribute(table, name)
        return Creation(False, "answered 400: it exists")

    def search_by_conditions(self, *args: object, **more: object) -> list[dict[str, object]]:
        self.asked.append("search")
        if self.asked.count("search") <= self.so_many:
            raise HarperIndexing(Call("Harper", "search_by_conditions", "Orders"), "builds", 503)
        return []


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([WITH_LATE_B], id="before the first look"),
        pytest.param([WITHOUT_B, WITH_LATE_B], id="between the first look and the lock"),
        pytest.param([WITHOUT_B, WITHOUT_B, WITH_LATE_B], id="just before its own request"),
    ],
)
def test_an_index_that_another_run_has_added_is_awaited_too(
    looks: Sequence[TableDescription],
) -> None:
    harper, waits = TableBeingIndexed(looks, creates=True), list[float]()
    ensure_table(harper, PLAN, sleep=waits.append, chance=lambda: 0.0)
    assert harper.asked.count("search") == TableBeingIndexed.so_many + 1
    assert len(waits) >= TableBeingIndexed.so_many - 1


def test_a_role_that_may_not_see_attributes_is_believed() -> None:
    harper = ScriptedTable([replace(WHOLE, attributes=())], creates=True)
    assert ensure_table(harper, PLAN).action is TableAction.UP_TO_DATE
    assert harper.asked == ["describe"]


def test_a_table_to_adopt_is_never_created() -> None:
    harper = ScriptedTable([None], creates=True)
    with pytest.raises(NothingToAdopt, match=r"no table Orders, .* so it is not created") as caught:
        ensure_table(harper, PLAN, adopted=True)
    assert (caught.value.table, harper.asked) == ("Orders", ["describe"])


@pytest.mark.parametrize("adopted", [False, True])
def test_a_table_that_does_not_fit_is_told_with_its_own_way_out(adopted: bool) -> None:
    found = replace(WHOLE, primary_key="key")
    with pytest.raises(TableConflict) as caught:
        ensure_table(ScriptedTable([found], creates=True), PLAN, adopted=adopted)
    way_out = (
        "change it where it is declared, then type: bqh adopt Orders"
        if adopted
        else "drop this table yourself if nobody needs it, then run it again"
    )
    assert caught.value.table == "Orders"
    assert str(caught.value) == (
        "Harper's table Orders cannot hold the rows of this contract:\n"
        "  - its primary key is key, and the rows' is id\n"
        f"Nothing was changed. Name another targetTable, or {way_out}"
    )


def test_an_adopted_table_gets_only_what_rows_are_read_back_by() -> None:
    names = ("_hash", "b_id", "_batch")
    fewer = replace(WHOLE, attributes=tuple(a for a in WHOLE.attributes if a.name not in names))
    late = Attribute(name="_hash", type=None, indexed=True)
    after = replace(fewer, attributes=(*fewer.attributes, late))
    harper = ScriptedTable([fewer, fewer, after], creates=True)
    ensured = ensure_table(harper, PLAN, adopted=True, sleep=lambda _: None)
    assert (ensured.action, ensured.added) == (TableAction.MIGRATED, ("_hash",))
    assert ensured.unindexed == ("b_id",)
    assert [asked for asked in harper.asked if asked.startswith("add")] == ["add _hash"]


@pytest.mark.parametrize("adopted", [False, True])
def test_only_a_table_to_adopt_must_have_its_time_indexed(adopted: bool) -> None:
    plain = tuple(replace(a, indexed=False) for a in WHOLE.attributes)
    harper = ScriptedTable([replace(WHOLE, attributes=plain)], creates=True)
    if adopted:
        with pytest.raises(TableConflict, match="event_time is declared without an index"):
            ensure_table(harper, PLAN, adopted=True)
    else:
        assert ensure_table(harper, PLAN).unindexed == ("event_time", "a_id", "b_id")


def test_a_new_table_is_declared_as_planned() -> None:
    harper = ScriptedTable([None, None, WHOLE], creates=True)
    ensure_table(harper, PLAN, sleep=lambda _: None)
    assert harper.declared == WHOLE.attributes
    # One that another has made meanwhile was not made by this run.
    others = ScriptedTable([None, None, WHOLE], creates=False)
    assert ensure_table(others, PLAN, sleep=lambda _: None).action is TableAction.UP_TO_DATE


def test_what_harper_will_never_index_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def told(found: TableDescription) -> tuple[tuple[str, ...], str]:
        caplog.clear()
        ensured = ensure_table(ScriptedTable([found], creates=True), PLAN)
        return ensured.unindexed, caplog.text

    assert told(WHOLE) == ((), "")
    plain = tuple(replace(a, indexed=a.indexed and a.name != "b_id") for a in WHOLE.attributes)
    unindexed, text = told(replace(WHOLE, attributes=plain))
    assert unindexed == ("b_id",)
    assert "b_id has no index, and Harper adds none to a declared attribute" in text
    for attributes in (plain, ()):
        schemaless = replace(WHOLE, attributes=attributes, schema_defined=False)
        unindexed, text = told(schemaless)
        assert unindexed == ()
        assert "was made without attributes: Harper indexes every one" in text


def described_by(connection: HarperConnection, table: str) -> bytes:
    """Harper's description of the table as it is now, for a proxy to tell later."""
    answer = admin(connection, "describe_table", database="data", table=table)
    answer.raise_for_status()
    return answer.content


def make_schemaless(connection: HarperConnection, table: str) -> None:
    """As a user might, by hand: our own client always sends attributes."""
    admin(connection, "create_table", table=table, primary_key="id").raise_for_status()

"""An index that was added is used only once it finds the rows that are there."""

import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries import waiting
from bq_harper_assets.retries.breaker import Breakers
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import HarperIndexing, HarperRefused
from bq_harper_assets.stores.harper.table.ensure_table import ensure_table
from bq_harper_assets.stores.harper.table.index_parity import PATIENCE_S, IndexNotReady
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.harper_clients import Clock, Make, admin, clients_of
from bq_harper_assets_tests.stores.racing_tables import plan_with

pytestmark = pytest.mark.harper
ROWS, PER_REQUEST = 60_000, 5_000
INDEXING = Answer(503, {"error": '"b_id" is not indexed yet, can not search for this attribute'})

UNKNOWN = Answer(400, {"error": "unknown attribute 'b_id'"})


@pytest.fixture
def table() -> str:
    return f"T{uuid.uuid4().hex[:12]}"


@pytest.fixture
def make(harper_connection: HarperConnection) -> Iterator[Make]:
    with clients_of(harper_connection) as make:
        yield make


@pytest.fixture
def proxy(harper_connection: HarperConnection) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy: FaultProxy, harper_connection: HarperConnection, make: Make) -> HarperClient:
    """Without retries of its own."""
    through = harper_connection.model_copy(update={"url": proxy.url})
    return make(through, retry=RetryPolicy(max_retries=0))


def rows_of(client: HarperClient, table: str) -> None:
    """A table without b_id, whose rows have one all the same."""
    ensure_table(client, plan_with(table, "a_id"))
    client.upsert(table, [{"id": f"r{n}", "b_id": n % 7} for n in range(40)])


class Passing(Clock):
    """Time that passes only in waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.mark.promise("A7")
def test_every_row_of_a_large_table_is_found_by_an_index_as_soon_as_it_is_called_added(
    make: Make, table: str
) -> None:
    client = make(retry=RetryPolicy(max_retries=0))
    client.create_table(table, "id", [Attribute(name="id", type="String")])
    for first in range(0, ROWS, PER_REQUEST):
        numbers = range(first, first + PER_REQUEST)
        client.upsert(
            table,
            [
                {"id": f"r{n:06}", "event_time": f"2026-11-16T00:00:00.{n:06}Z", "_hash": f"h{n}"}
                for n in numbers
            ],
        )
    ensured = ensure_table(client, plan_with(table), adopted=True)
    assert (ensured.action, ensured.added) == (TableAction.MIGRATED, ("event_time", "_hash"))
    whole = Condition("event_time", "gelt", ["2026-11-16T00:00:00", "2026-11-17T00:00:00"])
    assert len(client.search_by_conditions(table, [whole], ("id",))) == ROWS
    last = client.search_by_conditions(table, [Condition("_hash", "equals", f"h{ROWS - 1}")])
    assert [row["id"] for row in last] == [f"r{ROWS - 1:06}"]


@pytest.mark.promise("A7")
@pytest.mark.parametrize(
    "answer",
    [
        INDEXING,
        UNKNOWN,
        Answer(200, json.dumps([{"id": "r0"}])),
    ],
    ids=["still built", "unknown to the thread", "found in part"],
)
def test_an_index_that_is_not_ready_is_waited_for_and_the_wait_is_told(
    make: Make,
    proxy: FaultProxy,
    proxied: HarperClient,
    table: str,
    answer: Answer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows_of(make(), table)
    proxy.on(answer, operation="search_by_conditions", table=table, times=4)
    time = Passing()
    with caplog.at_level(logging.WARNING):
        ensured = ensure_table(
            proxied, plan_with(table, "a_id", "b_id"), sleep=time.sleep, clock=time
        )
    assert ensured.added == ("b_id",)
    assert time.waits[1:] == pytest.approx([0.2, 0.4, 0.8, 1.6])  # the first is for the attribute
    told = [record for record in caplog.records if record.name.endswith("index_parity")]
    assert [record.getMessage() for record in told] == [
        f"table {table}: Harper builds the index on b_id; waited 1 s so far, at most 900"
    ]
    found = make().search_by_value(table, "b_id", 3, ("id",))
    assert {row["id"] for row in found} == {f"r{n}" for n in range(40) if n % 7 == 3}


@pytest.mark.promise("A7")
@pytest.mark.parametrize(
    "answer", [INDEXING, UNKNOWN], ids=["still built", "unknown to the thread"]
)
def test_the_index_on_a_column_that_no_row_has_yet_is_waited_for_too(
    make: Make, proxy: FaultProxy, proxied: HarperClient, table: str, answer: Answer
) -> None:
    ensure_table(make(), plan_with(table, "a_id"))
    make().upsert(table, [{"id": f"r{n}", "a_id": n} for n in range(40)])
    proxy.on(answer, operation="search_by_conditions", table=table, times=4)
    time = Passing()
    ensure_table(proxied, plan_with(table, "a_id", "b_id"), sleep=time.sleep, clock=time)
    assert time.waits[1:] == pytest.approx([0.2, 0.4, 0.8, 1.6])
    assert make(retry=RetryPolicy(max_retries=0)).search_by_value(table, "b_id", 3) == []


@pytest.mark.promise("A7")
def test_who_comes_back_after_an_index_was_not_ready_waits_for_it_again(
    make: Make, proxy: FaultProxy, proxied: HarperClient, table: str
) -> None:
    rows_of(make(), table)
    plan, time = plan_with(table, "a_id", "b_id"), Passing()
    proxy.on(INDEXING, operation="search_by_conditions", table=table, times=1_000)
    for _ in range(2):
        with pytest.raises(IndexNotReady):
            ensure_table(proxied, plan, sleep=time.sleep, clock=time)
    proxy.heal()
    before = len(proxy.seen(operation="search_by_conditions", table=table))
    assert ensure_table(proxied, plan, sleep=time.sleep).action is TableAction.UP_TO_DATE
    # One for the attribute that was added; those that the table was made with are not asked for.
    assert len(proxy.seen(operation="search_by_conditions", table=table)) == before + 1


def test_the_wait_for_an_index_stands_on_the_board(
    make: Make,
    proxy: FaultProxy,
    proxied: HarperClient,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "TOLD_AFTER_S", 0.0)
    rows_of(make(), table)
    proxy.on(INDEXING, operation="search_by_conditions", table=table, times=2)
    heard: list[str] = []
    with WAITS.listen(heard.append):
        plan = plan_with(table, "a_id", "b_id")
        ensure_table(proxied, plan, sleep=lambda _: WAITS.look(), clock=Passing())
    [line] = {each for each in heard if "to build the index" in each}
    assert line.startswith(f"waits for Harper to build the index on b_id of table '{table}', since")
    assert "; gives up at " in line


@pytest.mark.promise("A7")
def test_an_index_that_never_gets_ready_is_an_error_that_names_it_and_what_to_do(
    make: Make, proxy: FaultProxy, proxied: HarperClient, table: str
) -> None:
    rows_of(make(), table)
    proxy.on(INDEXING, operation="search_by_conditions", table=table, times=1_000)
    time = Passing()
    with pytest.raises(IndexNotReady) as caught:
        ensure_table(proxied, plan_with(table, "a_id", "b_id"), sleep=time.sleep, clock=time)
    assert sum(time.waits) < PATIENCE_S + 60
    assert str(caught.value) == (
        f"the index on b_id of Harper's table {table} was not ready after"
        f" {caught.value.waited_s:.0f} s: rows that are there are not found by it. No row was"
        " written and nothing was dropped; Harper goes on building it. Next: run the same command"
        " again later; if it never ends, restart Harper, then: bqh doctor"
    )


@pytest.mark.promise("A7")
def test_an_index_that_another_run_added_between_the_first_look_and_the_lock_is_waited_for(
    make: Make, proxy: FaultProxy, proxied: HarperClient, table: str
) -> None:
    rows_of(make(), table)
    proxy.on(INDEXING, operation="search_by_conditions", table=table, times=4)

    @contextmanager
    def after_another() -> Iterator[None]:
        make().create_attribute(table, "b_id")
        yield

    time, plan = Passing(), plan_with(table, "a_id", "b_id")
    ensured = ensure_table(proxied, plan, alone=after_another, sleep=time.sleep, clock=time)
    assert (ensured.action, ensured.added) == (TableAction.UP_TO_DATE, ())
    assert proxy.seen(operation="create_attribute", table=table) == []
    assert len(time.waits) == 3  # the first of the four told that it is still built


@pytest.mark.promise("A7")
def test_an_index_that_harper_says_is_there_already_is_waited_for_too(
    make: Make, proxy: FaultProxy, proxied: HarperClient, table: str,
    harper_connection: HarperConnection,
) -> None:  # fmt: skip
    rows_of(make(), table)
    before = admin(harper_connection, "describe_table", database="data", table=table).content
    make().create_attribute(table, "b_id")
    # As by a thread that has not heard of it, at the first look and at that under the lock.
    proxy.on(Answer(200, before), operation="describe_table", table=table, times=2)
    proxy.on(INDEXING, operation="search_by_conditions", table=table, times=4)
    time = Passing()
    ensure_table(proxied, plan_with(table, "a_id", "b_id"), sleep=time.sleep, clock=time)
    assert len(proxy.seen(operation="create_attribute", table=table)) == 1
    assert time.waits[1:] == pytest.approx([0.2, 0.4, 0.8, 1.6])


def test_an_error_that_is_not_about_the_index_is_not_waited_for(
    make: Make, proxy: FaultProxy, proxied: HarperClient, table: str
) -> None:
    rows_of(make(), table)
    proxy.on(Answer(400, {"error": "no"}), operation="search_by_conditions", table=table)
    with pytest.raises(HarperRefused, match="answered 400: no"):
        ensure_table(proxied, plan_with(table, "a_id", "b_id"), sleep=lambda _: None)


def test_a_search_that_meets_an_index_in_the_making_is_sent_again_and_opens_no_breaker(
    make: Make, proxy: FaultProxy, harper_connection: HarperConnection, table: str
) -> None:
    rows_of(make(), table)
    ensure_table(make(), plan_with(table, "a_id", "b_id"))
    through = harper_connection.model_copy(update={"url": proxy.url})
    proxy.on(INDEXING, operation="search_by_conditions", table=table, times=20)
    breakers = Breakers()
    client = make(through, retry=RetryPolicy(max_retries=0), breakers=breakers)
    wanted = [Condition("b_id", "equals", 3)]
    for _ in range(18):
        with pytest.raises(HarperIndexing, match="is not indexed yet"):
            client.search_by_conditions(table, wanted)
    patient = make(through, breakers=breakers)
    assert len(patient.search_by_conditions(table, wanted, ("id",))) == 6


def test_a_value_that_no_index_ever_finds_holds_nobody_up(make: Make, table: str) -> None:
    client = make()
    ensure_table(client, plan_with(table, "a_id"))
    client.upsert(table, [{"id": "r1", "b_id": "x" * 70 + "\1"}, {"id": "r2", "b_id": "y"}])
    time = Passing()
    ensured = ensure_table(client, plan_with(table, "a_id", "b_id"), sleep=time.sleep, clock=time)
    assert ensured.added == ("b_id",)
    assert sum(time.waits) < 60

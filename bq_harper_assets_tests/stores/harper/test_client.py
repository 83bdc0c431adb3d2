"""The client against a real Harper, with a fault proxy between them where things go wrong."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.retry import Call, RetryPolicy
from bq_harper_assets.stores.harper.answers import Creation, WriteCount, read_description
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import (
    HarperError,
    HarperNotFound,
    HarperRefused,
    HarperUnauthorized,
    HarperUnavailable,
)
from bq_harper_assets.stores.harper.transport import Timeouts
from bq_harper_assets_tests.fault_proxy import (
    CutAnswer,
    Fault,
    FaultProxy,
    NoAnswer,
    Reset,
    Stall,
)
from bq_harper_assets_tests.stores.harper_clients import (
    COLUMNS,
    ROWS,
    Make,
    admin,
    clients_of,
    direct_client,
)

pytestmark = pytest.mark.harper


@pytest.fixture(scope="module")
def direct(harper_connection: HarperConnection) -> Iterator[HarperClient]:
    with direct_client(harper_connection) as client:
        yield client


@pytest.fixture
def proxy(harper_connection: HarperConnection, direct: HarperClient) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


@pytest.fixture
def make(harper_connection: HarperConnection, proxy: FaultProxy) -> Iterator[Make]:
    """Clients that talk through the proxy."""
    with clients_of(harper_connection.model_copy(update={"url": proxy.url})) as make:
        yield make


@pytest.mark.promise("A6", "A8")
def test_a_table_is_made_described_filled_searched_and_emptied(direct: HarperClient) -> None:
    table = "ClientVerbs"
    assert direct.describe_table(table) is None
    assert direct.create_table(table, "id", COLUMNS).is_new
    again = direct.create_table(table, "id", COLUMNS)
    assert again == Creation(False, f"answered 400: Table '{table}' already exists in 'data'")
    assert direct.create_attribute(table, "port").is_new
    assert not direct.create_attribute(table, "port").is_new
    described = direct.describe_table(table)
    assert described is not None
    assert (described.database, described.primary_key) == ("data", "id")
    assert {a.name: (a.type, a.indexed) for a in described.attributes} == {
        "id": ("String", False),
        "at": ("String", True),
        "n": ("Float", False),
        "port": (None, True),
    }
    told = direct.describe_all()[table]
    assert read_description(Call("Harper", "describe_all"), told) == described
    rows = [{"id": f"r{n}", "at": f"2026-11-16T07:0{n}:00.000000Z", "n": n} for n in range(5)]
    assert direct.upsert(table, rows) == WriteCount(5)
    assert direct.upsert_body(table, b'[{"id":"r1","n":null}]') == WriteCount(1)
    assert direct.search_by_id(table, ["r1", "r9"], ["id", "n"]) == [{"id": "r1", "n": None}]
    newest = direct.search_by_value(table, "at", "*", ["id"], reverse=True, limit=1)
    assert newest == [{"id": "r4"}]
    span = Condition("at", "gelt", [rows[1]["at"], rows[3]["at"]])
    found = direct.search_by_conditions(table, [span], ["id"], sort_by="at", descending=True)
    assert found == [{"id": "r2"}, {"id": "r1"}]
    both = [span, Condition("n", "equals", 2)]
    assert direct.search_by_conditions(table, both, ["id"]) == [{"id": "r2"}]
    assert direct.delete(table, ["r0", "absent"]) == WriteCount(2)
    counted = direct.describe_table(table)
    assert counted is not None
    assert (counted.record_count, counted.is_count_exact) == (4, True)
    assert (direct.server_threads() or 0) >= 1


def test_what_harper_would_answer_wrongly_is_not_sent(make: Make, proxy: FaultProxy) -> None:
    client = make()
    with pytest.raises(ValueError, match="comparator 'ge'"):
        Condition("at", "ge", "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="null"):
        client.search_by_value(ROWS, "at", None)
    with pytest.raises(ValueError, match="Out of range"):
        client.upsert(ROWS, [{"id": "a", "n": float("nan")}])
    assert proxy.seen() == []


@pytest.mark.promise("I1")
@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda c: c.upsert("Nowhere", [{"id": "1"}]), HarperNotFound, "Table 'data.Nowhere'"),
        (lambda c: c.search_by_id("Nowhere", ["1"]), HarperNotFound, "Table 'data.Nowhere'"),
        (
            lambda c: c.search_by_conditions("Nowhere", [Condition("at", "equals", "x")]),
            HarperNotFound,
            "Table",
        ),
        (lambda c: c.create_attribute("Nowhere", "x"), HarperNotFound, "answered 500"),
        (lambda c: c.upsert(ROWS, [{"id": "1", "n": "abc"}]), HarperRefused, "must be a number"),
        (
            # A refused value is quoted by Harper, and must not be taken for Harper's own words.
            lambda c: c.upsert(ROWS, [{"id": "1", "n": "Table 'a' does not exist"}]),
            HarperRefused,
            "must be a number",
        ),
        (lambda c: c.upsert(ROWS, [{"id": "x" * 3000}]), HarperRefused, "Primary key size"),
        (lambda c: c.upsert_body(ROWS, b'[{"id":NaN}]'), HarperRefused, "not valid JSON"),
        (lambda c: c.upsert_body(ROWS, b"{}"), HarperRefused, "must be an array"),
        (lambda c: c.create_table("a/b", "id", []), HarperRefused, "forward slashes"),
        (lambda c: c.search_by_value(ROWS, "no", "x"), HarperRefused, "unknown attribute"),
    ],
)
def test_a_request_that_harper_refuses_is_sent_once(
    make: Make,
    proxy: FaultProxy,
    ask: Callable[[HarperClient], object],
    kind: type[HarperError],
    words: str,
) -> None:
    with pytest.raises(HarperRefused, match=words) as caught:
        ask(make())
    assert type(caught.value) is kind
    assert "Nothing of this request was applied" in str(caught.value)
    assert len(proxy.seen()) == 1


def test_a_search_that_hangs_ends_with_the_steps_deadline(make: Make, proxy: FaultProxy) -> None:
    proxy.on(Stall(), operation="search_by_conditions", times=9)
    client = make(
        retry=RetryPolicy(max_retries=5, initial_delay_s=0.1).within(timedelta(seconds=2))
    )
    began = time.monotonic()
    with pytest.raises(HarperUnavailable, match="gave no answer within 2 s") as ended:
        client.search_by_conditions(ROWS, [Condition("id", "equals", "a")])
    assert time.monotonic() - began < 20  # it was ten minutes for each try
    assert ended.value.is_out_of_time


@pytest.mark.promise("E4")
@pytest.mark.parametrize(
    "fault",
    [Reset("before"), Reset("inside"), Reset("after"), NoAnswer(), CutAnswer(), Stall()],
    ids=str,
)
def test_a_broken_connection_is_survived_and_applied_once(
    make: Make, proxy: FaultProxy, direct: HarperClient, fault: Fault
) -> None:
    row = {"id": str(fault), "n": 1, "at": "x" * 100_000}
    proxy.on(fault, operation="upsert")
    stalled = isinstance(fault, Stall)
    client = make(timeouts=Timeouts(5, 0.3 if stalled else 20))
    assert client.upsert(ROWS, [row]) == WriteCount(1)
    assert len(proxy.seen(operation="upsert")) == 2
    assert direct.search_by_id(ROWS, [row["id"]], ["id", "n", "at"]) == [row]


@pytest.mark.promise("A3")
def test_ten_clients_that_create_the_same_table_at_once_all_succeed(
    make: Make, direct: HarperClient
) -> None:
    clients = [make() for _ in range(10)]
    with ThreadPoolExecutor(10) as pool:
        made = list(pool.map(lambda c: c.create_table("ClientRace", "id", COLUMNS), clients))
    assert any(each.is_new for each in made)  # more than one if Harper has several threads
    described = direct.describe_table("ClientRace")
    assert described is not None
    assert {attribute.name for attribute in described.attributes} == {"id", "at", "n"}


def refused(connection: HarperConnection, doing: str, *rights: str) -> str:
    """What the user `reader` is told."""
    lines = "".join(f"\n  - {right}" for right in rights)
    return (
        f"{doing} failed: Harper at {connection.url} answered 403: This operation is not authorized"
        " due to role restrictions and/or invalid database items (for user 'reader'). Nothing was"
        f" changed. Next: give its role what is missing, then: bqh doctor{lines}"
    )


@pytest.mark.promise("E3", "A6")
def test_a_restricted_role_is_told_what_is_missing(
    make: Make, harper_connection: HarperConnection
) -> None:
    table = {"read": True, "insert": False, "update": False, "delete": False}
    tables = {ROWS: {**table, "attribute_permissions": []}}
    permission = {"super_user": False, "data": {"tables": tables}}
    user = {"username": "reader", "password": "päss", "role": "client_reader", "active": True}
    admin(harper_connection, "add_role", role="client_reader", permission=permission)
    admin(harper_connection, "add_user", **user)
    reader = make(
        harper_connection.model_copy(update={"user": "reader", "password": SecretStr("päss")})
    )
    with pytest.raises(HarperUnauthorized) as caught:
        reader.upsert(ROWS, [{"id": "x"}])
    rights = (f"insert on table data.{ROWS}", f"update on table data.{ROWS}")
    assert caught.value.missing == rights
    assert str(caught.value) == refused(harper_connection, f"upsert on table {ROWS!r}", *rights)
    with pytest.raises(HarperUnauthorized) as caught:
        reader.create_table("ClientNew", "id", COLUMNS)
    assert str(caught.value) == refused(
        harper_connection,
        "create_table on table 'ClientNew'",
        'to make tables: "structure_user": ["data"]',
    )
    with pytest.raises(HarperUnauthorized) as caught:
        reader.upsert("Nowhere", [{"id": "x"}])
    assert str(caught.value) == refused(
        harper_connection,
        "upsert on table 'Nowhere'",
        "a right to it, if it is there: Table 'data.Nowhere' does not exist",
    )
    described = reader.describe_table(ROWS)
    assert described is not None
    assert described.attributes == ()  # hidden from it
    assert reader.describe_table("Nowhere") is None
    assert reader.server_threads() is None


@pytest.mark.promise("E3")
def test_a_role_that_may_only_make_tables_can_make_one_and_is_told_what_it_needs_to_see_it(
    make: Make, harper_connection: HarperConnection
) -> None:
    permission = {"super_user": False, "structure_user": ["data"]}
    user = {"username": "builder", "password": "pass", "role": "client_builder", "active": True}
    admin(harper_connection, "add_role", role="client_builder", permission=permission)
    admin(harper_connection, "add_user", **user)
    builder = make(
        harper_connection.model_copy(update={"user": "builder", "password": SecretStr("pass")})
    )
    assert builder.describe_table("ClientBuilt") is None
    assert builder.create_table("ClientBuilt", "id", COLUMNS).is_new
    with pytest.raises(HarperUnauthorized, match="a right to it") as caught:
        builder.describe_table("ClientBuilt")
    assert caught.value.status == 403

"""The client against a real Harper, with a fault proxy between them where things go wrong."""

import pickle
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.breaker import Breakers, CircuitOpen
from bq_harper_assets.stores.harper.answers import Creation, WriteCount
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.errors import (
    HarperError,
    HarperGarbled,
    HarperNotFound,
    HarperNotUnderstood,
    HarperRefused,
    HarperUnauthorized,
    HarperUnavailable,
)
from bq_harper_assets.stores.harper.transport import Timeouts
from bq_harper_assets.stores.retry import Call, Retry, RetryPolicy
from bq_harper_assets.stores.waiting import WAITS
from bq_harper_assets_tests.fault_proxy import (
    Answer,
    CutAnswer,
    Fault,
    FaultProxy,
    NoAnswer,
    Reset,
    Stall,
)
from bq_harper_assets_tests.stores.harper_clients import (
    COLUMNS,
    FAST,
    ROWS,
    Clock,
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
    assert direct.describe_all()[table] == described
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


@pytest.mark.promise("I1", "E4")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(503, {"error": "Outstanding write transactions have too long of queue"}),
        Answer(503, "<html>gateway</html>"),
        Answer(502),
        Answer(504),
        Answer(429, {"error": "slow down"}, {"Retry-After": "0"}),
        Answer(500, {"error": "Commit failed (see commitError for details)"}),
    ],
    ids=lambda answer: str(answer.status),
)
def test_a_transient_answer_is_followed_by_a_second_try(
    make: Make, proxy: FaultProxy, answer: Answer
) -> None:
    retries: list[Retry] = []
    proxy.on(answer)
    assert make(on_retry=retries.append).upsert(ROWS, [{"id": "t"}]) == WriteCount(1)
    assert len(proxy.seen()) == 2
    assert [(r.call.operation, r.call.table, r.attempt) for r in retries] == [("upsert", ROWS, 1)]
    assert f"answered {answer.status}" in retries[0].reason


@pytest.mark.promise("I1")
@pytest.mark.parametrize("status", [301, 307, 400, 404, 409, 413, 415, 500, 501])
def test_any_other_answer_is_final(make: Make, proxy: FaultProxy, status: int) -> None:
    proxy.on(Answer(status, {"error": "no"}, {"Location": "http://u:p@elsewhere/"}), times=9)
    with pytest.raises(HarperRefused) as caught:
        make().upsert(ROWS, [{"id": "t"}])
    assert caught.value.status == status
    assert ("redirects to elsewhere, which is not followed" in str(caught.value)) == (status < 400)
    assert len(proxy.seen()) == 1


@pytest.mark.promise("A6")
def test_a_404_of_something_else_is_not_taken_for_a_missing_table(
    make: Make, proxy: FaultProxy
) -> None:
    proxy.on(Answer(404, "Not found"))
    with pytest.raises(HarperRefused, match="answered 404"):
        make().describe_table(ROWS)


@pytest.mark.promise("A6")
@pytest.mark.parametrize("body", ["<html>Welcome</html>", "OK", "<?xml version='1.0'?>"])
def test_something_else_at_harpers_address_is_told_at_once(
    make: Make, proxy: FaultProxy, body: str
) -> None:
    proxy.on(Answer(200, body), times=2)
    writer = make()
    for ask in (lambda: writer.upsert(ROWS, []), lambda: make().describe_table(ROWS)):
        with pytest.raises(HarperNotUnderstood, match=r"answered 200 .* OPERATIONSAPI_URL"):
            ask()
    assert len(proxy.seen()) == 2
    assert writer.last_unanswered_at is not None  # a gateway may say it before a Harper at work


@pytest.mark.promise("E4")
def test_an_empty_answer_each_time_is_given_up_with_the_address_to_look_at(
    make: Make, proxy: FaultProxy
) -> None:
    proxy.on(Answer(200, b""), times=FAST.max_retries + 1)
    with pytest.raises(HarperGarbled, match=r"failed 3 times: .* OPERATIONSAPI_URL"):
        make().upsert(ROWS, [])


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
@pytest.mark.parametrize("body", [b"", b" ", b'{"message":"upserted 1'])
def test_a_200_without_an_answer_in_it_counts_as_unanswered_and_is_sent_again(
    make: Make, proxy: FaultProxy, body: bytes
) -> None:
    reader = make()
    proxy.on(Answer(200, body), operation="describe_table")
    assert reader.describe_table(ROWS) is not None
    assert reader.last_unanswered_at is None  # it could change nothing
    writer = make()
    proxy.on(Answer(200, body), operation="upsert")
    assert writer.upsert(ROWS, [{"id": "garbled"}]) == WriteCount(1)
    assert writer.last_unanswered_at is not None


def test_json_without_a_count_is_not_taken_for_a_write(make: Make, proxy: FaultProxy) -> None:
    proxy.on(Answer(200, "{}"))
    with pytest.raises(HarperNotUnderstood, match="OPERATIONSAPI_URL"):
        make().upsert(ROWS, [])


@pytest.mark.promise("I1", "E4")
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}], ids=["plain", "retry-after"])
def test_a_storm_of_30_answers_is_outlived(
    make: Make, proxy: FaultProxy, status: int, headers: dict[str, str]
) -> None:
    slept: list[float] = []
    breakers = Breakers()
    retry = RetryPolicy(max_retries=5, initial_delay_s=1.0, sleep=slept.append).within(
        timedelta(minutes=10)
    )
    proxy.on(Answer(status, {"error": "slow down"}, headers), operation="upsert", times=30)
    client = make(retry=retry, breakers=breakers)
    assert client.upsert(ROWS, [{"id": "storm"}]) == WriteCount(1)
    assert len(proxy.seen(operation="upsert")) == 31
    assert len(slept) == 30
    if not headers:
        assert slept[0] < 2 < 16 <= slept[4] <= slept[-1] == 30
    assert client.describe_table(ROWS) is not None  # the breaker is closed


def test_an_open_breaker_is_waited_for_within_the_deadline_and_told(
    make: Make, proxy: FaultProxy
) -> None:
    clock = Clock()
    heard: list[str] = []
    breakers = Breakers(clock=clock)
    proxy.on(Answer(502), operation="upsert", times=5)
    for _ in range(5):
        with pytest.raises(HarperUnavailable):
            make(retry=RetryPolicy(max_retries=0), breakers=breakers).upsert(ROWS, [])

    def sleep(seconds: float) -> None:
        clock.now += 5
        WAITS.look()
        clock.now += seconds - 5

    policy = RetryPolicy(max_retries=5, initial_delay_s=6.0, sleep=sleep, clock=clock).within(
        timedelta(minutes=10)
    )
    with WAITS.listen(heard.append):
        assert make(retry=policy, breakers=breakers).upsert(ROWS, []) == WriteCount(0)
    assert clock.now - 1000 == 60
    told = next(line for line in heard if "calls in a row" in line)
    assert re.search(r"failed 5 calls in a row, since .*; tries again at .* gives up at", told)

    clock.now += 1
    proxy.on(Answer(502), operation="upsert", times=5)
    for _ in range(5):
        with pytest.raises(HarperUnavailable):
            make(retry=RetryPolicy(max_retries=0), breakers=breakers).upsert(ROWS, [])
    with pytest.raises(CircuitOpen):  # without a deadline nobody waits
        make(retry=RetryPolicy(max_retries=5), breakers=breakers).upsert(ROWS, [])


@pytest.mark.promise("G9")
@pytest.mark.parametrize(("retries", "requests_"), [(0, 1), (2, 3)])
def test_retries_and_delay_are_what_was_set(
    make: Make, proxy: FaultProxy, retries: int, requests_: int
) -> None:
    slept: list[float] = []

    def sleep(wait: float) -> None:
        slept.append(wait)
        time.sleep(wait)

    proxy.on(Answer(503), times=99)
    client = make(retry=RetryPolicy(max_retries=retries, initial_delay_s=0.010, sleep=sleep))
    with pytest.raises(HarperUnavailable, match=r"failed 3 times" if retries else r"failed: "):
        client.upsert(ROWS, [{"id": "t"}])
    seen = proxy.seen()
    assert len(seen) == requests_
    for number, wait in enumerate(slept):
        assert 0.010 * 2**number <= wait <= 0.020 * 2**number
        assert seen[number + 1].at - seen[number].at >= wait


@pytest.mark.promise("I2")
@pytest.mark.parametrize(
    ("header", "low", "high"), [("1", 1, 1), ("3600", 30, 30), ("x", 0.01, 0.02)]
)
def test_retry_after_wins(
    make: Make, proxy: FaultProxy, header: str, low: float, high: float
) -> None:
    slept: list[float] = []
    proxy.on(Answer(429, {"error": "slow down"}, {"Retry-After": header}))
    make(retry=RetryPolicy(max_retries=1, initial_delay_s=0.010, sleep=slept.append)).upsert(
        ROWS, [{"id": "t"}]
    )
    assert len(slept) == 1
    assert low <= slept[0] <= high


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


@pytest.mark.promise("E4")
def test_it_ends_by_itself_when_harper_is_away_and_works_when_it_is_back(
    harper_connection: HarperConnection, direct: HarperClient
) -> None:
    with FaultProxy(harper_connection.url) as proxy:
        connection = harper_connection.model_copy(update={"url": proxy.url})
    with HarperClient(connection, retry=FAST, breakers=Breakers()) as client:
        with pytest.raises(
            HarperUnavailable, match=r"failed 3 times: .* does not accept connections"
        ):
            client.upsert(ROWS, [{"id": "back", "n": 1}])
        assert client.last_unanswered_at is None
        with FaultProxy(harper_connection.url, port=urlsplit(connection.url).port or 0):
            assert client.upsert(ROWS, [{"id": "back", "n": 2}]) == WriteCount(1)
    assert direct.search_by_id(ROWS, ["back"], ["n"]) == [{"n": 2}]


@pytest.mark.promise("E6")
def test_the_breaker_stands_between_the_call_and_the_server(make: Make, proxy: FaultProxy) -> None:
    clock = Clock()
    breakers = Breakers(clock=clock)
    client = make(
        breakers=breakers,
        retry=RetryPolicy(max_retries=1, initial_delay_s=0, sleep=lambda wait: None),
    )
    proxy.on(Answer(503), table=ROWS, matching=lambda seen: b"fault" not in seen.body, times=10)

    def upsert() -> WriteCount:
        return client.upsert(ROWS, [{"id": "t"}])

    for _ in range(4):
        with pytest.raises(HarperUnavailable):
            upsert()
    with pytest.raises(HarperRefused):
        client.upsert(ROWS, [{"id": "t", "n": "our own fault"}])
    requests_of_four_calls = len(proxy.seen())
    with pytest.raises(HarperUnavailable):
        upsert()
    assert (requests_of_four_calls, len(proxy.seen())) == (9, 11)

    clock.now += 59.9
    with pytest.raises(CircuitOpen, match="circuit breaker open for upsert") as caught:
        upsert()
    assert caught.value.next_try_in_s == pytest.approx(0.1)
    assert len(proxy.seen()) == 11
    assert client.describe_table("Elsewhere") is None

    clock.now += 0.1
    proxy.heal()
    proxy.on(Answer(503), table=ROWS)
    with pytest.raises(HarperUnavailable):
        upsert()
    with pytest.raises(CircuitOpen):
        upsert()
    assert len(proxy.seen(table=ROWS)) == 12

    clock.now += 60
    with ThreadPoolExecutor(8) as pool:
        outcomes = [pool.submit(upsert) for _ in range(8)]
    passed = [future for future in outcomes if future.exception() is None]
    turned_away = [future for future in outcomes if isinstance(future.exception(), CircuitOpen)]
    assert len(passed) + len(turned_away) == 8
    assert len(proxy.seen(table=ROWS)) == 12 + len(passed)
    assert upsert() == WriteCount(1)


@pytest.mark.promise("E6")
def test_while_the_probe_is_out_no_other_request_arrives(make: Make, proxy: FaultProxy) -> None:
    clock = Clock()
    client = make(
        breakers=Breakers(clock=clock), retry=RetryPolicy(max_retries=0), timeouts=Timeouts(5, 0.4)
    )
    proxy.on(Answer(503), times=5)
    for _ in range(5):
        with pytest.raises(HarperUnavailable):
            client.upsert(ROWS, [])
    clock.now += 60
    proxy.on(Stall())
    with ThreadPoolExecutor(1) as pool:
        probe = pool.submit(client.upsert, ROWS, [])
        give_up = time.monotonic() + 20
        while len(proxy.seen()) < 6:
            assert time.monotonic() < give_up, "the probe was not sent"
            time.sleep(0.005)
        for _ in range(20):
            with pytest.raises(CircuitOpen, match="being made now"):
                client.upsert(ROWS, [])
        assert isinstance(probe.exception(), HarperUnavailable)
    assert len(proxy.seen()) == 6


@pytest.mark.promise("E6")
def test_a_call_that_is_waiting_to_retry_stops_when_the_breaker_opens(
    make: Make, proxy: FaultProxy
) -> None:
    breakers = Breakers()
    other = make(breakers=breakers, retry=RetryPolicy(max_retries=0))

    def meanwhile(wait: float) -> None:
        for _ in range(5):
            with pytest.raises(HarperUnavailable):
                other.upsert(ROWS, [])

    proxy.on(Answer(503), times=9)
    with pytest.raises(CircuitOpen):
        make(breakers=breakers, retry=RetryPolicy(max_retries=5, sleep=meanwhile)).upsert(ROWS, [])
    assert len(proxy.seen()) == 6


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


@pytest.mark.promise("A3")
def test_a_table_just_made_may_be_unknown_for_a_moment(make: Make, proxy: FaultProxy) -> None:
    clock, slept = Clock(), list[float]()
    client = make(
        clock=clock, retry=RetryPolicy(max_retries=5, initial_delay_s=9, sleep=slept.append)
    )
    client.create_table(ROWS, "id", COLUMNS)
    unknown = Answer(400, {"error": f"Table 'data.{ROWS}' does not exist"})
    proxy.on(unknown, operation="upsert", times=3)
    assert client.upsert(ROWS, [{"id": "t"}]) == WriteCount(1)
    assert slept == [0.2, 0.2, 0.2]
    proxy.on(Answer(404, unknown.body), operation="describe_table")
    assert client.describe_table(ROWS) is None
    clock.now += 5
    proxy.on(unknown, operation="upsert")
    with pytest.raises(HarperNotFound):
        client.upsert(ROWS, [{"id": "t"}])
    assert len(slept) == 3


def test_skipped_ids_are_told(make: Make, proxy: FaultProxy) -> None:
    told = b'{"message":"upserted 1 of 3 records","upserted_hashes":["a"],"skipped_hashes":["b",7]}'
    proxy.on(Answer(200, told))
    proxy.on(Answer(200, b'{"message":"upserted 2 of 3 records","upserted_hashes":["a","b"]}'))
    client = make()
    assert client.upsert(ROWS, []) == WriteCount(1, ("b", 7))
    assert client.upsert(ROWS, []) == WriteCount(2, ())


@pytest.mark.promise("A6", "E3")
def test_a_wrong_password_is_told_with_user_and_address_only(
    make: Make, proxy: FaultProxy, harper_connection: HarperConnection
) -> None:
    wrong = harper_connection.model_copy(
        update={"url": proxy.url, "password": SecretStr("canary-5a1b")}
    )
    with pytest.raises(HarperUnauthorized) as caught:
        make(wrong).describe_all()
    assert str(caught.value) == (
        f"describe_all failed: Harper at {proxy.url} answered 401: Login failed (for user"
        f" {wrong.user!r}). Nothing was changed. Next: set OPERATIONSAPI_USER and"
        " OPERATIONSAPI_PASS, then: bqh doctor"
    )
    assert len(proxy.seen()) == 1


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


@pytest.mark.promise("A6")
def test_a_token_logs_in_instead_of_the_password(
    make: Make, harper_connection: HarperConnection
) -> None:
    login = {
        "username": harper_connection.user,
        "password": harper_connection.password.get_secret_value(),
    }
    told = admin(harper_connection, "create_authentication_tokens", **login).json()
    update = {"token": SecretStr(told["operation_token"]), "password": SecretStr("wrong")}
    assert make(harper_connection.model_copy(update=update)).server_threads()
    bad = harper_connection.model_copy(update={"token": SecretStr("canary-token")})
    with pytest.raises(HarperUnauthorized, match="the token") as caught:
        make(bad).describe_all()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        HarperUnavailable(Call("h", "upsert", "T"), "is away", 503, 1.5),
        HarperUnauthorized(Call("h", "upsert", "T"), "says no", 403, ("insert on T",)),
        HarperRefused(Call("h", "upsert", "T"), "says no", 400),
    ],
)
def test_an_error_survives_the_way_from_another_process(error: HarperError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))

"""Calls that are made again, given up, or not made at all while the breaker is open."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.breaker import Breakers, CircuitOpen
from bq_harper_assets.retries.retry import Retry, RetryPolicy
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.stores.harper.answers import WriteCount
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.errors import (
    HarperNotFound,
    HarperRefused,
    HarperUnavailable,
)
from bq_harper_assets.stores.harper.transport import Timeouts
from bq_harper_assets_tests.fault_proxy import (
    Answer,
    FaultProxy,
    Stall,
)
from bq_harper_assets_tests.stores.harper.test_client import direct, make, proxy
from bq_harper_assets_tests.stores.harper_clients import (
    COLUMNS,
    FAST,
    ROWS,
    Clock,
    Make,
)

__all__ = ["direct", "make", "proxy"]
pytestmark = pytest.mark.harper


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

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bq_harper_assets.retries.breaker import Breakers, CircuitOpen, patiently
from bq_harper_assets.retries.retry import Call, RetryPolicy, StepDeadline

ORDERS = Call("Harper at http://h:9925", "upsert", "Orders")
PORTS = Call("Harper at http://h:9925", "upsert", "Ports")


class Away(Exception):
    pass


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breakers(clock: Clock) -> Breakers:
    return Breakers(clock=clock)


def is_away(error: BaseException) -> bool:
    return isinstance(error, Away)


def work(breakers: Breakers, call: Call = ORDERS) -> bool:
    """One call that works; whether it was the probe."""
    with breakers.admit(call, is_failure=is_away) as admission:
        return admission.is_probe


def fail(breakers: Breakers, error: BaseException | None = None, call: Call = ORDERS) -> None:
    """One call that fails."""
    error = error or Away()
    with (
        pytest.raises(type(error)),
        breakers.admit(call, is_failure=is_away),
    ):
        raise error


def open_up(breakers: Breakers) -> None:
    for _ in range(5):
        fail(breakers)


@pytest.mark.promise("E6")
def test_four_failures_leave_it_closed_and_the_fifth_opens_it(breakers: Breakers) -> None:
    for _ in range(4):
        fail(breakers)
    fail(breakers)
    with pytest.raises(CircuitOpen, match=r"circuit breaker open for upsert on table 'Orders'"):
        work(breakers)


@pytest.mark.promise("E6")
def test_a_success_zeroes_the_count(breakers: Breakers) -> None:
    for _ in range(4):
        fail(breakers)
    work(breakers)
    for _ in range(4):
        fail(breakers)
    work(breakers)


@pytest.mark.promise("E6")
def test_it_is_open_at_59_9_s_and_lets_one_probe_in_at_60(breakers: Breakers, clock: Clock) -> None:
    open_up(breakers)
    clock.now += 59.9
    with pytest.raises(CircuitOpen, match=r"The next try is in 0\.1 s"):
        work(breakers)
    clock.now += 0.1
    assert work(breakers) is True
    assert work(breakers) is False
    for _ in range(4):  # it counts from 0 again
        fail(breakers)
    assert work(breakers) is False


@pytest.mark.promise("E6")
def test_a_probe_that_fails_opens_it_at_once_for_another_60_s(
    breakers: Breakers, clock: Clock
) -> None:
    open_up(breakers)
    clock.now += 60
    fail(breakers)
    clock.now += 59.9
    with pytest.raises(CircuitOpen):
        work(breakers)
    clock.now += 0.1
    assert work(breakers) is True


@pytest.mark.promise("E6")
def test_of_many_threads_at_60_s_exactly_one_gets_in(breakers: Breakers, clock: Clock) -> None:
    open_up(breakers)
    clock.now += 60
    all_tried, turned_away = threading.Event(), []

    def attempt(_: int) -> str:
        try:
            with breakers.admit(ORDERS, is_failure=is_away):
                all_tried.wait(10)
                return "in"
        except CircuitOpen as error:
            turned_away.append(str(error))
            if len(turned_away) == 15:
                all_tried.set()
            return "out"

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(attempt, range(16)))
    assert outcomes.count("in") == 1
    assert all("The next try is being made now" in text for text in turned_away)
    assert work(breakers) is False


@pytest.mark.promise("E6")
def test_refusals_neither_count_nor_close_nor_stop_the_next_probe(
    breakers: Breakers, clock: Clock
) -> None:
    for _ in range(20):
        fail(breakers, ValueError())
    assert work(breakers) is False
    open_up(breakers)
    clock.now += 60
    for stop in (ValueError(), KeyboardInterrupt()):
        fail(breakers, stop)
    assert work(breakers) is True


@pytest.mark.promise("E6")
def test_other_tables_and_other_stores_are_not_held_up(breakers: Breakers) -> None:
    open_up(breakers)
    work(breakers, PORTS)
    work(breakers, Call("BigQuery", "query", "Orders"))
    with pytest.raises(CircuitOpen):
        work(breakers)


def test_a_call_that_began_before_it_opened_changes_nothing(
    breakers: Breakers, clock: Clock
) -> None:
    with breakers.admit(ORDERS, is_failure=is_away) as old:
        open_up(breakers)
        with pytest.raises(CircuitOpen):
            old.check()
        clock.now += 30
    with pytest.raises(CircuitOpen):
        work(breakers)
    clock.now += 30
    assert work(breakers) is True


def test_a_late_failure_does_not_make_the_wait_longer(breakers: Breakers, clock: Clock) -> None:
    def late() -> None:
        with breakers.admit(ORDERS, is_failure=is_away):
            open_up(breakers)
            clock.now += 30
            raise Away

    with pytest.raises(Away):
        late()
    with pytest.raises(CircuitOpen, match=r"The next try is in 30\.0 s"):
        work(breakers)


def test_its_error_survives_the_way_from_another_process() -> None:
    error = CircuitOpen(ORDERS, 5, 12.0)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_its_error_says_why_nothing_was_sent_and_when_the_next_try_is() -> None:
    told = str(CircuitOpen(ORDERS, 5, 12.0))
    assert told.startswith(f"circuit breaker open for {ORDERS}: Harper at http://h:9925 failed 5")
    assert "5 calls in a row, so this one was not sent. The next try is in 12.0 s. " in told


def test_it_is_open_until_its_time_is_up(breakers: Breakers, clock: Clock) -> None:
    open_up(breakers)
    clock.now += 59.5
    with pytest.raises(CircuitOpen, match=r"The next try is in 0\.5 s"):
        work(breakers)
    clock.now += 0.5
    assert work(breakers)


def test_a_probe_may_be_sent_and_an_old_call_again_once_it_is_closed(
    breakers: Breakers, clock: Clock
) -> None:
    with breakers.admit(ORDERS, is_failure=is_away) as old:
        open_up(breakers)
        clock.now += 60
        with breakers.admit(ORDERS, is_failure=is_away) as probe:
            probe.check()
            with pytest.raises(CircuitOpen):
                old.check()
        old.check()


def test_a_call_that_began_before_it_opened_does_not_end_the_probe(
    breakers: Breakers, clock: Clock
) -> None:
    old = breakers.admit(ORDERS, is_failure=is_away)
    old.__enter__()
    open_up(breakers)
    clock.now += 60
    with breakers.admit(ORDERS, is_failure=is_away):
        old.__exit__(None, None, None)
        with pytest.raises(CircuitOpen):
            work(breakers)


def test_a_failure_counts_also_if_another_call_worked_meanwhile(breakers: Breakers) -> None:
    def fails_late() -> None:
        with breakers.admit(ORDERS, is_failure=is_away):
            work(breakers)
            raise Away

    with pytest.raises(Away):
        fails_late()
    for _ in range(4):
        fail(breakers)
    with pytest.raises(CircuitOpen):
        work(breakers)


def _stopped(*next_tries_in_s: float) -> tuple[list[float], RetryPolicy, list[CircuitOpen]]:
    waits: list[float] = []
    policy = RetryPolicy(max_retries=1, deadline=StepDeadline(600), sleep=waits.append)
    return waits, policy, [CircuitOpen(ORDERS, 5, seconds) for seconds in next_tries_in_s]


def test_a_call_that_a_breaker_stops_waits_for_the_next_try_within_its_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waits, policy, errors = _stopped(3.0, 0.1, 0.5)

    def attempt() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    assert patiently(policy, ORDERS, attempt) == "done"
    assert waits == [3.0, 0.5, 0.5]
    assert "s: Harper at http://h:9925 failed 5 calls in a row" in caplog.text


def test_a_call_without_a_deadline_or_with_another_error_does_not_wait() -> None:
    waits, policy, errors = _stopped(3.0)

    def attempt() -> str:
        raise errors[0]

    with pytest.raises(CircuitOpen):
        patiently(RetryPolicy(sleep=waits.append), ORDERS, attempt)
    assert patiently(RetryPolicy(), ORDERS, lambda: "done") == "done"

    def broken() -> str:
        raise Away

    with pytest.raises(Away):
        patiently(policy, ORDERS, broken)
    assert waits == []

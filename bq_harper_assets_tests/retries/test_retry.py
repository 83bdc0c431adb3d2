import logging
import pickle
import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.errors import BqhError
from bq_harper_assets.retries.retry import (
    LONGEST_WAIT_S,
    Call,
    Retry,
    RetryPolicy,
    StepDeadline,
)
from bq_harper_assets.retries.waiting import WAITS

CALL = Call("Harper at http://h:9925", "upsert", "Orders", "2026-11-16T07:00|s02")


class Away(Exception):
    def __init__(self, retry_after_s: float | None = None) -> None:
        super().__init__("away")
        self.retry_after_s = retry_after_s


def is_away(error: Exception) -> bool:
    return isinstance(error, Away)


def failing(*errors: Exception) -> tuple[Callable[[], str], list[int]]:
    """Raises these one after another, then works; with the number of tries so far."""
    left, tries = list(errors), [0]

    def send() -> str:
        tries[0] += 1
        if left:
            raise left.pop(0)
        return "done"

    return send, tries


@pytest.mark.promise("I2")
@settings(deadline=None)
@given(
    initial=st.floats(0.001, 5), retry=st.integers(0, 200), chance=st.floats(0, 1, exclude_max=True)
)
def test_a_wait_is_one_to_two_delays_that_double_and_never_over_30_s(
    initial: float, retry: int, chance: float
) -> None:
    wait = RetryPolicy(max_retries=5, initial_delay_s=initial, chance=lambda: chance).wait_s(retry)
    delay = initial * 2 ** min(retry, 60)
    assert min(delay, LONGEST_WAIT_S) <= wait <= min(2 * delay, LONGEST_WAIT_S)


@pytest.mark.promise("I2")
def test_two_workers_do_not_wait_the_same() -> None:
    one, other = (RetryPolicy(chance=random.Random(seed).random) for seed in (1, 2))
    assert [one.wait_s(n) for n in range(4)] != [other.wait_s(n) for n in range(4)]
    assert len({RetryPolicy().wait_s(0) for _ in range(20)}) == 20


@pytest.mark.promise("G9")
def test_two_retries_of_10_ms_are_three_tries_with_waits_of_10_to_20_and_20_to_40_ms() -> None:
    waits: list[float] = []
    send, tries = failing(*[Away()] * 9)
    with pytest.raises(Away):
        RetryPolicy(max_retries=2, initial_delay_s=0.010, sleep=waits.append).call(
            send, is_transient=is_away, describe=CALL
        )
    assert tries == [3]
    assert len(waits) == 2
    assert 0.010 <= waits[0] <= 0.020
    assert 0.020 <= waits[1] <= 0.040


@pytest.mark.promise("I2")
@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (7.0, 7.0), (3600.0, 30.0), (-1.0, 0.0)])
def test_what_the_store_asks_for_wins_up_to_30_s(asked: float, waited: float) -> None:
    waits: list[float] = []
    send, _ = failing(Away(asked))
    RetryPolicy(sleep=waits.append).call(
        send,
        is_transient=is_away,
        describe=CALL,
        retry_after_s=lambda error: error.retry_after_s if isinstance(error, Away) else None,
    )
    assert waits == [waited]


@pytest.mark.promise("I1")
def test_what_is_not_transient_is_tried_once() -> None:
    waits: list[float] = []
    send, tries = failing(ValueError("our own fault"))
    with pytest.raises(ValueError, match="our own fault"):
        RetryPolicy(sleep=waits.append).call(send, is_transient=is_away, describe=CALL)
    assert (tries, waits) == ([1], [])


@pytest.mark.promise("I2")
def test_each_retry_warns_and_the_end_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    events: list[Retry] = []
    send, _ = failing(Away(), Away(), Away())
    policy = RetryPolicy(
        max_retries=2, initial_delay_s=1, sleep=lambda wait: None, chance=lambda: 0.5
    )
    with caplog.at_level(logging.INFO), pytest.raises(Away):
        policy.call(send, is_transient=is_away, describe=CALL, on_retry=events.append)
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        (
            "WARNING",
            "upsert on table 'Orders', cell 2026-11-16T07:00|s02: retry 1 of 2 in 1.500 s: away",
        ),
        (
            "WARNING",
            "upsert on table 'Orders', cell 2026-11-16T07:00|s02: retry 2 of 2 in 3.000 s: away",
        ),
        (
            "ERROR",
            "upsert on table 'Orders', cell 2026-11-16T07:00|s02 gave up after 3 tries: away",
        ),
    ]
    assert events == [Retry(CALL, 1, 1.5, "away"), Retry(CALL, 2, 3.0, "away")]


def test_it_stops_at_the_first_success() -> None:
    send, tries = failing(Away(), Away())
    policy = RetryPolicy(max_retries=5, initial_delay_s=0, sleep=lambda wait: None)
    assert policy.call(send, is_transient=is_away, describe=CALL) == "done"
    assert tries == [3]


class Busy(Away):
    """An answer that says: not now."""


class StepClock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def under_a_deadline(clock: StepClock, seconds: float, **settings: Any) -> RetryPolicy:
    policy = RetryPolicy(
        max_retries=2,
        initial_delay_s=1.0,
        sleep=clock.sleep,
        clock=clock,
        chance=lambda: 0.0,
        **settings,
    )
    return policy.within(timedelta(seconds=seconds))


def is_busy(error: Exception) -> bool:
    return isinstance(error, Busy)


@pytest.mark.promise("I1")
@pytest.mark.parametrize("retry_after", [None, 2.0])
def test_a_storm_of_30_answers_is_outlived_within_the_deadline(retry_after: float | None) -> None:
    clock, waits = StepClock(), list[float]()
    send, tries = failing(*[Busy(retry_after)] * 30)
    done = under_a_deadline(clock, 1200).call(
        send,
        is_transient=is_away,
        is_storm=is_busy,
        describe=CALL,
        retry_after_s=lambda error: retry_after,
        on_retry=lambda retry: waits.append(retry.wait_s),
    )
    assert (done, tries) == ("done", [31])
    # The pace goes down, or is the one that the store asks for.
    assert waits == ([2.0] * 30 if retry_after else [1, 2, 4, 8, 16] + [30] * 25)


def test_a_storm_longer_than_the_deadline_is_given_up_when_it_has_come() -> None:
    clock = StepClock()
    send, _ = failing(*[Busy()] * 999)
    with pytest.raises(Busy):
        under_a_deadline(clock, 100).call(
            send, is_transient=is_away, is_storm=is_busy, describe=CALL
        )
    assert clock.now == 100


@pytest.mark.promise("G9")
def test_calls_that_are_not_answered_use_up_retries_also_in_a_storm() -> None:
    clock = StepClock()
    send, tries = failing(Away(), Busy(), Busy(), Away(), Busy(), Away(), Busy())
    with pytest.raises(Away):
        under_a_deadline(clock, 600).call(
            send, is_transient=is_away, is_storm=is_busy, describe=CALL
        )
    assert tries == [6]


@pytest.mark.promise("G9")
def test_a_count_that_was_asked_for_holds_for_storms_too() -> None:
    send, tries = failing(*[Busy()] * 9)
    with pytest.raises(Busy):
        under_a_deadline(StepClock(), 600, counts_storms=True).call(
            send, is_transient=is_away, is_storm=is_busy, describe=CALL
        )
    assert tries == [3]


def test_a_call_that_is_tried_once_waits_out_no_storm() -> None:
    for policy in (RetryPolicy(max_retries=0).within(timedelta(hours=1)), RetryPolicy().once()):
        send, tries = failing(Busy(), Busy())
        with pytest.raises(Busy):
            policy.call(send, is_transient=is_away, is_storm=is_busy, describe=CALL)
        assert tries == [1]


def ask(policy: RetryPolicy, send: Callable[[], str]) -> str:
    return policy.call(send, is_transient=is_away, is_storm=is_busy, describe=CALL)


def test_all_calls_of_a_step_have_one_deadline_which_any_success_clears() -> None:
    clock = StepClock()
    step = StepDeadline(100, clock)
    with step.shared():
        one, other = under_a_deadline(clock, 999), under_a_deadline(clock, 999)
    tired, _ = failing(*[Away()] * 9)
    with pytest.raises(Away):  # out of retries
        ask(one, tired)
    used = clock.now
    assert step.left_s == 100 - used
    storm, _ = failing(*[Busy()] * 999)
    with pytest.raises(Busy):
        ask(other, storm)
    assert clock.now == 100  # and not 100 s more
    clock.now += 1000
    assert ask(one, lambda: "done") == "done"
    with pytest.raises(Busy):
        ask(other, storm)
    assert clock.now == 1200


def test_a_call_that_hung_used_up_time_from_when_it_was_sent() -> None:
    clock = StepClock()
    tries = []

    def hang() -> str:
        tries.append(clock.now)
        clock.now += 60
        raise Away

    with pytest.raises(Away):
        ask(under_a_deadline(clock, 60), hang)
    assert tries == [0.0]


def test_what_succeeded_while_a_call_was_under_way_is_no_lost_time() -> None:
    clock = StepClock()
    policy = under_a_deadline(clock, 60)
    step = policy.deadline
    assert step is not None

    def poll() -> str:
        """A job that takes an hour, is asked for all the time, and then once in vain."""
        if clock.now > 3600:
            return "done"
        clock.now += 3601
        step.succeeded()
        raise Away

    assert ask(policy, poll) == "done"


def test_no_try_may_take_longer_than_what_is_left() -> None:
    clock = StepClock()
    policy = under_a_deadline(clock, 60)
    step = policy.deadline
    assert step is not None
    assert [policy.at_most_s(seconds) for seconds in (10, 600)] == [10, 60]
    step.failed()
    clock.now += 55
    assert [policy.at_most_s(seconds) for seconds in (3, 600)] == [3, 5]
    clock.now += 55
    assert policy.at_most_s(600) == 1
    assert RetryPolicy().at_most_s(600) == 600


def test_an_error_says_whether_it_was_time_that_ended_its_call() -> None:
    class Gone(BqhError):
        pass

    for limit, is_out_of_time in ((2.0, True), (600.0, False)):
        send, _ = failing(*[Gone() for _ in range(9)])
        with pytest.raises(Gone) as ended:
            under_a_deadline(StepClock(), limit).call(
                send, is_transient=lambda error: True, describe=CALL
            )
        assert ended.value.is_out_of_time is is_out_of_time


def test_a_task_has_a_deadline_of_its_own() -> None:
    step = StepDeadline(100)
    step.failed(sent_at=-1000)
    assert step.left_s < 100
    there: RetryPolicy = pickle.loads(pickle.dumps(RetryPolicy(deadline=step)))
    assert there.deadline is not None
    assert there.deadline.left_s == 100


def test_a_long_wait_says_what_for_since_when_and_when_it_tries_again_or_gives_up() -> None:
    heard: list[str] = []
    clock = StepClock()

    def sleep(seconds: float) -> None:
        WAITS.look()
        clock.sleep(seconds)

    send, _ = failing(*[Busy()] * 4)
    policy = replace(under_a_deadline(clock, 600), sleep=sleep)
    with WAITS.listen(heard.append):
        policy.call(send, is_transient=is_away, is_storm=is_busy, describe=CALL)
    ours = [line for line in heard if "2026-11-16T07:00|s02" in line]
    # 1 + 2 + 4 s: only the fourth wait begins after five seconds.
    assert len(ours) == 1
    pattern = (
        r"waits for upsert on table 'Orders', cell 2026-11-16T07:00\|s02: away, since "
        r"\d\d:\d\d:\d\d UTC; tries again at \d\d:\d\d:\d\d UTC \(retry 4\), "
        r"gives up at \d\d:\d\d:\d\d UTC"
    )
    assert re.match(pattern, ours[0])


def test_a_call_is_sent_six_times_and_first_waits_one_to_two_seconds() -> None:
    waits: list[float] = []
    send, tries = failing(*[Away()] * 9)
    with pytest.raises(Away):
        RetryPolicy(sleep=waits.append).call(send, is_transient=is_away, describe=CALL)
    assert tries == [6]
    assert 1.0 <= waits[0] < 2.0


def test_a_step_shares_its_deadline_only_with_what_is_made_within_it() -> None:
    step = StepDeadline(100)
    limit = timedelta(seconds=7)
    with step.shared():
        assert RetryPolicy().within(limit).deadline is step
    after = RetryPolicy().within(limit).deadline
    assert after is not None
    assert after is not step
    assert after.limit_s == 7


def test_an_error_whose_retries_end_just_before_the_time_is_not_out_of_time() -> None:
    class Gone(BqhError):
        pass

    clock = StepClock()
    policy = RetryPolicy(
        max_retries=1,
        deadline=StepDeadline(1.5, clock),
        sleep=clock.sleep,
        chance=lambda: 0.0,
        clock=clock,
    )
    send, tries = failing(Gone(), Gone())
    with pytest.raises(Gone) as ended:
        policy.call(send, is_transient=lambda error: True, describe=CALL)
    assert (tries, clock.now) == ([2], 1.0)
    assert ended.value.is_out_of_time is False


def test_a_first_wait_is_told_only_after_a_while_however_late_the_clock_is() -> None:
    heard: list[str] = []
    clock = StepClock()
    clock.now = 1_000.0

    def sleep(seconds: float) -> None:
        WAITS.look()
        clock.sleep(seconds)

    send, _ = failing(Busy())
    policy = replace(under_a_deadline(clock, 600), sleep=sleep)
    with WAITS.listen(heard.append):
        policy.call(send, is_transient=is_away, is_storm=is_busy, describe=CALL)
    assert [line for line in heard if "Orders" in line] == []

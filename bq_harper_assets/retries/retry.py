"""Decides when a failed call is sent again, after which wait, and when it is given up.

There are two limits. A call that is not answered is sent again `max_retries` times. A store that
answers "not now" (429, 503) is there and will take the call later: such answers use up no retries,
and only the time that a step may go without any success ends them.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

from bq_harper_assets.errors import BqhError
from bq_harper_assets.retries.waiting import WAITS, clock_text

LONGEST_WAIT_S = 30.0

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Call:
    """A call says what is asked of which store, in the words that logs and errors use."""

    store: str  # such as "Harper at https://harper.example.com:9925"
    operation: str
    table: str | None = None
    cell: str | None = None  # the cell that the call is for, if it is for one

    def __str__(self) -> str:
        table = f" on table {self.table!r}" if self.table else ""
        cell = f", cell {self.cell}" if self.cell else ""
        return f"{self.operation}{table}{cell}"


@dataclass(frozen=True)
class Retry:
    """A retry is one wait before a call is sent again."""

    call: Call
    attempt: int  # it counts from 1
    wait_s: float
    reason: str


def never_told(error: Exception) -> float | None:
    """Returns None: it is for stores that do not say when to come back."""
    return None


def _never(error: Exception) -> bool:
    return False


class StepDeadline:
    """A step deadline limits how long a step may go without one call that succeeds.

    It counts all calls and tries of the step. Its time begins when the first call was sent that
    failed, and any call that succeeds ends it.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._succeeded_at = clock()
        self._failing_since: float | None = None

    def __reduce__(self) -> tuple[type["StepDeadline"], tuple[float]]:
        # A task starts a deadline of its own: it cannot know what succeeds on other machines.
        return (StepDeadline, (self.limit_s,))

    @property
    def left_s(self) -> float:
        """Returns the seconds that are left: all of them while nothing fails, 0 when time is up."""
        if self._failing_since is None:
            return self.limit_s
        return max(self._failing_since + self.limit_s - self._clock(), 0.0)

    def failed(self, sent_at: float | None = None) -> None:
        """Notes that a call failed, which was sent at `sent_at`; without it, the time is now."""
        if self._failing_since is None:
            sent_at = self._clock() if sent_at is None else sent_at
            self._failing_since = max(sent_at, self._succeeded_at)

    def succeeded(self) -> None:
        """Notes that a call was answered: the time begins again with the next call that fails."""
        self._failing_since, self._succeeded_at = None, self._clock()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Puts all policies that this thread makes in the block under this deadline."""
        before = _UNDER_WAY.set(self)
        try:
            yield
        finally:
            _UNDER_WAY.reset(before)


# A step makes clients in many modules and in each of its tries; all of them share one deadline.
_UNDER_WAY: ContextVar[StepDeadline | None] = ContextVar("step deadline", default=None)


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """A retry policy says how often a call is sent again, and after which waits.

    Waits double from `initial_delay_s`, with jitter, and never exceed 30 s. With 0 retries a call
    is sent once.
    """

    max_retries: int = 5
    initial_delay_s: float = 1.0
    deadline: StepDeadline | None = None
    counts_storms: bool = False  # whether answers that say "not now" use up retries too
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random  # it returns numbers spread evenly over [0, 1)
    clock: Callable[[], float] = time.monotonic

    def wait_s(self, retry: int, retry_after_s: float | None = None) -> float:
        """Returns the wait before retry 0, 1, 2...; a wait that the store asked for comes first."""
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), LONGEST_WAIT_S)
        # Past 2^64 every delay is over the cap, and a float would overflow.
        delay = self.initial_delay_s * 2.0 ** min(retry, 64)
        return min(delay + delay * self.chance(), LONGEST_WAIT_S)

    def once(self) -> "RetryPolicy":
        """Returns the same policy without retries and without a deadline."""
        return replace(self, max_retries=0, deadline=None)

    def within(self, limit: timedelta) -> "RetryPolicy":
        """Returns this policy under the deadline of the current step, or else under a new one.

        A policy without retries stays as it is.
        """
        if self.max_retries == 0:
            return self
        own = StepDeadline(limit.total_seconds(), self.clock)
        return replace(self, deadline=_UNDER_WAY.get() or own)

    def at_most_s(self, seconds: float) -> float:
        """Limits the seconds of one try to what the deadline leaves, but to 1 s at least."""
        return seconds if self.deadline is None else min(seconds, max(self.deadline.left_s, 1.0))

    def call(
        self,
        send: Callable[[], _Result],
        *,
        is_transient: Callable[[Exception], bool],
        describe: Call,
        is_storm: Callable[[Exception], bool] = _never,
        retry_after_s: Callable[[Exception], float | None] = never_told,
        reason: Callable[[Exception], str] = str,
        on_retry: Callable[[Retry], None] = lambda retry: None,
    ) -> _Result:
        """Returns what `send` returns, or raises its error: if not transient, or at a limit."""
        retry = counted = 0
        failing_since: float | None = None
        while True:
            sent_at = self.clock()
            try:
                result = send()
            except Exception as error:
                if not is_transient(error):
                    raise
                failing_since = sent_at if failing_since is None else failing_since
                left_s = self._left_s(sent_at)
                is_counted = self._counts(is_storm(error))
                if (is_counted and counted >= self.max_retries) or left_s <= 0:
                    if isinstance(error, BqhError):
                        error.is_out_of_time = left_s <= 0
                    _log.error("%s gave up after %d tries: %s", describe, retry + 1, reason(error))
                    raise
                wait = min(self.wait_s(retry, retry_after_s(error)), left_s)
                retry += 1
                counted += is_counted
                event = Retry(describe, retry, wait, reason(error))
            else:
                if self.deadline is not None:
                    self.deadline.succeeded()
                return result
            limit = f" of {self.max_retries}" if is_counted else ""
            _log.warning(
                "%s: retry %d%s in %.3f s: %s",
                describe,
                retry,
                limit,
                wait,
                event.reason,
                extra={"retry": event},
            )
            on_retry(event)
            then = _next_step(retry, limit, wait, None if self.deadline is None else left_s)
            what = f"{describe}: {event.reason}"
            with WAITS.waiting(what, then, since_s=self.clock() - failing_since):
                self.sleep(wait)

    def _counts(self, is_storm: bool) -> bool:
        return not is_storm or self.counts_storms or self.deadline is None

    def _left_s(self, failed_from: float) -> float:
        if self.deadline is None:
            return float("inf")
        self.deadline.failed(failed_from)
        return self.deadline.left_s


def _next_step(retry: int, limit: str, wait_s: float, left_s: float | None) -> str:
    tries = f"tries again at {clock_text(wait_s)} (retry {retry}{limit})"
    return tries if left_s is None else f"{tries}, gives up at {clock_text(left_s)} at the latest"

"""When a failed call is sent again, after which wait, and when it is given up.

Two limits hold. A call that is not answered is sent again `max_retries` times. A store that answers
"not now" (429, 503) is there and will take the call later: such answers use up no retries, and only
the time within which a step must succeed ends them.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

from bq_harper_assets.stores.waiting import WAITS, clock_text

LONGEST_WAIT_S = 30.0

_log = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Call:
    """What is being asked of which store, as logs and errors name it."""

    store: str  # Harper at https://harper.example.com:9925
    operation: str
    table: str | None = None
    cell: str | None = None  # which part of the table the call is for

    def __str__(self) -> str:
        table = f" on table {self.table!r}" if self.table else ""
        cell = f", cell {self.cell}" if self.cell else ""
        return f"{self.operation}{table}{cell}"


@dataclass(frozen=True)
class Retry:
    """One wait before a call is sent again."""

    call: Call
    attempt: int  # the first retry is 1
    wait_s: float
    reason: str


def never_told(error: Exception) -> float | None:
    """For stores that do not say when to come back."""
    return None


def _never(error: Exception) -> bool:
    return False


@dataclass(frozen=True)
class RetryPolicy:
    """Waits double from `initial_delay_s`, jittered, and never exceed 30 s; 0 retries send once."""

    max_retries: int = 5
    initial_delay_s: float = 1.0
    give_up_after_s: float | None = None  # counted from a call's first failure; None: no limit
    counts_storms: bool = False  # answers that say "not now" use up retries too
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random  # even over [0, 1)
    clock: Callable[[], float] = time.monotonic

    def wait_s(self, retry: int, retry_after_s: float | None = None) -> float:
        """The wait before retry 0, 1, 2...; what the store itself asked for wins."""
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), LONGEST_WAIT_S)
        # Past 2^64 every delay is over the cap, and a float would overflow.
        delay = self.initial_delay_s * 2.0 ** min(retry, 64)
        return min(delay + delay * self.chance(), LONGEST_WAIT_S)

    def once(self) -> "RetryPolicy":
        """The same without retries."""
        return replace(self, max_retries=0, give_up_after_s=None)

    def within(self, limit: timedelta) -> "RetryPolicy":
        """The same under a step's deadline; a policy without retries stays one."""
        if self.max_retries == 0:
            return self
        return replace(self, give_up_after_s=limit.total_seconds())

    def call(
        self,
        send: Callable[[], Result],
        *,
        is_transient: Callable[[Exception], bool],
        describe: Call,
        is_storm: Callable[[Exception], bool] = _never,
        retry_after_s: Callable[[Exception], float | None] = never_told,
        reason: Callable[[Exception], str] = str,
        on_retry: Callable[[Retry], None] = lambda retry: None,
    ) -> Result:
        """What `send` returns; its error, if that is not transient or a limit is reached."""
        retry = counted = 0
        failed_at: float | None = None
        while True:
            try:
                return send()
            except Exception as error:
                if not is_transient(error):
                    raise
                now = self.clock()
                failed_at = now if failed_at is None else failed_at
                is_counted = self._counts(is_storm(error))
                left_s = self._left_s(now - failed_at)
                if (is_counted and counted >= self.max_retries) or left_s <= 0:
                    _log.error("%s gave up after %d tries: %s", describe, retry + 1, reason(error))
                    raise
                wait = min(self.wait_s(retry, retry_after_s(error)), left_s)
                retry += 1
                counted += is_counted
                event = Retry(describe, retry, wait, reason(error))
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
            last = left_s if self.give_up_after_s is not None else None
            then = _next_step(retry, limit, wait, last)
            what = f"{describe}: {event.reason}"
            with WAITS.waiting(what, then, since_s=now - failed_at):
                self.sleep(wait)

    def _counts(self, is_storm: bool) -> bool:
        return not is_storm or self.counts_storms or self.give_up_after_s is None

    def _left_s(self, since_s: float) -> float:
        return float("inf") if self.give_up_after_s is None else self.give_up_after_s - since_s


def _next_step(retry: int, limit: str, wait_s: float, left_s: float | None) -> str:
    tries = f"tries again at {clock_text(wait_s)} (retry {retry}{limit})"
    return tries if left_s is None else f"{tries}, gives up at {clock_text(left_s)} at the latest"

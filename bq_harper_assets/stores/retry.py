"""When a failed call is sent again, and after which wait."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

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


@dataclass(frozen=True)
class RetryPolicy:
    """Waits double from `initial_delay_s`, jittered, and never exceed 30 s; 0 retries send once."""

    max_retries: int = 5
    initial_delay_s: float = 1.0
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random  # even over [0, 1)

    def wait_s(self, retry: int, retry_after_s: float | None = None) -> float:
        """The wait before retry 0, 1, 2...; what the store itself asked for wins."""
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), LONGEST_WAIT_S)
        # Past 2^64 every delay is over the cap, and a float would overflow.
        delay = self.initial_delay_s * 2.0 ** min(retry, 64)
        return min(delay + delay * self.chance(), LONGEST_WAIT_S)

    def once(self) -> "RetryPolicy":
        """The same without retries."""
        return replace(self, max_retries=0)

    def call(
        self,
        send: Callable[[], Result],
        *,
        is_transient: Callable[[Exception], bool],
        describe: Call,
        retry_after_s: Callable[[Exception], float | None] = never_told,
        reason: Callable[[Exception], str] = str,
        on_retry: Callable[[Retry], None] = lambda retry: None,
    ) -> Result:
        """What `send` returns; its error, if that is not transient or the retries are used up."""
        retry = 0
        while True:
            try:
                return send()
            except Exception as error:
                if not is_transient(error):
                    raise
                if retry >= self.max_retries:
                    _log.error("%s gave up after %d tries: %s", describe, retry + 1, reason(error))
                    raise
                wait = self.wait_s(retry, retry_after_s(error))
                retry += 1
                event = Retry(describe, retry, wait, reason(error))
            _log.warning(
                "%s: retry %d of %d in %.3f s: %s",
                describe,
                retry,
                self.max_retries,
                wait,
                event.reason,
                extra={"retry": event},
            )
            on_retry(event)
            self.sleep(wait)

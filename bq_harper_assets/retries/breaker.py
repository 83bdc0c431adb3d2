"""A circuit breaker stops calls for a table whose store keeps failing, then tries one call.

closed ──5 calls in a row failed──> open ──60 s──> half-open: one probe ──it works──> closed
                                     ^                             └──it fails──> open
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from bq_harper_assets.errors import TransientError
from bq_harper_assets.retries.retry import Call, RetryPolicy

FAILURES_TO_OPEN = 5
OPEN_FOR_S = 60.0

_AT_LEAST_S = 0.5  # a call waits at least so long before it asks again whether a probe has ended

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class CircuitOpen(TransientError):
    """The call was not sent, because its store has just failed several times for this table."""

    def __init__(self, call: Call, failures: int, next_try_in_s: float) -> None:
        super().__init__(call, failures, next_try_in_s)
        self.call = call
        self.next_try_in_s = next_try_in_s
        self._failures = failures

    def __str__(self) -> str:
        when = f"in {self.next_try_in_s:.1f} s" if self.next_try_in_s > 0 else "being made now"
        return (
            f"circuit breaker open for {self.call}: {self.said}, so this one was not sent. The"
            f" next try is {when}. "
            "What was written stays. Next: bqh doctor, then run the same command again"
        )

    @property
    def said(self) -> str:
        """Says in one clause why the breaker is open."""
        return f"{self.call.store} failed {self._failures} calls in a row"


@dataclass
class _Breaker:
    failures: int = 0
    opened_at: float | None = None
    probing: bool = False
    # A call that began before the last change says nothing about what came after it.
    changes: int = 0


@dataclass(frozen=True)
class Admission:
    """An admission lets one call be sent: ask `check` before each try; a probe is tried once."""

    is_probe: bool
    check: Callable[[], None]


class Breakers:
    """Breakers keep one breaker per store and table, and all threads of a process share them."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._breakers: dict[tuple[str, str | None], _Breaker] = {}

    @contextmanager
    def admit(
        self, call: Call, *, is_failure: Callable[[BaseException], bool]
    ) -> Iterator[Admission]:
        """Admits one call, which is the body with all its retries.

        An error that is not a failure leaves the breaker as it is.
        """
        with self._lock:
            breaker = self._breakers.setdefault((call.store, call.table), _Breaker())
            is_probe = self._enter(breaker, call)
            entered = breaker.changes
        outcome: bool | None = None
        try:
            yield Admission(is_probe, lambda: self._check(breaker, call, entered))
            outcome = True
        except BaseException as error:
            outcome = False if is_failure(error) else None
            raise
        finally:
            with self._lock:
                if breaker.changes == entered:
                    self._leave(breaker, call, outcome)

    def _enter(self, breaker: _Breaker, call: Call) -> bool:
        if breaker.opened_at is None:
            return False
        if breaker.probing or self._left_s(breaker.opened_at) > 0:
            raise CircuitOpen(call, breaker.failures, self._left_s(breaker.opened_at))
        breaker.probing = True
        breaker.changes += 1
        return True

    def _check(self, breaker: _Breaker, call: Call, entered: int) -> None:
        with self._lock:
            if breaker.changes != entered and breaker.opened_at is not None:
                raise CircuitOpen(call, breaker.failures, self._left_s(breaker.opened_at))

    def _leave(self, breaker: _Breaker, call: Call, worked: bool | None) -> None:
        was_open = breaker.opened_at is not None
        breaker.probing = False
        if worked is None:
            return
        if worked:
            breaker.failures = 0
            breaker.opened_at = None
            if was_open:
                breaker.changes += 1
                _log.warning("circuit breaker closed for %s: %s works again", call, call.store)
            return
        breaker.failures += 1
        if was_open or breaker.failures >= FAILURES_TO_OPEN:
            breaker.opened_at = self._clock()
            breaker.changes += 1
            _log.error(
                "circuit breaker open for %s: %s failed %d calls in a row; next try in %g s",
                call,
                call.store,
                breaker.failures,
                OPEN_FOR_S,
            )

    def _left_s(self, opened_at: float) -> float:
        return max(opened_at + OPEN_FOR_S - self._clock(), 0.0)


def patiently(policy: RetryPolicy, call: Call, attempt: Callable[[], _Result]) -> _Result:
    """Makes the attempt, and makes it again within the policy's deadline if a breaker stops it."""
    if policy.deadline is None:
        return attempt()
    return policy.call(
        attempt,
        is_transient=_is_open,
        is_storm=_is_open,
        describe=call,
        retry_after_s=_next_try_s,
        reason=_told_short,
    )


def _is_open(error: Exception) -> bool:
    return isinstance(error, CircuitOpen)


def _next_try_s(error: Exception) -> float | None:
    return max(error.next_try_in_s, _AT_LEAST_S) if isinstance(error, CircuitOpen) else None


def _told_short(error: Exception) -> str:
    return error.said if isinstance(error, CircuitOpen) else str(error)


# Clients come and go with each step of a run, but what they learnt of a store has to stay.
PROCESS_BREAKERS = Breakers()

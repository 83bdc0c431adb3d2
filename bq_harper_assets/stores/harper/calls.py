"""Sends one call to Harper, with its breaker, its retries, and the answers that mean "not yet"."""

import time
from collections.abc import Callable

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.retries.breaker import Breakers, patiently
from bq_harper_assets.retries.retry import Call, Retry, RetryPolicy
from bq_harper_assets.stores.harper.errors import (
    HarperError,
    HarperIndexing,
    HarperNotFound,
    HarperRefused,
    HarperUnavailable,
)
from bq_harper_assets.stores.harper.transport import Request, Timeouts, Transport

# A server thread may not know yet of a table that another thread has just made.
NEW_TABLE_S = 5.0
NEW_TABLE_WAIT_S = 0.2

_READS = frozenset(
    {
        "describe_all",
        "describe_table",
        "search_by_conditions",
        "search_by_id",
        "search_by_value",
        "system_information",
    }
)
# These take longer the more rows there are.
_SLOW = frozenset(
    {
        "create_attribute",
        "describe_all",
        "search_by_conditions",
        "system_information",
    }
)


class Calls:
    """Calls are sent until they are answered, refused, out of retries or stopped by a breaker."""

    def __init__(
        self,
        connection: HarperConnection,
        *,
        retry: RetryPolicy,
        breakers: Breakers,
        timeouts: Timeouts,
        send_guard: Callable[[], None] | None,
        on_retry: Callable[[Retry], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.transport = Transport(connection, send_guard=send_guard, clock=clock)
        self._retry = retry
        self._breakers = breakers
        self._timeouts = timeouts
        self._on_retry = on_retry
        self._clock = clock
        self._made_at: dict[str, float] = {}

    def send(
        self, call: Call, body: bytes, *, accept: type[HarperRefused] | None = None
    ) -> bytes | HarperRefused:
        """Returns the answer's body, or a refusal of the class `accept`, which is no error here."""
        return patiently(self._retry, call, lambda: self._admitted(call, body, accept))

    def _admitted(
        self, call: Call, body: bytes, accept: type[HarperRefused] | None
    ) -> bytes | HarperRefused:
        with self._breakers.admit(call, is_failure=_is_failure) as admission:
            tries = 0

            def attempt() -> bytes:
                nonlocal tries
                admission.check()
                tries += 1
                try:
                    return self._once(call, body)
                except HarperUnavailable as error:
                    error.tries = tries
                    raise

            # A probe is a single request: a Harper that is just coming back must not be flooded.
            policy = self._retry.once() if admission.is_probe else self._retry
            try:
                return policy.call(
                    attempt,
                    is_transient=_is_transient,
                    is_storm=_is_storm,
                    describe=call,
                    retry_after_s=_retry_after_s,
                    reason=_reason,
                    on_retry=self._on_retry,
                )
            except HarperRefused as error:
                if accept is None or not isinstance(error, accept):
                    raise
                return error

    def note_table(self, table: str) -> None:
        """Notes that Harper calls a table existing: for a while, answers that deny it are late."""
        self._made_at[table] = self._clock()

    def knows_table(self, table: str) -> bool:
        """Says whether Harper has ever called the table existing."""
        return table in self._made_at

    def _once(self, call: Call, body: bytes) -> bytes:
        slow = call.operation in _SLOW
        read_s = self._timeouts.slow_read_s if slow else self._timeouts.read_s
        within = self._retry.at_most_s
        try:
            return self.transport.send(
                Request(
                    call,
                    body,
                    timeout=(within(self._timeouts.connect_s), within(read_s)),
                    writes=call.operation not in _READS,
                )
            )
        except HarperNotFound as error:
            # describe_table is the way to ask whether a table exists, so its no is final.
            if call.operation == "describe_table" or not self._is_new(call.table):
                raise
            raise HarperUnavailable(call, error.said, error.status, NEW_TABLE_WAIT_S) from error

    def _is_new(self, table: str | None) -> bool:
        made_at = self._made_at.get(table) if table else None
        return made_at is not None and self._clock() - made_at < NEW_TABLE_S


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, HarperUnavailable)


def _is_storm(error: Exception) -> bool:
    return isinstance(error, HarperUnavailable) and error.status in (429, 503)


def _is_failure(error: BaseException) -> bool:
    return _is_transient(error) and not isinstance(error, HarperIndexing)


def _retry_after_s(error: Exception) -> float | None:
    return error.retry_after_s if isinstance(error, HarperUnavailable) else None


def _reason(error: Exception) -> str:
    return f"{error.call.store} {error.said}" if isinstance(error, HarperError) else str(error)

"""Sends one call to BigQuery, with our retries and our breaker around it."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.retries.breaker import Breakers, patiently
from bq_harper_assets.retries.retry import Call, Retry, RetryPolicy
from bq_harper_assets.retries.waiting import WAITS, clock_text
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryRefused,
    BigQueryUnavailable,
    Feature,
    ReadSessionLost,
    google_errors,
    is_own_failure,
    is_storm,
    retry_after_s,
)

REQUEST_TIMEOUT_S = 60.0
# The library would repeat a failed request for ten minutes. It takes None, against its own types.
NO_RETRY: Any = None

_Result = TypeVar("_Result")


DEFAULT_RETRIES = 5
# The emulator fails at the same query each time; BigQuery itself is worth more patience.
FAILURES_OF_EMULATOR = 3


class BigQueryCalls:
    """BigQuery calls are sent as often as the connection says, with one breaker per table.

    If the connection names a number of retries, it counts for every failure. Otherwise answers that
    say "not now" are waited out for as long as `give_up_after` says.
    """

    def __init__(
        self,
        connection: BigQueryConnection,
        *,
        retry: RetryPolicy | None = None,
        breakers: Breakers | None = None,
        on_retry: Callable[[Retry], None] = lambda retry: None,
        give_up_after: timedelta | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.connection = connection
        self.sleep = sleep
        self._store = f"BigQuery at {connection.endpoint or connection.project}"
        policy = retry or RetryPolicy(
            max_retries=DEFAULT_RETRIES
            if connection.max_retries is None
            else connection.max_retries,
            initial_delay_s=connection.initial_retry_delay_ms / 1000,
            sleep=sleep,
            counts_storms=connection.max_retries is not None,
        )
        self._retry = policy.within(give_up_after) if give_up_after else policy
        self._breakers = breakers or Breakers()
        self._on_retry = on_retry
        self.sent = 0  # calls so far, each try counted

    @property
    def request_s(self) -> float:
        """Returns how long one request may take: no longer than the step's deadline leaves it."""
        return self.at_most_s(REQUEST_TIMEOUT_S)

    def at_most_s(self, seconds: float) -> float:
        """Limits the seconds to what the step's deadline leaves of them."""
        return self._retry.at_most_s(seconds)

    def note_answer(self) -> None:
        """Notes that BigQuery has answered a call that polls, though it is not done yet."""
        if self._retry.deadline is not None:
            self._retry.deadline.succeeded()

    def call(
        self,
        send: Callable[[], _Result],
        *,
        doing: str,
        feature: Feature,
        table: str | None = None,
        cell: str | None = None,
        limit_s: float | None = None,
    ) -> _Result:
        """Returns what `send` returns, or raises an error of ours.

        It is sent again while BigQuery is busy or away. `limit_s` is how long one try may take, if
        that is not the time of a request.
        """
        call = Call(self._store, doing, table, cell)
        failures: list[BigQueryUnavailable] = []

        def watched() -> _Result:
            self.sent += 1
            try:
                with google_errors(self.connection, str(call), feature):
                    return send()
            except BigQueryUnavailable as error:
                failures.extend([error] if is_own_failure(error) else [])
                if self.connection.endpoint is None or len(failures) < FAILURES_OF_EMULATOR:
                    raise
                raise BigQueryRefused(
                    f"{call} fails inside the BigQuery emulator each time it is tried: {error} It"
                    " is about the query, so it is not sent again; name fewer columns, or take a"
                    " profile with BigQuery itself"
                ) from error

        return patiently(self._retry, call, lambda: self._admitted(call, watched, limit_s))

    def _admitted(self, call: Call, send: Callable[[], _Result], limit_s: float | None) -> _Result:
        with self._breakers.admit(call, is_failure=_is_transient) as admission:

            def send_once() -> _Result:
                admission.check()
                what = f"{call.store} to answer: {call}"
                ends = clock_text(self.request_s if limit_s is None else limit_s)
                with WAITS.waiting(what, f"gives this try up at {ends} at the latest"):
                    return send()

            policy = self._retry.once() if admission.is_probe else self._retry
            return policy.call(
                send_once,
                is_transient=_is_transient,
                is_storm=is_storm,
                describe=call,
                retry_after_s=retry_after_s,
                on_retry=self._on_retry,
            )


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, BigQueryUnavailable) and not isinstance(error, ReadSessionLost)

"""One call to BigQuery, with our retries and our breaker around it."""

from collections.abc import Callable
from typing import Any, TypeVar

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryUnavailable,
    Feature,
    google_errors,
    retry_after_s,
)
from bq_harper_assets.stores.breaker import Breakers
from bq_harper_assets.stores.retry import Call, Retry, RetryPolicy

REQUEST_TIMEOUT_S = 60.0
# The library would repeat a failed request for ten minutes; it takes None, its annotations do not.
NO_RETRY: Any = None

Result = TypeVar("Result")


class BigQueryCalls:
    """How often a call is sent: as the connection says, for every table apart."""

    def __init__(
        self,
        connection: BigQueryConnection,
        *,
        retry: RetryPolicy | None = None,
        breakers: Breakers | None = None,
        on_retry: Callable[[Retry], None] = lambda retry: None,
    ) -> None:
        self.connection = connection
        self._store = f"BigQuery at {connection.endpoint or connection.project}"
        self._retry = retry or RetryPolicy(
            connection.max_retries, connection.initial_retry_delay_ms / 1000
        )
        self._breakers = breakers or Breakers()
        self._on_retry = on_retry

    def call(
        self,
        send: Callable[[], Result],
        *,
        doing: str,
        feature: Feature,
        table: str | None = None,
        cell: str | None = None,
    ) -> Result:
        """What `send` returns, sent again while BigQuery is busy or away; else an error of ours."""
        call = Call(self._store, doing, table, cell)
        with self._breakers.admit(call, is_failure=_is_transient) as admission:

            def send_once() -> Result:
                admission.check()
                with google_errors(self.connection, str(call), feature):
                    return send()

            policy = self._retry.once() if admission.is_probe else self._retry
            return policy.call(
                send_once,
                is_transient=_is_transient,
                describe=call,
                retry_after_s=retry_after_s,
                on_retry=self._on_retry,
            )


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, BigQueryUnavailable)

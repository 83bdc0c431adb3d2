"""Says what BigQuery's errors mean; the class decides whether a call is sent again.

BigQueryError
├── BigQueryUnavailable      no answer, 5xx, a broken connection: sent again
│   ├── BigQueryBusy         429, rate limit, quota: sent again, later
│   └── ReadSessionLost      the streams of a session are gone: a new session is opened
└── BigQueryRefused          a wrong query, a limit of ours: never sent again
    ├── BigQueryForbidden    a permission is missing, and the text names it
    └── BigQueryMissing      no such project, dataset, table or job
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.sync.errors import SplitsLost

# The same status means different things: BigQuery's own word for the reason comes first.
_BUSY = {
    "rateLimitExceeded",
    "userRateLimitExceeded",
    "jobRateLimitExceeded",
    "quotaExceeded",
}
_AWAY = {
    "backendError",
    "internalError",
    "badGateway",
    "jobBackendError",
    "jobInternalError",
    "tableUnavailable",
}
_FORBIDDEN = {"accessDenied", "forbidden", "authError"}
_WRONG = {"invalid", "invalidQuery", "outOfRange", "notImplemented", "bytesBilledLimitExceeded"}


class BigQueryError(BqhError):
    """BigQuery could not do what was asked."""


class BigQueryUnavailable(BigQueryError, TransientError):
    """BigQuery gave no answer, or none of use: the same call may work later."""


class BigQueryRefused(BigQueryError):
    """BigQuery answered no, or would: the same call will not work again."""


class BigQueryBusy(BigQueryUnavailable):
    """BigQuery got too many requests, or a quota is used up: later it may work."""


class ReadSessionLost(BigQueryUnavailable, SplitsLost):
    """BigQuery no longer knows a session or its streams: the same rows come from a new one."""


class BigQueryForbidden(BigQueryRefused):
    """A permission is missing."""


class BigQueryMissing(BigQueryRefused):
    """The thing that was named does not exist, or not in this location."""


class Feature(Enum):
    """A feature is something that we use BigQuery for, with the permissions that it needs."""

    QUERY = ("bigquery.jobs.create", "bigquery.tables.getData")
    DESCRIBE = ("bigquery.tables.get",)
    PARTITIONS = ("bigquery.jobs.create", "bigquery.tables.get", "bigquery.tables.list")
    READ = (
        "bigquery.readsessions.create",
        "bigquery.readsessions.getData",
        "bigquery.tables.getData",
    )
    KEEP_RESULT = (
        "bigquery.jobs.create",
        "bigquery.tables.getData",
        "bigquery.datasets.get",
        "bigquery.datasets.create",
        "bigquery.tables.create",
        "bigquery.tables.updateData",
        "bigquery.tables.list",
        "bigquery.tables.delete",
    )
    FILL = (
        "bigquery.jobs.create",
        "bigquery.datasets.create",
        "bigquery.tables.create",
        "bigquery.tables.get",
        "bigquery.tables.getData",
        "bigquery.tables.update",
        "bigquery.tables.updateData",
        "bigquery.tables.delete",
    )


def from_google(
    error: Exception, connection: BigQueryConnection, doing: str, feature: Feature
) -> BigQueryError:
    """Makes our error for one of Google's; chain it with `from`."""
    kind, hint = _meaning(error, connection, feature)
    if connection.endpoint is not None and _is_unreached(error):
        happened = f"BigQuery does not answer at {connection.endpoint}, while {doing}"
    else:
        where = connection.endpoint or f"project {connection.project}"
        happened = f"BigQuery ({where}) failed while {doing}: {_first_line(error)}"
    return kind(f"{happened}. What was stored before is safe; {hint}.")


def is_storm(error: BaseException) -> bool:
    """Says whether BigQuery answered that it will take the call later, which shows it is there."""
    response = getattr(error.__cause__, "response", None)  # for gRPC it is not an HTTP response
    return isinstance(error, BigQueryBusy) or getattr(response, "status_code", None) == 503


def is_own_failure(error: BaseException) -> bool:
    """Says whether the server answered 500 without a reason: it failed at what was asked."""
    response = getattr(error.__cause__, "response", None)
    return isinstance(error, BigQueryUnavailable) and getattr(response, "status_code", 0) == 500


def retry_after_s(error: BaseException) -> float | None:
    """Returns how many seconds BigQuery asks us to wait, or None if it does not say."""
    response = getattr(error.__cause__, "response", None)
    text = getattr(response, "headers", {}).get("Retry-After", "")
    return float(text) if text.isdecimal() else None


@contextmanager
def google_errors(connection: BigQueryConnection, doing: str, feature: Feature) -> Iterator[None]:
    """Raises our errors instead of Google's."""
    import requests
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except (
        GoogleAPIError,
        GoogleAuthError,
        requests.exceptions.RequestException,
        OSError,  # a reset connection, and a timeout as the library passes it on
    ) as error:
        raise from_google(error, connection, doing, feature) from error


def _meaning(
    error: Exception, connection: BigQueryConnection, feature: Feature
) -> tuple[type[BigQueryError], str]:
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests.exceptions import SSLError

    reason, status = _reason(error), getattr(error, "code", None)
    if reason in _BUSY or (status == 429 and reason not in _WRONG):
        return BigQueryBusy, (
            "it is tried again by itself; if this goes on, raise sync.pollInterval or lower"
            " slices, or ask for more quota"
        )
    if reason in _FORBIDDEN or (status in (401, 403) and reason is None):
        return BigQueryForbidden, f"grant {', '.join(feature.value)}, then see `bqh doctor`"
    if status == 404 or reason == "notFound":
        return BigQueryMissing, (
            f"check projectId, dataset, table and location ({connection.location}) with"
            " `bqh doctor`"
        )
    if reason == "bytesBilledLimitExceeded":
        return BigQueryRefused, (
            f"raise {_limit(connection)}, name fewer columns, or sync fewer windows with"
            " `bqh sync --from --to`"
        )
    if isinstance(error, SSLError) or (
        isinstance(error, GoogleAuthError) and not isinstance(error, TransportError)
    ):
        return BigQueryRefused, (
            "set credentials, or run `gcloud auth application-default login`, then `bqh doctor`"
        )
    answered_no = isinstance(error, exceptions.ClientError) and not isinstance(
        error, exceptions.Aborted | exceptions.Cancelled
    )
    if reason not in _AWAY and (answered_no or reason in _WRONG or status == 501):
        return BigQueryRefused, (
            "check timestampColumn, columns, rowFilter and customQuery with `bqh doctor`"
        )
    if connection.endpoint is not None and status is None:
        return BigQueryUnavailable, "start the local stack with `bqh up` and try again"
    return BigQueryUnavailable, "it is tried again by itself; later, type the same command again"


def _limit(connection: BigQueryConnection) -> str:
    limit = connection.max_bytes_billed
    if limit is None:
        return "the limit on bytes billed"  # the query has a limit of its own
    return f"bigquery.maxBytesBilled (now {limit:,} bytes)"


def _is_unreached(error: Exception) -> bool:
    from requests.exceptions import ConnectionError as NotReached

    # The library's own retries wrap the error.
    return isinstance(error, NotReached) or isinstance(error.__cause__, NotReached)


def _first_line(error: Exception) -> str:
    """Returns the first line of an error: the rest is the library's report, query included."""
    lines = str(getattr(error, "message", None) or error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _reason(error: Any) -> str | None:
    """Returns BigQuery's word for the failure; the Storage API has none (None), only a status."""
    details = getattr(error, "errors", None) or ()
    first = details[0] if details else None
    return first.get("reason") if isinstance(first, dict) else None

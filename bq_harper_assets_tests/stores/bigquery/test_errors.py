"""What each answer of BigQuery means: sent again or not, and what the user is told to do."""

from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, TransportError

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.errors import (
    BigQueryBusy,
    BigQueryError,
    BigQueryForbidden,
    BigQueryMissing,
    BigQueryRefused,
    BigQueryUnavailable,
    Feature,
    from_google,
    google_errors,
    is_own_failure,
    is_storm,
    retry_after_s,
)

SERVICE = BigQueryConnection(project="shop", location="EU")
EMULATOR = BigQueryConnection(project="shop", endpoint="http://127.0.0.1:9050")


def answered(status: int, reason: str | None) -> Exception:
    details: list[Any] = [{"reason": reason, "message": "no"}] if reason else []
    return exceptions.from_http_status(status, "no", errors=details)


@pytest.mark.promise("I1")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered(429, None), BigQueryBusy),
        (answered(429, "rateLimitExceeded"), BigQueryBusy),
        (answered(403, "rateLimitExceeded"), BigQueryBusy),
        (answered(403, "quotaExceeded"), BigQueryBusy),
        (answered(400, "jobRateLimitExceeded"), BigQueryBusy),
        (exceptions.ResourceExhausted("streams"), BigQueryBusy),
        (answered(500, "backendError"), BigQueryUnavailable),
        (answered(500, "internalError"), BigQueryUnavailable),
        (answered(400, "jobBackendError"), BigQueryUnavailable),
        (answered(400, "jobInternalError"), BigQueryUnavailable),
        (answered(500, None), BigQueryUnavailable),
        (answered(502, None), BigQueryUnavailable),
        (answered(503, None), BigQueryUnavailable),
        (answered(504, None), BigQueryUnavailable),
        (exceptions.Unknown("stream removed"), BigQueryUnavailable),
        (exceptions.Aborted("again"), BigQueryUnavailable),
        (exceptions.DeadlineExceeded("too late"), BigQueryUnavailable),
        (requests.exceptions.ConnectionError("reset"), BigQueryUnavailable),
        (requests.exceptions.ChunkedEncodingError("cut"), BigQueryUnavailable),
        (requests.exceptions.ReadTimeout("slow"), BigQueryUnavailable),
        (TimeoutError(), BigQueryUnavailable),
        (TransportError("token server away"), BigQueryUnavailable),
        (answered(403, "accessDenied"), BigQueryForbidden),
        (answered(403, None), BigQueryForbidden),
        (answered(401, None), BigQueryForbidden),
        (exceptions.PermissionDenied("no"), BigQueryForbidden),
        (answered(404, "notFound"), BigQueryMissing),
        (exceptions.NotFound("no table"), BigQueryMissing),
        (answered(400, "invalidQuery"), BigQueryRefused),
        (answered(400, None), BigQueryRefused),
        (answered(500, "outOfRange"), BigQueryRefused),
        (answered(403, "responseTooLarge"), BigQueryRefused),
        (answered(403, "billingNotEnabled"), BigQueryRefused),
        (answered(409, "duplicate"), BigQueryRefused),
        (answered(501, None), BigQueryRefused),
        (exceptions.InvalidArgument("filter"), BigQueryRefused),
        (requests.exceptions.SSLError("certificate"), BigQueryRefused),
        (DefaultCredentialsError("none"), BigQueryRefused),
    ],
    ids=lambda value: (
        value.__name__
        if isinstance(value, type)
        else f"{type(value).__name__}-{getattr(value, 'code', None)}"
    ),
)
def test_the_class_of_an_error_says_whether_it_is_worth_another_try(
    error: Exception, kind: type[BigQueryError]
) -> None:
    ours = from_google(error, SERVICE, "reading", Feature.READ)

    assert type(ours) is kind
    assert "stored before is safe" in str(ours)


@pytest.mark.promise("E3")
@pytest.mark.promise("N3")
@pytest.mark.parametrize(
    ("feature", "permissions"),
    [
        (Feature.QUERY, "bigquery.jobs.create, bigquery.tables.getData"),
        (Feature.DESCRIBE, "bigquery.tables.get"),
        (Feature.PARTITIONS, "bigquery.jobs.create, bigquery.tables.get, bigquery.tables.list"),
        (
            Feature.READ,
            "bigquery.readsessions.create, bigquery.readsessions.getData, bigquery.tables.getData",
        ),
        (
            Feature.KEEP_RESULT,
            "bigquery.jobs.create, bigquery.tables.getData, bigquery.datasets.get,"
            " bigquery.datasets.create, bigquery.tables.create, bigquery.tables.updateData,"
            " bigquery.tables.list, bigquery.tables.delete",
        ),
        (
            Feature.FILL,
            "bigquery.jobs.create, bigquery.datasets.create, bigquery.tables.create,"
            " bigquery.tables.get, bigquery.tables.getData, bigquery.tables.update,"
            " bigquery.tables.updateData, bigquery.tables.delete",
        ),
    ],
)
def test_a_missing_permission_is_named_for_what_was_being_done(
    feature: Feature, permissions: str
) -> None:
    error = from_google(answered(403, "accessDenied"), SERVICE, "reading", feature)

    assert str(error) == (
        "BigQuery (project shop) failed while reading: no. What was stored before is safe; grant"
        f" {permissions}, then see `bqh doctor`."
    )


def test_every_feature_has_its_message() -> None:
    (cases,) = [
        mark.args[1]
        for mark in test_a_missing_permission_is_named_for_what_was_being_done.pytestmark
        if mark.name == "parametrize"
    ]
    assert [feature for feature, _ in cases] == list(Feature)


@pytest.mark.promise("N3")
@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (
            answered(429, "rateLimitExceeded"),
            "no. What was stored before is safe; it is tried again by itself; if this goes on,"
            " raise sync.pollInterval or lower slices, or ask for more quota.",
        ),
        (
            answered(503, "backendError"),
            "no. What was stored before is safe; it is tried again by itself; later, type the same"
            " command again.",
        ),
        (
            answered(400, "invalidQuery"),
            "no. What was stored before is safe; check timestampColumn, columns, rowFilter and"
            " customQuery with `bqh doctor`.",
        ),
        (
            answered(404, "notFound"),
            "no. What was stored before is safe; check projectId, dataset, table and location (EU)"
            " with `bqh doctor`.",
        ),
        (
            answered(400, "bytesBilledLimitExceeded"),
            "no. What was stored before is safe; raise the limit on bytes billed, name fewer"
            " columns, or sync fewer windows with `bqh sync --from --to`.",
        ),
        (
            DefaultCredentialsError("none"),
            "none. What was stored before is safe; set credentials, or run `gcloud auth"
            " application-default login`, then `bqh doctor`.",
        ),
    ],
)
def test_each_kind_of_answer_has_its_hint(error: Exception, hint: str) -> None:
    with (
        pytest.raises(BigQueryError) as raised,
        google_errors(SERVICE, "reading", Feature.QUERY),
    ):
        raise error

    assert str(raised.value) == f"BigQuery (project shop) failed while reading: {hint}"
    assert raised.value.__cause__ is error


def test_an_emulator_that_is_not_there_is_to_be_started() -> None:
    local = BigQueryConnection(project="local", endpoint="http://127.0.0.1:1")
    refused = requests.exceptions.ConnectionError("connection refused")

    assert "bqh up" in str(from_google(refused, local, "reading", Feature.READ))


def test_the_text_of_a_query_stays_out_of_the_error() -> None:
    error = exceptions.BadRequest("syntax\n\n-----Query Job SQL Follows-----\nSELECT secret")

    assert "secret" not in str(from_google(error, SERVICE, "reading", Feature.QUERY))


@pytest.mark.parametrize(
    ("error", "is_unreached"),
    [
        (requests.exceptions.ConnectionError("refused"), True),
        (exceptions.RetryError("late", requests.exceptions.ConnectionError("refused")), True),
        (answered(503, None), False),
    ],
)
def test_only_of_an_emulator_that_was_not_reached_it_is_told_that_it_does_not_answer(
    error: Exception, is_unreached: bool
) -> None:
    if isinstance(error, exceptions.RetryError):
        error.__cause__ = error.cause
    told = str(from_google(error, EMULATOR, "counting", Feature.READ))
    assert ("BigQuery does not answer at http://127.0.0.1:9050" in told) is is_unreached
    assert ("BigQuery (http://127.0.0.1:9050) failed while counting" in told) is not is_unreached
    of_service = str(from_google(error, SERVICE, "counting", Feature.READ))
    assert "BigQuery (project shop) failed while counting" in of_service


@pytest.mark.parametrize(
    ("connection", "error", "is_to_be_started"),
    [
        (SERVICE, requests.exceptions.ConnectionError("refused"), False),
        (SERVICE, answered(503, None), False),
        (EMULATOR, TimeoutError(), True),
        (EMULATOR, answered(503, None), False),
    ],
)
def test_only_an_emulator_that_gave_no_answer_is_to_be_started(
    connection: BigQueryConnection, error: Exception, is_to_be_started: bool
) -> None:
    told = str(from_google(error, connection, "counting", Feature.READ))
    assert ("bqh up" in told) is is_to_be_started


def test_the_limit_of_the_connection_is_named_with_its_size() -> None:
    error = answered(400, "bytesBilledLimitExceeded")
    limited = SERVICE.model_copy(update={"max_bytes_billed": 5_000})
    told = str(from_google(error, limited, "reading", Feature.READ))
    assert "raise bigquery.maxBytesBilled (now 5,000 bytes), name fewer columns" in told


def _caused(kind: type[BigQueryError], status: int | None, **headers: str) -> BigQueryError:
    """As our error is chained to Google's, which has the HTTP response."""
    response = None
    if status is not None:
        response = requests.Response()
        response.status_code = status
        response.headers.update({name.replace("_", "-"): text for name, text in headers.items()})
    error = kind("no")
    error.__cause__ = exceptions.GoogleAPICallError("no", response=response)
    return error


@pytest.mark.parametrize(
    ("error", "storm", "own_failure"),
    [
        (_caused(BigQueryBusy, 429), True, False),
        (_caused(BigQueryBusy, None), True, False),
        (_caused(BigQueryUnavailable, 503), True, False),
        (_caused(BigQueryUnavailable, 504), False, False),
        (_caused(BigQueryUnavailable, 500), False, True),
        (_caused(BigQueryUnavailable, 501), False, False),
        (_caused(BigQueryUnavailable, None), False, False),
        (_caused(BigQueryRefused, 500), False, False),
        (BigQueryUnavailable("no"), False, False),
    ],
)
def test_a_storm_and_a_failure_of_the_server_are_told_apart(
    error: BigQueryError, storm: bool, own_failure: bool
) -> None:
    assert (is_storm(error), is_own_failure(error)) == (storm, own_failure)


def test_how_long_to_wait_is_read_if_bigquery_says_it_in_seconds() -> None:
    assert retry_after_s(_caused(BigQueryBusy, 429, Retry_After="7")) == 7.0
    assert retry_after_s(_caused(BigQueryBusy, 429, Retry_After="soon")) is None
    assert retry_after_s(_caused(BigQueryBusy, 429)) is None
    assert retry_after_s(BigQueryBusy("no")) is None

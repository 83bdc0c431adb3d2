"""Checks whether the query that a user would send finds the newest rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import MICROSECOND
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.reading.target_rows import text_of
from bq_harper_assets.sync.cells.window import Span, Window
from bq_harper_assets.validation.progress.due_rows import (
    Waiting,
    due_until,
    in_words,
    waiting_in,
)
from bq_harper_assets.validation.subject import Subject, instant_of
from bq_harper_assets.validation.verdict import Severity, SmokeStatus, Verdict

SMOKE_CHECK = "smoke"
RECENT = timedelta(minutes=5)
# Progress calls a table lagging from here on, so the two checks never say pass and error at once.
_LATE = timedelta(minutes=10)
MOST_COUNTED = 1_000
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


def check_smoke(
    subject: Subject, now: datetime | None = None, newest_of_run: Window | None = None
) -> Verdict:
    """Searches the last five minutes; after a turn of older windows, the newest of these windows.

    Old windows that are synced again say nothing about the last five minutes.
    """
    now = now or now_of(subject)
    contract = subject.contract
    if newest_of_run and newest_of_run.end + contract.window + contract.safety_lag <= now:
        return _check_window(subject, newest_of_run, now)
    recent = (now - RECENT, now)
    try:
        count = _count(subject, recent)
        newest = None if count else _newest(subject, now)
    except BqhError as error:
        return _failed(subject, error, recent)
    metadata = {"newest_row": newest.isoformat() if newest else None}
    if count:
        return _with_rows(count, recent, metadata)
    after = newest + MICROSECOND if newest else contract.sync.start_timestamp
    expected = (after or _BEGINNING, due_until(contract, now))
    return _without_rows(subject, now, recent, metadata, _asked(subject, expected))


def _check_window(subject: Subject, window: Window, now: datetime) -> Verdict:
    asked = (window.start, window.end)
    try:
        count = _count(subject, asked)
    except BqhError as error:
        return _failed(subject, error, asked)
    if count:
        return _with_rows(count, asked, {})
    return _without_rows(subject, now, asked, {}, _asked(subject, asked))


def now_of(subject: Subject) -> datetime:
    """Asks BigQuery for the time; gives this machine's time if BigQuery does not answer."""
    try:
        return server_time(subject.queries)
    except BqhError:
        return datetime.now(UTC)


def _asked(subject: Subject, expected: Span) -> Waiting | BqhError:
    """Counts the rows that BigQuery has in the span, or gives the error if it does not answer."""
    try:
        return waiting_in(subject, [expected]).get(expected, Waiting())
    except BqhError as error:
        return error


def _with_rows(count: int, asked: Span, metadata: dict[str, Any]) -> Verdict:
    many = f"at least {count:,}" if count == MOST_COUNTED else f"{count:,}"
    text = f"the query finds {many} rows"
    return _verdict(SmokeStatus.HEALTHY, text, asked, {"rows_found": count, **metadata})


def _without_rows(
    subject: Subject,
    now: datetime,
    asked: Span,
    metadata: dict[str, Any],
    waiting: Waiting | BqhError,
) -> Verdict:
    """Passes if the source has no row either; else the verdict depends on how long one is due."""
    shown = {"rows_found": 0, **metadata}
    if isinstance(waiting, BqhError):
        text = (
            f"the query finds no row, and BigQuery could not be asked if there are any: {waiting}"
        )
        return _verdict(SmokeStatus.NO_RECENT_DATA, text, asked, shown, Severity.WARN)
    overdue = waiting.overdue(subject.contract, now)
    shown |= {"source_rows": waiting.rows, "overdue_seconds": overdue.total_seconds()}
    if waiting.oldest is None:
        text = "the query finds no row, and BigQuery has none either that should be there"
        return _verdict(SmokeStatus.HEALTHY, text, asked, shown)
    told = (
        f"the query finds no row; BigQuery has {waiting.rows:,}, and the oldest of them, of "
        f"{waiting.oldest:%F %T} UTC, has been due for {in_words(overdue)}"
    )
    if overdue <= RECENT:
        return _verdict(SmokeStatus.HEALTHY, told, asked, shown)
    severity = Severity.WARN if overdue <= _LATE else Severity.ERROR
    return _verdict(SmokeStatus.NO_RECENT_DATA, told, asked, shown, severity)


def _failed(subject: Subject, error: BqhError, asked: Span) -> Verdict:
    is_there = _is_there(subject)
    status = SmokeStatus.QUERY_FAILED if is_there else SmokeStatus.TABLE_NOT_FOUND
    return _verdict(status, str(error), asked, {})


def _is_there(subject: Subject) -> bool:
    """Asks whether the table exists, because a search answers 400 to that and to much else."""
    try:
        return subject.harper.describe_table(subject.contract.target.table) is not None
    except BqhError:
        return True  # unknown, so the failure counts as the query's


def _count(subject: Subject, asked: Span) -> int:
    """Counts rows up to a limit; first it fetches one whole row, as a user would."""
    target, column = subject.contract.target.table, subject.time_column()
    bounds = [text_of(column.kind, moment) for moment in asked]
    within = [Condition(column.name, "gelt", bounds)]
    if not subject.harper.search_by_conditions(target, within, limit=1):
        return 0
    found = subject.harper.search_by_conditions(target, within, (column.name,), limit=MOST_COUNTED)
    return len(found)


def _newest(subject: Subject, now: datetime) -> datetime | None:
    """Finds the newest time before now: a future row does not show how recent the data is."""
    column = subject.time_column()
    rows = subject.harper.search_by_conditions(
        subject.contract.target.table,
        [Condition(column.name, "less_than", text_of(column.kind, now))],
        (column.name,),
        sort_by=column.name,
        descending=True,
        limit=1,
    )
    try:
        return instant_of(column.kind, rows[0][column.name]) if rows else None
    except ValueError:
        return None  # no sync wrote this text, so the newest time is unknown


def _verdict(
    status: SmokeStatus,
    message: str,
    asked: Span,
    metadata: dict[str, Any],
    severity: Severity = Severity.ERROR,
) -> Verdict:
    start, end = asked
    shown = {"from": start.isoformat(), "to": end.isoformat(), **metadata}
    return Verdict(
        check=SMOKE_CHECK,
        status=status,
        passed=status is SmokeStatus.HEALTHY,
        severity=severity,
        message=message,
        metadata=shown,
    )

"""Does the query that a user would send find the newest rows?"""

from datetime import UTC, datetime, timedelta
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.sync.held import text_of
from bq_harper_assets.sync.windows import Window
from bq_harper_assets.validation.due import Range, due_until, in_words, waiting_rows
from bq_harper_assets.validation.subject import Subject, instant_of
from bq_harper_assets.validation.verdict import Severity, SmokeStatus, Verdict

CHECK = "smoke"
RECENT = timedelta(minutes=5)
# Where progress begins to call a table lagging: the two never say pass and error of one state.
LATE = timedelta(minutes=10)
MOST_COUNTED = 1_000
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def check_smoke(
    subject: Subject, now: datetime | None = None, window: Window | None = None
) -> Verdict:
    """The last five minutes, or the given window: an old one is not expected to be recent."""
    try:
        now = now or server_time(subject.queries)
    except BqhError:
        now = datetime.now(UTC)
    recent = (window.start, min(window.end, now)) if window else (now - RECENT, now)
    try:
        count = _count(subject, recent)
        newest = None if count or window else _newest(subject, now)
    except BqhError as error:
        is_there = _is_there(subject)
        status = SmokeStatus.QUERY_FAILED if is_there else SmokeStatus.TABLE_NOT_FOUND
        return _verdict(status, str(error), recent, {})
    metadata = {"rows_found": count, "newest_row": newest.isoformat() if newest else None}
    if count:
        many = f"at least {count:,}" if count == MOST_COUNTED else f"{count:,}"
        return _verdict(SmokeStatus.HEALTHY, f"the query finds {many} rows", recent, metadata)
    return _without_rows(subject, now, recent, window, newest, metadata)


def _without_rows(
    subject: Subject,
    now: datetime,
    recent: Range,
    window: Window | None,
    newest: datetime | None,
    metadata: dict[str, Any],
) -> Verdict:
    """Silence is fine if the source is silent too; else it depends on for how long."""
    contract = subject.contract
    until = due_until(contract, now)
    if window:
        expected = (window.start, min(window.end, until))
    else:
        after = contract.sync.start_timestamp or _BEGINNING
        expected = (newest + _MICROSECOND if newest else after, until)
    try:
        waiting = waiting_rows(subject, [expected])
    except BqhError as error:
        text = f"the query finds no row, and BigQuery could not be asked if there are any: {error}"
        status, severity = SmokeStatus.NO_RECENT_DATA, Severity.WARN
        return _verdict(status, text, recent, metadata, severity)
    overdue = waiting.overdue(contract, now)
    metadata |= {"source_rows": waiting.rows, "overdue_seconds": overdue.total_seconds()}
    if waiting.oldest is None:
        text = "the query finds no row, and BigQuery has none either that should be there"
        return _verdict(SmokeStatus.HEALTHY, text, recent, metadata)
    told = (
        f"the query finds no row; BigQuery has {waiting.rows:,}, and the oldest of them, of "
        f"{waiting.oldest:%F %T} UTC, has been due for {in_words(overdue)}"
    )
    if overdue <= RECENT:
        return _verdict(SmokeStatus.HEALTHY, told, recent, metadata)
    severity = Severity.WARN if overdue <= LATE else Severity.ERROR
    return _verdict(SmokeStatus.NO_RECENT_DATA, told, recent, metadata, severity)


def _is_there(subject: Subject) -> bool:
    """Asked apart: a search says 400 of a missing table, as it does of many other things."""
    try:
        return subject.harper.describe_table(subject.contract.target_table) is not None
    except BqhError:
        return True  # nobody knows: what failed is the query


def _count(subject: Subject, recent: Range) -> int:
    """Up to a limit; one row is fetched whole, as a user would."""
    target, column = subject.contract.target_table, subject.time_column()
    bounds = [text_of(column.kind, moment) for moment in recent]
    within = [Condition(column.name, "gelt", bounds)]
    if not subject.harper.search_by_conditions(target, within, limit=1):
        return 0
    found = subject.harper.search_by_conditions(target, within, (column.name,), limit=MOST_COUNTED)
    return len(found)


def _newest(subject: Subject, now: datetime) -> datetime | None:
    """Of the rows before now: one of the future says nothing about how recent the data is."""
    column = subject.time_column()
    rows = subject.harper.search_by_conditions(
        subject.contract.target_table,
        [Condition(column.name, "less_than", text_of(column.kind, now))],
        (column.name,),
        sort_by=column.name,
        descending=True,
        limit=1,
    )
    try:
        return instant_of(column.kind, rows[0][column.name]) if rows else None
    except ValueError:
        return None  # no sync wrote that text: what BigQuery has is compared with nothing


def _verdict(
    status: SmokeStatus,
    message: str,
    recent: Range,
    metadata: dict[str, Any],
    severity: Severity = Severity.ERROR,
) -> Verdict:
    start, end = recent
    shown = {"from": start.isoformat(), "to": end.isoformat(), **metadata}
    return Verdict(CHECK, status, status is SmokeStatus.HEALTHY, severity, message, shown)

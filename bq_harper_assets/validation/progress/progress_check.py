"""Checks whether the sync keeps up, by the rows that are due, so that a quiet table is healthy."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.questions.progress import Checkpoint, Progress
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.stores.bigquery.fingerprint import count_outside
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.sync.cells.cell import slice_key
from bq_harper_assets.sync.cells.window import Span
from bq_harper_assets.validation.progress.due_rows import (
    Waiting,
    due_until,
    in_words,
    source_now,
    waiting_rows,
)
from bq_harper_assets.validation.progress.stuck_reasons import colliding_keys, diagnose
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import ProgressStatus, Severity, Verdict

PROGRESS_CHECK = "progress"
LAGGING_AFTER = timedelta(minutes=10)
SEVERELY_AFTER = timedelta(hours=1)
STALLED_AFTER = timedelta(minutes=10)
MOST_RANGES = 50  # in one query


@dataclass(frozen=True)
class ProgressFacts:
    """The progress facts are what the progress of a table is judged by."""

    overdue: timedelta  # for how long the oldest waiting row has been due
    since_commit: timedelta


def judge_progress(standing: ProgressFacts) -> ProgressStatus:
    """Judges the facts; a delay of exactly ten minutes or an hour still gets the better status."""
    if standing.overdue <= LAGGING_AFTER:
        return ProgressStatus.HEALTHY
    if standing.since_commit > STALLED_AFTER:
        return ProgressStatus.STALLED
    if standing.overdue > SEVERELY_AFTER:
        return ProgressStatus.SEVERELY_LAGGING
    return ProgressStatus.LAGGING


_SEVERITY = {
    ProgressStatus.HEALTHY: Severity.WARN,
    ProgressStatus.LAGGING: Severity.WARN,
    ProgressStatus.SEVERELY_LAGGING: Severity.ERROR,
    ProgressStatus.STALLED: Severity.ERROR,
    ProgressStatus.NO_CHECKPOINT: Severity.WARN,
    ProgressStatus.ROWS_WITHOUT_TIME: Severity.WARN,
}


def check_progress(subject: Subject, now: datetime | None = None) -> Verdict:
    """Judges a table by the rows of the source that are due and lie in windows not yet committed.

    If there are none, nothing is missing. Future rows are never due, so that they fake neither
    health nor lag. `now` is BigQuery's time if left out; if BigQuery does not answer, every
    unsynced window counts as due.
    """
    table, start = subject.table(), subject.start()
    known = subject.ledger.progress(table, start) if table and start else None
    if table is None or start is None or known is None or known.newest_commit_at is None:
        name = subject.contract.id
        text = f"{name} was never synced. Next: bqh sync {name}"
        return _verdict(ProgressStatus.NO_CHECKPOINT, text, {})
    return _judged(subject, table, start, known, known.newest_commit_at, now)


def _judged(
    subject: Subject,
    table: LedgerRoute,
    start: datetime,
    known: Progress,
    newest_commit: datetime,
    now: datetime | None,
) -> Verdict:
    contract = subject.contract
    unknown: str | None = None
    outside: dict[str, int] = {}
    try:
        now = now or server_time(subject.queries)
    except BqhError as error:
        now, unknown = subject.ledger.now(), str(error)
    until = due_until(contract, now)
    first = floor_to_window(known.synced_until, contract.window)
    cells = subject.ledger.cells(table, first, max(until, known.synced_until) + contract.window)
    missing = gaps(table, cells, known.synced_until, until)
    waiting = Waiting(oldest=missing[0][0] if missing else None)
    if unknown is None:
        try:
            waiting = waiting_rows(subject, missing)
            counted = count_outside(subject.queries, source_now(subject), start, now)
            outside = {
                "rows_without_time": counted.without_time,
                "rows_before_start": counted.before_start,
                "rows_in_future": counted.in_future,
            }
        except BqhError as error:
            unknown = str(error)
    standing = ProgressFacts(waiting.overdue(contract, now), now - newest_commit)
    points = subject.ledger.checkpoints(table, first)
    behind = slices_behind(points) if standing.overdue > LAGGING_AFTER else ()
    notes = [*diagnose(subject, table, points)]
    status = judge_progress(standing)
    # Only a stalled table is searched: each turn checks this itself, and it reads every row's key.
    if waiting.oldest and unknown is None and status is ProgressStatus.STALLED:
        window = floor_to_window(waiting.oldest, contract.window)
        notes += colliding_keys(subject, table, window, window + contract.window)
    if behind:
        notes.append(f"behind the other slices: {', '.join(behind)}")
    if unknown:
        notes.append(f"BigQuery could not be asked, so all windows count as due: {unknown}")
    if lost := outside.get("rows_without_time"):
        notes.append(without_time(contract, lost))
        if status is ProgressStatus.HEALTHY:
            status = ProgressStatus.ROWS_WITHOUT_TIME
    metadata = {
        "now": now.isoformat(),
        "synced_until": known.synced_until.isoformat(),
        "lag_seconds": max(now - known.synced_until, timedelta(0)).total_seconds(),
        "due_until": until.isoformat(),
        "rows_waiting": waiting.rows,
        "waiting_since": waiting.oldest.isoformat() if waiting.oldest else None,
        "overdue_seconds": standing.overdue.total_seconds(),
        "newest_commit": newest_commit.isoformat(),
        "slices_behind": list(behind),
        "diagnosis": notes,
        **outside,
    }
    return _verdict(status, _message(subject, status, waiting, standing, notes), metadata)


def gaps(
    table: LedgerRoute, cells: Sequence[CellRecord], start: datetime, until: datetime
) -> list[Span]:
    """Finds what of [start, until) some slice has not committed; too many gaps become one range."""
    held: dict[datetime, list[datetime]] = {}
    for record in cells:
        if record.commit is not None:
            held.setdefault(record.cell.window_start, []).append(record.commit.upto)
    found: list[Span] = []
    at = start
    for begin in sorted(held):
        if len(held[begin]) < table.facts.slices:
            continue
        if at < min(begin, until):
            found.append((at, min(begin, until)))
        at = max(at, min(held[begin]))
    if at < until:
        found.append((at, until))
    return found if len(found) <= MOST_RANGES else [(found[0][0], found[-1][1])]


def slices_behind(points: Sequence[Checkpoint]) -> tuple[str, ...]:
    """Names the slices that are behind the furthest one by more than the lagging limit."""
    furthest = max(point.until for point in points)
    return tuple(
        slice_key(point.slice) for point in points if furthest - point.until > LAGGING_AFTER
    )


def _message(
    subject: Subject,
    status: ProgressStatus,
    waiting: Waiting,
    standing: ProgressFacts,
    notes: Sequence[str],
) -> str:
    if waiting.oldest is None:
        text = "nothing is due: BigQuery has no row that Harper should have and was not given"
    else:
        text = (
            f"{waiting.rows:,} rows wait, the oldest of {waiting.oldest:%F %T} UTC; it has been "
            f"due for {in_words(standing.overdue)}"
        )
    if status is ProgressStatus.STALLED:
        text += (
            f", and nothing was committed for {in_words(standing.since_commit)}. "
            f"Next: bqh status, then bqh sync {subject.contract.id}"
        )
    return "; ".join((text, *notes))


def without_time(contract: TableContract, rows: int) -> str:
    """Tells users of rows that belong to no window."""
    many = "1 row" if rows == 1 else f"{rows:,} rows"
    return (
        f"{many} of BigQuery without {contract.timestamp_column} will never be copied: give them a"
        " time, or leave them out with rowFilter"
    )


def _verdict(status: ProgressStatus, message: str, metadata: dict[str, Any]) -> Verdict:
    passed = status is ProgressStatus.HEALTHY
    return Verdict(
        check=PROGRESS_CHECK,
        status=status,
        passed=passed,
        severity=_SEVERITY[status],
        message=message,
        metadata=metadata,
    )

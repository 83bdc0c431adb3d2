"""Has Harper every row of a cell that is due? The table's question, asked of each cell."""

from collections.abc import Sequence
from datetime import datetime

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.status import CellRecord
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.recorded import cell_key
from bq_harper_assets.validation.due import Range, Waiting, due_until, in_words, waiting_in
from bq_harper_assets.validation.progress import Standing, judge, never_synced, progress_verdict
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Verdict


def check_cells(
    subject: Subject, cells: Sequence[Cell], now: datetime | None = None
) -> dict[Cell, Verdict]:
    """`now` is BigQuery's if left out; while BigQuery is away, all of a cell's rows count as due.

    What is due of a cell and was not committed is counted in its window: BigQuery knows no slices.
    """
    table, start = subject.table(), subject.start()
    known = subject.ledger.progress(table, start) if table and start else None
    if table is None or known is None or known.newest_commit_at is None:
        return dict.fromkeys(cells, never_synced(subject))
    unknown = ""
    try:
        now = now or server_time(subject.queries)
    except BqhError as error:
        now, unknown = subject.ledger.now(), str(error)
    first = min((cell.window.start for cell in cells), default=now)
    last = max((cell.window.end for cell in cells), default=now)
    records = {record.cell: record for record in subject.ledger.cells(table, first, last)}
    until = due_until(subject.contract, now)
    lacking = {cell: _lacking(cell, records.get(cell_key(cell)), until) for cell in cells}
    try:
        waiting = {} if unknown else waiting_in(subject, lacking.values())
    except BqhError as error:
        waiting, unknown = {}, str(error)
    if unknown:
        waiting = {each: Waiting(oldest=each[0]) for each in lacking.values() if each[0] < each[1]}
    since_commit = now - known.newest_commit_at
    found = {}
    for cell in cells:
        of_cell = waiting.get(lacking[cell], Waiting())
        standing = Standing(of_cell.overdue(subject.contract, now), since_commit)
        record = records.get(cell_key(cell))
        found[cell] = progress_verdict(
            judge(standing),
            _message(subject, cell, record, of_cell, standing, unknown),
            {
                "now": now.isoformat(),
                "synced_upto": lacking[cell][0].isoformat(),
                "due_until": min(cell.window.end, until).isoformat(),
                "rows_waiting": of_cell.rows,
                "overdue_seconds": standing.overdue.total_seconds(),
                "state": record.state.value if record else None,
            },
        )
    return found


def _lacking(cell: Cell, record: CellRecord | None, until: datetime) -> Range:
    """From where its newest commit ends to where its rows are due; empty if it has them all."""
    held = record.commit.upto if record and record.commit else cell.window.start
    return (held, min(cell.window.end, until))


def _message(
    subject: Subject,
    cell: Cell,
    record: CellRecord | None,
    waiting: Waiting,
    standing: Standing,
    unknown: str,
) -> str:
    window = f"--from {cell.window.start:%FT%H:%M} --to {cell.window.end:%FT%H:%M}"
    told = f"{cell.key}: "
    if waiting.oldest:
        told += (
            f"{waiting.rows:,} rows of its window wait, the oldest of {waiting.oldest:%F %T} UTC;"
            f" it has been due for {in_words(standing.overdue)}. Next: bqh sync"
            f" {subject.contract.id} {window}"
        )
    elif record and record.commit:
        told += f"every row up to {record.commit.upto:%F %T} UTC was given to Harper"
    else:
        told += "was not synced yet, and no row of it is due"
    if record and record.commit and not record.is_clean:
        told += f"; it is to be looked at again, for it is {record.state.value}"
        told += " and marked" if record.marks else ""
    if unknown:
        told += f"; BigQuery could not be asked, so all of its time counts as due: {unknown}"
    return told

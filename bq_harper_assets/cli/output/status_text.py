"""The status of tables is told in figures that add up, with what to type only where it helps."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from bq_harper_assets.cli.output.outside_rows import outside_row_lines
from bq_harper_assets.cli.output.table_status import TableStatus

if TYPE_CHECKING:
    from bq_harper_assets.ledger.questions.workers import Worker

SYNCED, REFUSED = "synced", "refused"
# What another turn has marked, and what was synced while its window was open.
DUE_AGAIN = ("dirty", "closed_since")
_HEADER = ("slice", "synced until (UTC)", "behind", "phase", "rows/request", "rows")
LEFT = 4  # columns of text; figures stand to the right


def table_lines(tables: Sequence[TableStatus]) -> Iterator[str]:
    """Writes some lines for each table."""
    for table in tables:
        yield f"{table.table} -> {table.target}"
        if table.out_of_step:
            yield f"  out of step: {table.out_of_step}"
        if table.declared_otherwise:
            yield f"  {table.declared_otherwise}"
        if table.newest_t is None or table.synced_until is None:
            started = "the first sync goes on" if table.is_at_work else "nothing synced yet"
            then = f". Start with: bqh sync {table.table}" if table.is_advised else ""
            yield f"  {started}{then}"
        else:
            yield from _progress(table)
        for worker in table.workers:
            yield from _worker(table, worker)
        yield from _states(table)
        if table.rows_outside:
            yield from outside_row_lines(table.timestamp_column, table.rows_outside)


def _progress(table: TableStatus) -> Iterator[str]:
    # What the ledger calls synced can be due all the same: then it is counted there.
    synced = table.cells.get(SYNCED, 0) - sum(table.due.get(reason, 0) for reason in DUE_AGAIN)
    is_all = synced == table.cells_due
    # A run that planned cells anew and did not end leaves what was committed before.
    reach = "all until" if is_all else "and what was committed reaches without a gap until"
    yield (
        f"  {synced:,} of {table.cells_due:,} cells of closed windows synced, {reach} "
        f"{table.synced_until:%F %H:%M} UTC: {_span(table.lag_s)} behind, phase {table.phase}"
    )
    if open_cells := sum(table.cells_open.values()):
        upto = f", up to {table.open_upto:%F %T} UTC" if table.open_upto else ""
        synced = table.cells_open.get(SYNCED, 0)
        yield f"  {synced:,} of {open_cells:,} cells of windows still open synced{upto}"
    if table.cells_before_start:
        yield (
            f"  {table.cells_before_start:,} cells lie before the first window: they were synced "
            "when it was an earlier one, and are not counted here"
        )
    yield (
        f"  {table.rows:,} rows, {table.quarantined:,} quarantined, "
        f"as BigQuery was at {table.newest_t:%F %T} UTC"
    )
    yield from _slices(table)
    yield (
        f"  {table.batch_size:,} rows per request, {table.windows_per_run} windows per "
        f"run; its sensors look every {table.next_poll_within_s:g} s while they are on"
    )
    if table.due:
        due = ", ".join(f"{count:,} {reason}" for reason, count in table.due.items())
        then = f"; to sync them, type: bqh sync {table.table} --changed" if table.is_advised else ""
        yield f"  cells due: {due}{then}"


def _slices(table: TableStatus) -> Iterator[str]:
    """Writes how far each slice is, in columns as wide as what is in them."""
    rows = [
        (
            each.slice,
            f"{each.synced_until:%F %T}",
            _span(each.lag_s),
            each.phase,
            f"{each.batch_size:,}",
            f"{each.rows:,}",
        )
        for each in table.slices
    ]
    lines = (_HEADER, *rows)
    widths = [max(len(line[at]) for line in lines) for at in range(len(_HEADER))]
    for line in lines:
        text = (
            cell.ljust(width) if at < LEFT else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield f"    {'  '.join(text)}"


def _worker(table: TableStatus, worker: "Worker") -> Iterator[str]:
    then = f": bqh sync {table.table} --changed" if table.is_advised else ""
    takes = f"the next run takes up its {_cells(worker.left)}{then}"
    if table.works(worker):
        what = f"on {_cells(worker.cells)}" if worker.cells else "and has planned no cell yet"
        yield (
            f"  run {worker.owner} has been at work since {worker.since:%F %T} UTC {what}; if it"
            f" died, its lease ends at {worker.until:%T} UTC, and the next run takes its cells up"
        )
    elif worker.is_live:
        then = f", and then {takes}" if worker.left else ""
        yield f"  {table.ended[worker.owner]}; its lease ends at {worker.until:%T} UTC{then}"
    elif worker.left:
        yield (
            f"  run {worker.owner} is not at work any more: its lease ran out at "
            f"{worker.until:%F %T} UTC, and {takes}"
        )


def _states(table: TableStatus) -> Iterator[str]:
    states = dict.fromkeys([*table.cells, *table.cells_open])
    for state in states:
        count = table.cells.get(state, 0) + table.cells_open.get(state, 0)
        if state == REFUSED:
            command = f"bqh sync {table.table} --changed --allow-deletes"
            then = "" if table.out_of_step else f"; if BigQuery is right, type: {command}"
            yield f"  refused by the delete guard: {_cells(count)}{then}"
        elif state != SYNCED:
            then = f"; type: bqh sync {table.table} --changed" if table.is_advised else ""
            yield f"  {state}: {_cells(count)}{then}"


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


def _span(seconds: float | None) -> str:
    return str(timedelta(seconds=int(seconds or 0)))

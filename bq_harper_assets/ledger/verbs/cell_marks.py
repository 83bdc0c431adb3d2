"""A mark records that another cell's write is about to take a row from a cell or give it one."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select

from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.position import Position
from bq_harper_assets.ledger.records import Batch, CellKey, CellState, Leases, LogicalTable, Mark
from bq_harper_assets.ledger.store.cell_keys import among, misplaced, slice_and_start
from bq_harper_assets.ledger.store.database import insert_into
from bq_harper_assets.ledger.store.tables import CELLS, MARKS
from bq_harper_assets.ledger.verbs import audit, positions, slice_leases

_SHOWN = 20  # cells named in an audit entry
# A mark stays after a commit that read the source too early, or that did not reach the row.
_CLEAR = delete(MARKS).where(
    MARKS.c.table_id == bindparam("of_table"),
    MARKS.c.slice == bindparam("of_slice"),
    MARKS.c.window_start == bindparam("of_start"),
    MARKS.c.rank <= bindparam("of_rank"),
    MARKS.c.row_time < bindparam("of_upto"),
)


def mark(
    connection: Connection,
    leases: Leases,
    position: Position,
    marks: Sequence[Mark],
    unless_committed_there: bool = False,
) -> tuple[CellKey, ...]:
    """Marks cells, and gives those that are dirty now.

    It must be called before the write that changes the rows is sent. A commit at this position or
    after it settles a mark. With `unless_committed_there`, a cell whose commit at the position
    covers the row already is left as it is.
    """
    table = leases.table
    if not marks:
        return ()
    if problems := list(dict.fromkeys(_unfit(leases, marks))):
        raise LedgerConflict(
            f"cannot mark cells of {table.name}: {'; '.join(problems)}. Nothing was marked, and"
            f" nothing may be written. See where the table stands with: bqh status {table.name}"
        )
    slices = {one.cell.slice for one in marks}
    rows, now = slice_leases.lock_live(connection, leases, slices, "mark cells")
    rank = positions.rank_of(connection, table, position, rows)
    if unless_committed_there:
        marks = list(_not_held(connection, table, rank, marks))
    latest = {one.cell: one for one in sorted(marks, key=lambda one: one.row_time)}
    if not latest:
        return ()
    cells = tuple(sorted(latest))
    _touch(connection, table, cells)
    _put(connection, table, rank, list(latest.values()), now)
    shown = [*map(str, cells[:_SHOWN])]
    detail = {"owner": leases.owner, "position": position.text, "cells": shown}
    note = audit.Note("mark", f"{len(cells)} cells", "marked", detail)
    audit.record(connection, table, now, note)
    return cells


def clear(connection: Connection, table: LogicalTable, committed: Sequence[Batch]) -> None:
    """Removes the marks that these commits have settled."""
    rows = [
        {
            "of_table": table.id,
            "of_slice": batch.cell.slice,
            "of_start": batch.cell.window_start,
            "of_rank": batch.rank,
            "of_upto": batch.upto,
        }
        for batch in committed
    ]
    connection.execute(_CLEAR, rows)


def _unfit(leases: Leases, marks: Sequence[Mark]) -> Iterator[str]:
    yield from misplaced(leases, dict.fromkeys(one.cell for one in marks))
    for one in marks:
        if not one.cell.window_start <= one.row_time < one.cell.window_end:
            yield f"a row of {one.row_time} is not in cell {one.cell}"


def _not_held(
    connection: Connection, table: LogicalTable, rank: int, marks: Sequence[Mark]
) -> Iterator[Mark]:
    query = select(CELLS.c.slice, CELLS.c.window_start, CELLS.c.upto).where(
        among(CELLS, table, [one.cell for one in marks]),
        CELLS.c.state == CellState.SYNCED,
        CELLS.c.rank >= rank,
    )
    held = {slice_and_start(row): row.upto for row in connection.execute(query)}
    for one in marks:
        upto = held.get(slice_and_start(one.cell))
        if upto is None or upto <= one.row_time:
            yield one


def _touch(connection: Connection, table: LogicalTable, cells: Sequence[CellKey]) -> None:
    query = select(CELLS.c.slice, CELLS.c.window_start).where(among(CELLS, table, cells))
    known = {slice_and_start(row) for row in connection.execute(query)}
    fresh = [
        {
            "table_id": table.id,
            "slice": cell.slice,
            "window_start": cell.window_start,
            "window_end": cell.window_end,
            "state": CellState.TOUCHED,
        }
        for cell in cells
        if slice_and_start(cell) not in known
    ]
    if fresh:
        connection.execute(insert(CELLS), fresh)


def _put(
    connection: Connection, table: LogicalTable, rank: int, marks: Sequence[Mark], now: datetime
) -> None:
    statement = insert_into(connection, MARKS)
    given = statement.excluded
    statement = statement.on_conflict_do_update(
        index_elements=list(MARKS.primary_key),
        set_={"row_time": given.row_time, "reason": given.reason, "at": given.at},
        where=given.row_time > MARKS.c.row_time,
    )
    rows = [
        {
            "table_id": table.id,
            "slice": one.cell.slice,
            "window_start": one.cell.window_start,
            "rank": rank,
            "row_time": one.row_time,
            "reason": one.reason,
            "at": now,
        }
        for one in marks
    ]
    connection.execute(statement, rows)

"""A mark records that another cell's write is about to take a row from a cell or give it one."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.position import Position
from bq_harper_assets.ledger.records import Batch, CellKey, CellState, Leases, LedgerRoute, Mark
from bq_harper_assets.ledger.store.cell_keys import among, misplaced, slice_and_start
from bq_harper_assets.ledger.store.database import insert_into
from bq_harper_assets.ledger.store.tables import CELLS, MARKS
from bq_harper_assets.ledger.verbs import audit, positions, slice_leases

_SHOWN = 20  # cells named in an audit entry
# A mark stays after a commit that read the source too early, or that did not reach the row.
_CLEAR = delete(MARKS).where(
    MARKS.c.route_id == bindparam("of_route"),
    MARKS.c.slice == bindparam("of_slice"),
    MARKS.c.range_start == bindparam("of_start"),
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
    route = leases.route
    if not marks:
        return ()
    if problems := list(dict.fromkeys(_unfit(connection, leases, marks))):
        raise LedgerConflict(
            f"cannot mark cells of {route.name}: {'; '.join(problems)}. Nothing was marked, and"
            f" nothing may be written. See where the table stands with: bqh status {route.name}"
        )
    slices = {one.cell.slice for one in marks}
    rows, now = slice_leases.lock_live(connection, leases, slices, "mark cells")
    rank = positions.rank_of(connection, route, position, rows)
    if unless_committed_there:
        marks = list(_not_held(connection, route, rank, marks))
    latest = {one.cell: one for one in sorted(marks, key=lambda one: one.row_time)}
    if not latest:
        return ()
    cells = tuple(sorted(latest))
    _touch(connection, route, cells)
    _put(connection, route, rank, list(latest.values()), now)
    shown = [*map(str, cells[:_SHOWN])]
    detail = {"owner": leases.owner, "position": position.text, "cells": shown}
    note = audit.Note("mark", f"{len(cells)} cells", "marked", detail)
    audit.record(connection, route, now, note)
    return cells


def clear(connection: Connection, route: LedgerRoute, committed: Sequence[Batch]) -> None:
    """Removes the marks that these commits have settled."""
    rows = [
        {
            "of_route": route.id,
            "of_slice": batch.cell.slice,
            "of_start": batch.cell.start,
            "of_rank": batch.rank,
            "of_upto": batch.upto,
        }
        for batch in committed
    ]
    connection.execute(_CLEAR, rows)


def _unfit(connection: Connection, leases: Leases, marks: Sequence[Mark]) -> Iterator[str]:
    yield from misplaced(connection, leases, dict.fromkeys(one.cell for one in marks))
    for one in marks:
        if one.cell.is_key_range:
            yield f"no row moves to or from {one.cell}: its key stays in the range"
        elif not one.cell.start <= micros_at(one.row_time) < one.cell.end:
            yield f"a row of {one.row_time} is not in cell {one.cell}"


def _not_held(
    connection: Connection, route: LedgerRoute, rank: int, marks: Sequence[Mark]
) -> Iterator[Mark]:
    query = select(CELLS.c.slice, CELLS.c.range_start, CELLS.c.upto).where(
        among(CELLS, route, [one.cell for one in marks]),
        CELLS.c.state == CellState.SYNCED,
        CELLS.c.rank >= rank,
    )
    held = {slice_and_start(row): row.upto for row in connection.execute(query)}
    for one in marks:
        upto = held.get(slice_and_start(one.cell))
        if upto is None or upto <= one.row_time:
            yield one


def _touch(connection: Connection, route: LedgerRoute, cells: Sequence[CellKey]) -> None:
    query = select(CELLS.c.slice, CELLS.c.range_start).where(among(CELLS, route, cells))
    known = {slice_and_start(row) for row in connection.execute(query)}
    fresh = [
        {
            "route_id": route.id,
            "slice": cell.slice,
            "range_start": cell.start,
            "range_end": cell.end,
            "state": CellState.TOUCHED,
        }
        for cell in cells
        if slice_and_start(cell) not in known
    ]
    if fresh:
        connection.execute(insert(CELLS), fresh)


def _put(
    connection: Connection, route: LedgerRoute, rank: int, marks: Sequence[Mark], now: datetime
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
            "route_id": route.id,
            "slice": one.cell.slice,
            "range_start": one.cell.start,
            "rank": rank,
            "row_time": one.row_time,
            "reason": one.reason,
            "at": now,
        }
        for one in marks
    ]
    connection.execute(statement, rows)

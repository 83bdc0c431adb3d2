"""Says how far a table is synced; its lag and phase are computed from this."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, case, func, select

from bq_harper_assets.instants import micros_at
from bq_harper_assets.ledger.records import CellState, LedgerRoute
from bq_harper_assets.ledger.store.tables import CELLS, MARKS, QUARANTINE


class WindowState(StrEnum):
    """A window is before the start, is closed, or is still open."""

    BEFORE = "before"  # before the first window: the start was earlier once
    CLOSED = "closed"
    OPEN = "open"


@dataclass(frozen=True)
class CellCount:
    """A cell count says how many cells of one state are before the start, closed or open."""

    window: WindowState
    state: CellState
    cells: int
    synced_upto: datetime | None  # the earliest point up to which one of them is committed


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress is counted from the table's first window on."""

    synced_until: datetime  # every cell from the start up to here was committed
    newest_t: datetime | None
    newest_commit_at: datetime | None
    cells: dict[CellState, int]
    dirty: int  # cells with marks, in whatever state
    rows: int
    quarantined: int


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint says how far one slice is synced."""

    slice: int
    until: datetime  # committed without a gap up to here
    rows: int


def progress(connection: Connection, route: LedgerRoute, start: datetime) -> Progress:
    """Counts what lag and phase are computed from, from the window that begins at `start` on."""
    states = connection.execute(
        select(
            CELLS.c.state,
            func.count().label("cells"),
            func.max(CELLS.c.snapshot).label("newest_t"),
            func.max(CELLS.c.committed_at).label("newest_commit_at"),
            func.sum(CELLS.c.rows).label("rows"),
        )
        .where(CELLS.c.route_id == route.id, CELLS.c.range_start >= start)
        .group_by(CELLS.c.state)
    ).all()
    marked = (
        select(MARKS.c.slice, MARKS.c.range_start)
        .where(MARKS.c.route_id == route.id, MARKS.c.range_start >= start)
        .distinct()
        .subquery()
    )
    quarantined = select(func.count()).where(
        QUARANTINE.c.route_id == route.id, QUARANTINE.c.range_start >= start
    )
    return Progress(
        synced_until=_synced_until(connection, route, start),
        newest_t=max((row.newest_t for row in states if row.newest_t), default=None),
        newest_commit_at=max(
            (row.newest_commit_at for row in states if row.newest_commit_at), default=None
        ),
        cells={CellState(row.state): row.cells for row in states},
        dirty=connection.execute(select(func.count()).select_from(marked)).scalar_one(),
        rows=sum(int(row.rows or 0) for row in states),
        quarantined=connection.execute(quarantined).scalar_one(),
    )


def cell_counts(
    connection: Connection, route: LedgerRoute, start: datetime, closed: datetime
) -> tuple[CellCount, ...]:
    """Counts all cells by state, and by whether they are before `start`, closed or open."""
    window_state = case(
        (CELLS.c.range_start < start, WindowState.BEFORE.value),
        (CELLS.c.range_end <= closed, WindowState.CLOSED.value),
        else_=WindowState.OPEN.value,
    ).label("window_state")
    query = (
        select(
            window_state,
            CELLS.c.state,
            func.count().label("cells"),
            func.min(CELLS.c.upto).label("upto"),
        )
        .where(CELLS.c.route_id == route.id)
        .group_by(window_state, CELLS.c.state)
    )
    return tuple(
        CellCount(WindowState(row.window_state), CellState(row.state), row.cells, row.upto)
        for row in connection.execute(query)
    )


def _synced_until(connection: Connection, route: LedgerRoute, start: datetime) -> datetime:
    """Finds the end of the committed windows without a gap; a cell that is written again counts.

    So repairing an old window is no lag.
    """
    complete = (
        select(CELLS.c.range_start, CELLS.c.range_end, func.min(CELLS.c.upto).label("upto"))
        .where(
            CELLS.c.route_id == route.id,
            CELLS.c.range_start >= start,
            CELLS.c.batch.is_not(None),
        )
        .group_by(CELLS.c.range_start, CELLS.c.range_end)
        .having(func.count() == route.facts.slices)
    ).cte("complete")
    after = complete.alias("after")
    goes_on = complete.outerjoin(
        after,
        (after.c.range_start == complete.c.range_end) & (complete.c.upto == after.c.range_start),
    )
    has_first = select(complete.c.range_start).where(complete.c.range_start == start)
    if connection.execute(has_first).first() is None:
        return start
    until: datetime = connection.execute(
        select(func.min(complete.c.upto)).select_from(goes_on).where(after.c.range_start.is_(None))
    ).scalar_one()
    return until


def checkpoints(
    connection: Connection, route: LedgerRoute, start: datetime
) -> tuple[Checkpoint, ...]:
    """Says how far each slice is synced, from the window that begins at `start` on."""
    after = CELLS.alias("after")
    goes_on = (
        (after.c.route_id == CELLS.c.route_id)
        & (after.c.slice == CELLS.c.slice)
        & (after.c.range_start == CELLS.c.range_end)
        & (CELLS.c.upto == CELLS.c.range_end)
        & after.c.batch.is_not(None)
    )
    query = (
        select(
            CELLS.c.slice,
            func.min(CELLS.c.range_start).label("first"),
            func.min(case((after.c.slice.is_(None), CELLS.c.upto))).label("until"),
            func.sum(CELLS.c.rows).label("rows"),
        )
        .select_from(CELLS.outerjoin(after, goes_on))
        .where(
            CELLS.c.route_id == route.id,
            CELLS.c.range_start >= start,
            CELLS.c.batch.is_not(None),
        )
        .group_by(CELLS.c.slice)
    )
    known = {row.slice: row for row in connection.execute(query)}
    first = micros_at(start)
    return tuple(
        Checkpoint(number, row.until if row.first == first else start, int(row.rows))
        if (row := known.get(number))
        else Checkpoint(number, start, 0)
        for number in range(route.facts.slices)
    )

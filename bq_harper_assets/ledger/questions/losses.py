"""Counts what turns deleted lately; the delete guard counts it as if it were one turn.

A batch without a commit counts with what it was about to delete, for it may have done so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Row, and_, case, func, select, union_all

from bq_harper_assets.ledger.records import Batch, BatchState, CellKey, LedgerRoute
from bq_harper_assets.ledger.store.cell_keys import cell_of, slice_and_start
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import BATCHES, CELLS, LOST_ROWS

_TAKEN = BATCHES.c.rows_deleted + BATCHES.c.rows_flagged
# Only what a batch announced before is a loss: rows that others replaced, and rows older than the
# declared retention, are none.
_LOST = case(
    (BATCHES.c.deletes_intended < _TAKEN, BATCHES.c.deletes_intended),
    else_=func.coalesce(_TAKEN, BATCHES.c.deletes_intended),
)


@dataclass(frozen=True, kw_only=True)
class CellLoss:
    """A cell loss counts the rows that a cell lost; some may have been replaced since."""

    cell: CellKey
    lost: int
    held: int
    rows: int  # rows that it surely holds now
    since: datetime  # when the first of them was recorded
    until: datetime  # when the last of them was recorded
    is_committed: bool  # if not, some were only to be deleted, and may be there still


def losses(
    connection: Connection, route: LedgerRoute, period: timedelta, besides: Sequence[Batch] = ()
) -> tuple[CellLoss, ...]:
    """Counts rows that batches deleted in the period up to now, or were about to.

    The batches `besides` are left out, and so is what someone allowed and all that was before it.
    """
    recent = connection.execute(recent_losses(route, database_now(connection) - period)).all()
    after = max((row.seq for row in recent if row.deletes_allowed), default=0)
    own = {batch.seq for batch in besides}
    by_cell: dict[tuple[int, int], list[Row[Any]]] = {}
    for row in sorted(recent, key=lambda row: row.seq):
        if row.seq > after and row.seq not in own:
            by_cell.setdefault(slice_and_start(row), []).append(row)
    found = (_loss(rows) for rows in by_cell.values())
    return tuple(loss for loss in found if loss is not None)


def recent_losses(route: LedgerRoute, begin: datetime) -> CompoundSelect[Any]:
    """Selects batches that ended since, or were planned since and have not ended, with their cells.

    Each half is a range of the index of such batches: a table's whole history is not read.
    """
    here = and_(
        CELLS.c.route_id == BATCHES.c.route_id,
        CELLS.c.slice == BATCHES.c.slice,
        CELLS.c.range_start == BATCHES.c.range_start,
    )
    batches = (
        select(
            *(BATCHES.c.seq, BATCHES.c.slice, BATCHES.c.range_start, BATCHES.c.range_end),
            BATCHES.c.state,
            _LOST.label("lost"),
            func.coalesce(BATCHES.c.rows_held, 0).label("held"),
            BATCHES.c.deletes_allowed,
            func.coalesce(BATCHES.c.ended_at, BATCHES.c.planned_at).label("at"),
            func.coalesce(CELLS.c.batch, 0).label("committed"),
            CELLS.c.rows,
        )
        .outerjoin(CELLS, here)
        .where(BATCHES.c.route_id == route.id, LOST_ROWS, _LOST > 0)
    )
    return union_all(
        batches.where(BATCHES.c.ended_at >= begin),
        batches.where(BATCHES.c.ended_at.is_(None), BATCHES.c.planned_at >= begin),
    )


def _loss(batches: Sequence[Row[Any]]) -> CellLoss | None:
    """Sums up the batches of one cell, oldest first.

    A refused batch deleted nothing, but it counted the rows that are there.
    """
    counted = [row for row in batches if row.state != BatchState.REFUSED]
    if not counted:
        return None
    newest = batches[-1]
    left = newest.held if newest.state == BatchState.REFUSED else newest.held - newest.lost
    return CellLoss(
        cell=cell_of(newest),
        lost=sum(row.lost for row in counted),
        held=max(row.held for row in batches),
        rows=newest.rows if newest.committed >= newest.seq else left,
        since=min(row.at for row in counted),
        until=max(row.at for row in counted),
        is_committed=all(row.state == BatchState.APPLIED for row in counted),
    )

"""What runs took out of the target lately: the delete guard counts it as if it were one run."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, func, select

from bq_harper_assets.ledger.columns import database_now
from bq_harper_assets.ledger.records import CellKey, LogicalTable
from bq_harper_assets.ledger.tables import BATCHES, CELLS, LOST_ROWS


@dataclass(frozen=True)
class CellLoss:
    """Rows that a cell has lost and still lacks, of those it held before."""

    cell: CellKey
    rows: int
    held: int
    since: datetime  # when the first of them was recorded as gone


def losses(connection: Connection, table: LogicalTable, period: timedelta) -> tuple[CellLoss, ...]:
    """Of the period that ends now, from the newest loss that someone allowed on."""
    recent = and_(
        BATCHES.c.table_id == table.id,
        BATCHES.c.ended_at >= database_now(connection) - period,
        LOST_ROWS,  # as in the index: a table's whole history is not read
    )
    allowed = select(func.max(BATCHES.c.seq)).where(recent, BATCHES.c.deletes_allowed.is_(True))
    after = connection.execute(allowed).scalar_one() or 0
    query = (
        select(
            BATCHES.c.slice,
            BATCHES.c.window_start,
            func.sum(BATCHES.c.rows_deleted + BATCHES.c.rows_flagged).label("lost"),
            func.coalesce(func.max(BATCHES.c.rows_held), 0).label("held"),
            func.min(BATCHES.c.ended_at).label("since"),
            func.coalesce(func.max(CELLS.c.rows), 0).label("rows"),
        )
        .outerjoin(
            CELLS,
            and_(
                CELLS.c.table_id == BATCHES.c.table_id,
                CELLS.c.slice == BATCHES.c.slice,
                CELLS.c.window_start == BATCHES.c.window_start,
            ),
        )
        .where(recent, BATCHES.c.seq > after)
        .group_by(BATCHES.c.slice, BATCHES.c.window_start)
    )
    found = []
    for row in connection.execute(query):
        # Rows that others took the place of, or that are back, are not missed.
        lacking = min(int(row.lost), row.held - row.rows)
        if lacking > 0:
            end = row.window_start + table.facts.window
            cell = CellKey(row.window_start, end, row.slice)
            found.append(CellLoss(cell, lacking, row.held, row.since))
    return tuple(found)

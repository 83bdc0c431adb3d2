"""Keeps rejected rows in quarantine with their cell, until a commit of the cell replaces them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    CellResult,
    LedgerRoute,
    Mode,
)
from bq_harper_assets.ledger.store.cell_keys import among, slice_and_start
from bq_harper_assets.ledger.store.columns import database_now
from bq_harper_assets.ledger.store.tables import QUARANTINE
from bq_harper_assets.ledger.verbs import audit


def record_rejections(
    connection: Connection,
    route: LedgerRoute,
    done: Sequence[tuple[Batch, CellResult]],
    now: datetime,
) -> None:
    """Replaces the rejected rows of a cell with those of its commit; a top-up's are added."""
    added = [batch.cell for batch, _ in done if batch.mode is Mode.TOPUP]
    replaced = [batch.cell for batch, _ in done if batch.mode is not Mode.TOPUP]
    if replaced:
        connection.execute(
            delete(QUARANTINE).where(
                QUARANTINE.c.route_id == route.id,
                QUARANTINE.c.slice == bindparam("of_slice"),
                QUARANTINE.c.range_start == bindparam("of_start"),
            ),
            [{"of_slice": cell.slice, "of_start": cell.start} for cell in replaced],
        )
    first = _next_numbers(connection, route, added) if added else {}
    rows = [
        {
            "route_id": route.id,
            "slice": batch.cell.slice,
            "range_start": batch.cell.start,
            "number": number,
            "batch": batch.seq,
            "row_id": rejection.row_id,
            "reason": rejection.reason,
            "payload": rejection.payload,
            "at": now,
        }
        for batch, result in done
        for number, rejection in enumerate(
            result.rejections, first.get(slice_and_start(batch.cell), 0)
        )
    ]
    if rows:
        connection.execute(insert(QUARANTINE), rows)


def drop(
    connection: Connection,
    route: LedgerRoute,
    cell: CellKey,
    numbers: Sequence[int] | None,
    who: str,
) -> int:
    """Removes the rows of these numbers, or all (None), from a cell's quarantine; says how many.

    The audit says who removed which rows, and never what was in them.
    """
    dropped = delete(QUARANTINE).where(
        QUARANTINE.c.route_id == route.id,
        QUARANTINE.c.slice == cell.slice,
        QUARANTINE.c.range_start == cell.start,
    )
    if numbers is not None:
        dropped = dropped.where(QUARANTINE.c.number.in_(numbers))
    gone = sorted(connection.execute(dropped.returning(QUARANTINE.c.number)).scalars())
    if gone:
        detail = {"who": who, "numbers": gone}
        note = audit.Note("quarantine", str(cell), "dropped", detail)
        audit.record(connection, route, database_now(connection), note)
    return len(gone)


def _next_numbers(
    connection: Connection, route: LedgerRoute, cells: Sequence[CellKey]
) -> dict[tuple[int, int], int]:
    columns = (QUARANTINE.c.slice, QUARANTINE.c.range_start)
    query = (
        select(*columns, (func.max(QUARANTINE.c.number) + 1).label("next"))
        .where(among(QUARANTINE, route, cells))
        .group_by(*columns)
    )
    wanted = {slice_and_start(cell) for cell in cells}
    return {
        slice_and_start(row): row.next
        for row in connection.execute(query)
        if slice_and_start(row) in wanted
    }

"""Where a cell's rows are in the ledger's tables, and which cells a table can have."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Table, and_, func, select

from bq_harper_assets.ledger.records import CellKey, Leases, LogicalTable
from bq_harper_assets.ledger.store.tables import CELLS, MARKS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def place_of(row: Any) -> tuple[int, datetime]:
    """What names a cell within its table: of the cell, or of any row that is about it."""
    return row.slice, row.window_start


def among(rows: Table, table: LogicalTable, cells: Sequence[CellKey]) -> ColumnElement[bool]:
    """The range of windows and slices around the cells: few parameters, however many cells."""
    starts = [cell.window_start for cell in cells]
    return and_(
        rows.c.table_id == table.id,
        rows.c.slice.in_({cell.slice for cell in cells}),
        rows.c.window_start.between(min(starts), max(starts)),
    )


def marks_of_cell() -> ScalarSelect[int]:
    """How many marks the cell has, in a query of cells."""
    return (
        select(func.count())
        .where(
            MARKS.c.table_id == CELLS.c.table_id,
            MARKS.c.slice == CELLS.c.slice,
            MARKS.c.window_start == CELLS.c.window_start,
        )
        .correlate(CELLS)
        .scalar_subquery()
    )


def misplaced(leases: Leases, cells: Iterable[CellKey]) -> Iterator[str]:
    """What is wrong with the cells: not under these leases, or not windows of the table."""
    window = leases.table.facts.window
    for cell in cells:
        if cell.slice not in leases.epochs:
            yield f"the lease of slice {cell.slice} was not taken"
        # Windows that overlap would let one row belong to two cells.
        if cell.window_end - cell.window_start != window or (cell.window_start - _EPOCH) % window:
            yield f"{cell.window_start} to {cell.window_end} is not a window of {window}"

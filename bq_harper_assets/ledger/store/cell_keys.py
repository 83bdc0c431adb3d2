"""Finds a cell's rows in the ledger's tables, and checks which cells a table can have."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Table, and_, func, select

from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.records import CellKey, Leases, LogicalTable
from bq_harper_assets.ledger.store.tables import CELLS, MARKS


def slice_and_start(row: Any) -> tuple[int, datetime]:
    """Gives what names a cell within its table, from the cell or from any row about it."""
    return row.slice, row.window_start


def among(rows: Table, table: LogicalTable, cells: Sequence[CellKey]) -> ColumnElement[bool]:
    """Selects the range of windows and slices around the cells, with few parameters."""
    starts = [cell.window_start for cell in cells]
    return and_(
        rows.c.table_id == table.id,
        rows.c.slice.in_({cell.slice for cell in cells}),
        rows.c.window_start.between(min(starts), max(starts)),
    )


def marks_of_cell() -> ScalarSelect[int]:
    """Counts the marks of a cell, inside a query of cells."""
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
    """Says what is wrong with cells: not under these leases, or no windows of the table."""
    window = leases.table.facts.window
    for cell in cells:
        if cell.slice not in leases.epochs:
            yield f"the lease of slice {cell.slice} was not taken"
        begin, end = cell.window_start, cell.window_end
        # If windows overlapped, one row could belong to two cells.
        if end - begin != window or floor_to_window(begin, window) != begin:
            yield f"{begin} to {end} is not a window of {window}"

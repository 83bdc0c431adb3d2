"""Finds a cell's rows in the ledger's tables, and checks which cells a table can have."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, ScalarSelect, Table, and_, func, select

from bq_harper_assets.ledger.records import CellKey, Leases, LedgerRoute
from bq_harper_assets.ledger.store.tables import CELLS, KEY_RANGES, MARKS


def slice_and_start(row: Any) -> tuple[int, int]:
    """Gives what names a cell within its route, from the cell or from any row about it."""
    return row.slice, row.start if isinstance(row, CellKey) else row.range_start


def cell_of(row: Any) -> CellKey:
    """Gives the cell that a row is about."""
    return CellKey(row.range_start, row.range_end, row.slice)


def among(rows: Table, route: LedgerRoute, cells: Sequence[CellKey]) -> ColumnElement[bool]:
    """Selects the ranges and slices around the cells, with few parameters."""
    starts = [cell.start for cell in cells]
    return and_(
        rows.c.route_id == route.id,
        rows.c.slice.in_({cell.slice for cell in cells}),
        rows.c.range_start.between(min(starts), max(starts)),
    )


def marks_of_cell() -> ScalarSelect[int]:
    """Counts the marks of a cell, inside a query of cells."""
    return (
        select(func.count())
        .where(
            MARKS.c.route_id == CELLS.c.route_id,
            MARKS.c.slice == CELLS.c.slice,
            MARKS.c.range_start == CELLS.c.range_start,
        )
        .correlate(CELLS)
        .scalar_subquery()
    )


def misplaced(connection: Connection, leases: Leases, cells: Iterable[CellKey]) -> Iterator[str]:
    """Says what is wrong with cells: not under these leases, or no ranges of the route's cut."""
    cells, window = tuple(cells), leases.route.facts.window
    for cell in cells:
        if cell.slice not in leases.epochs:
            yield f"the lease of slice {cell.slice} was not taken"
    # If ranges overlapped, one row could belong to two cells.
    if window is None:
        yield from _unknown_ranges(connection, leases.route, cells)
        return
    step = leases.route.facts.step
    for cell in cells:
        if cell.end - cell.start != step or cell.start % step:
            yield f"{cell.window_start} to {cell.window_end} is not a window of {window}"


def _unknown_ranges(
    connection: Connection, route: LedgerRoute, cells: Iterable[CellKey]
) -> Iterator[str]:
    query = select(func.count()).where(KEY_RANGES.c.route_id == route.id)
    ranges = connection.execute(query).scalar_one()
    for cell in cells:
        if not (cell.is_key_range and 0 <= cell.start < ranges):
            yield f"{cell.start} to {cell.end} is not one of the {ranges} recorded key ranges"

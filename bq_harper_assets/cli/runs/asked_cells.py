"""A user asks for cells with --from, --to and --slices."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells.cell import Cell

CLOCKS_DIFFER_BY = timedelta(minutes=1)  # a window that has not begun for BigQuery is refused


def require_range(from_: datetime | None, to: datetime | None) -> None:
    """Raises a usage error for a range that ends before it begins."""
    if from_ and to and from_ >= to:
        raise click.UsageError(f"--from {from_:%FT%H:%M} is not before --to {to:%FT%H:%M}")


def cells_between(
    contract: TableContract,
    start: datetime,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
    now: datetime | None = None,
) -> "list[Cell]":
    """Returns the closed cells of the range; of a live table without --to, the open ones too."""
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.cells.window import windows_between

    closed = (now or datetime.now(UTC)) - contract.safety_lag
    first = max(start, from_.replace(tzinfo=UTC)) if from_ else start
    last = min(closed, to.replace(tzinfo=UTC)) if to else closed
    takes_open = contract.live and to is None
    windows = [
        window
        for window in windows_between(first, last, contract.window)
        if window.end <= closed or (takes_open and window.start < closed - CLOCKS_DIFFER_BY)
    ]
    return [Cell(w, number) for w in windows for number in slices_asked(contract, slices)]


def slices_asked(contract: TableContract, asked: str | None) -> range:
    """Returns the slices that --slices names; a usage error if the table has no such slices."""
    if asked is None:
        return range(contract.slices)
    first, _, last = asked.replace("s", "").partition("-")
    try:
        wanted = range(int(first), int(last or first) + 1)
    except ValueError:
        raise click.UsageError(f"--slices {asked}: give one, or a range such as 0-1") from None
    if not wanted or wanted[-1] >= contract.slices:
        raise click.UsageError(f"--slices {asked}: there are 0 to {contract.slices - 1}")
    return wanted

"""Chooses the cells of a spot check from the synced ones, and how many rows of each."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import accumulate
from random import Random

from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window

Commits = Mapping[Cell, CellCommit]


def commits_of(records: Iterable[CellRecord]) -> Commits:
    """Gives the commits of clean cells: what others hold is not known until their next commit."""
    return {
        Cell(Window(record.cell.window_start, record.cell.window_end), record.cell.slice): commit
        for record in records
        if (commit := record.commit) is not None and record.is_clean
    }


def of_some(commits: Commits, size: int, chance: Random, *, by_rows: bool) -> Mapping[Cell, int]:
    """Spreads `size` rows over the cells, one in each equal share of all rows, or of all cells.

    By rows, few are in cells for which the ledger counts no rows. By cells, every cell has the same
    chance, so that rows are found which should not be there.
    """
    cells = list(commits)
    ends = list(accumulate(commits[cell].rows if by_rows else 1 for cell in cells))
    if not ends or not ends[-1]:
        return {}
    shares = ((number + chance.random()) / size * ends[-1] for number in range(size))
    return Counter(cells[min(bisect_right(ends, at), len(cells) - 1)] for at in shares)


def instants(start: datetime, end: datetime, count: int, chance: Random) -> list[datetime]:
    """Picks one instant in each of `count` equal shares of the time between."""
    shares = ((number + chance.random()) / count for number in range(count))
    return [start + share * (end - start) for share in shares]

"""Chooses the cells of a spot check from the synced ones, and how many rows of each."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from random import Random

from bq_harper_assets.ledger.questions.status import CellRecord


@dataclass(frozen=True, kw_only=True)
class CommittedCell:
    """A committed cell is a cell as its newest commit left it."""

    start: datetime
    until: datetime
    slice: int
    t: datetime
    schema_version: int
    batch: int
    rows: int


def places_of(cells: Sequence[CellRecord]) -> list[CommittedCell]:
    """Gives the clean committed cells: what others hold is not known until their next commit."""
    return [
        CommittedCell(
            start=record.cell.window_start,
            until=record.commit.upto,
            slice=record.cell.slice,
            t=record.commit.t,
            schema_version=record.commit.schema_version,
            batch=record.commit.batch,
            rows=record.commit.rows,
        )
        for record in cells
        if record.commit is not None and record.is_clean
    ]


def of_some(
    places: Sequence[CommittedCell], size: int, chance: Random, *, by_rows: bool
) -> Mapping[CommittedCell, int]:
    """Spreads `size` rows over the cells, one in each equal share of all rows, or of all cells.

    By rows, few are in cells for which the ledger counts no rows. By cells, every cell has the same
    chance, so that rows are found which should not be there.
    """
    weights = [place.rows if by_rows else 1 for place in places]
    ends = list(accumulate(weights))
    if not ends or not ends[-1]:
        return {}
    shares = ((number + chance.random()) / size * ends[-1] for number in range(size))
    return Counter(places[min(bisect_right(ends, at), len(places) - 1)] for at in shares)


def instants(start: datetime, end: datetime, count: int, chance: Random) -> list[datetime]:
    """Picks one instant in each of `count` equal shares of the time between."""
    shares = ((number + chance.random()) / count for number in range(count))
    return [start + share * (end - start) for share in shares]

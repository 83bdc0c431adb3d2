"""Where a spot check looks: places that the ledger calls synced, and instants spread over them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from random import Random

from bq_harper_assets.ledger.status import CellRecord


@dataclass(frozen=True)
class Place:
    """Cells of one window that were committed at one instant, under one schema version."""

    start: datetime
    until: datetime
    t: datetime
    schema_version: int
    batches: tuple[tuple[int, int], ...]  # slice and batch of each cell
    rows: int

    @property
    def slices(self) -> frozenset[int]:
        return frozenset(part for part, _ in self.batches)


@dataclass(frozen=True)
class Pick:
    """The row at or after `instant` is looked at; after the last one comes the first again."""

    place: Place
    instant: datetime


def places_of(cells: Sequence[CellRecord]) -> list[Place]:
    """A cell that is being moved, or waits to be, is in none: nothing is promised of it now."""
    grouped: dict[tuple[datetime, datetime, datetime, int], list[tuple[int, int, int]]] = {}
    for record in cells:
        commit = record.commit
        if commit is None or not record.is_clean:
            continue
        key = (record.cell.window_start, commit.upto, commit.t, commit.schema_version)
        grouped.setdefault(key, []).append((record.cell.slice, commit.batch, commit.rows))
    return [
        Place(*key, tuple((part, batch) for part, batch, _ in held), sum(rows for *_, rows in held))
        for key, held in sorted(grouped.items())
    ]


def picks(places: Sequence[Place], size: int, chance: Random, *, by_rows: bool) -> list[Pick]:
    """So many instants, one in each equal share of all rows, or of all places.

    By rows few instants fall where the ledger knows of no rows; by places none is spared, which is
    where rows turn up that should not be there.
    """
    if not places:
        return []
    weights = [place.rows if by_rows else 1 for place in places]
    ends = list(accumulate(weights))
    if not ends[-1]:
        return []
    found = []
    for number in range(size):
        at = (number + chance.random()) / size * ends[-1]
        index = min(bisect_right(ends, at), len(places) - 1)
        place = places[index]
        share = 1 - (ends[index] - at) / weights[index] if weights[index] else 0.0
        found.append(Pick(place, place.start + share * (place.until - place.start)))
    return found

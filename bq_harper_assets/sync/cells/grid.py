"""A grid lays the cells of one turn out as an array, so that arithmetic finds the cell of a row.

The index of a cell in that array is called its place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from bq_harper_assets.instants import micros_at
from bq_harper_assets.sync.arrays.arrow_memory import Int64s, fixed_width, null_mask
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import micros_of

NOT_OURS = -1


@dataclass(frozen=True)
class Part:
    """A part is what a turn moves of one cell: the batch, and the times [begin, end) it covers."""

    batch: int
    begin: datetime
    end: datetime

    @classmethod
    def whole(cls, cell: Cell, batch: int) -> "Part":
        """Returns the part that covers all of the cell's window."""
        return cls(batch, cell.window.start, cell.window.end)


@dataclass(frozen=True, eq=False, kw_only=True)
class Grid:
    """A grid has every slice of each window; a cell that is not in the turn has the batch 0."""

    first: int  # start of the first window, in microseconds since 1970
    length: int  # microseconds
    slices: int
    batches: Int64s  # the ledger's batch number of each cell, by place; window by window
    begins: Int64s  # start of each part in microseconds since 1970, by place
    ends: Int64s

    @classmethod
    def of(cls, parts: Mapping[Cell, Part], slices: int) -> "Grid":
        """Builds the smallest grid that holds the cells."""
        starts = [cell.window.start_micros for cell in parts]
        window = next(iter(parts)).window
        length = micros_at(window.end) - micros_at(window.start)
        first = min(starts)
        size = ((max(starts) - first) // length + 1) * slices
        batches, begins, ends = (np.zeros(size, np.int64) for _ in range(3))
        grid = cls(
            first=first, length=length, slices=slices, batches=batches, begins=begins, ends=ends
        )
        for cell, part in parts.items():
            place = grid.place_of(cell)
            batches[place] = part.batch
            begins[place], ends[place] = micros_at(part.begin), micros_at(part.end)
        return grid

    def place_of(self, cell: Cell) -> int:
        """Returns the index of the cell in `batches`."""
        return (cell.window.start_micros - self.first) // self.length * self.slices + cell.slice

    def places_of(self, timestamps: pa.Array, slices: Int64s) -> Int64s:
        """Returns the place of each row, or NOT_OURS for a row outside all parts of the turn."""
        micros = micros_of(timestamps)
        times = fixed_width(micros, np.int64)
        windows = (times - self.first) // self.length
        places = windows * self.slices + slices
        inside = (windows >= 0) & (places < len(self.batches))
        at = np.where(inside, places, 0)
        inside &= (self.batches[at] != 0) & (times >= self.begins[at]) & (times < self.ends[at])
        nulls = null_mask(micros)
        if nulls is not None:
            inside &= ~nulls
        places[~inside] = NOT_OURS
        return places

    def count(self, places: Int64s) -> Int64s:
        """Counts the rows of each place."""
        return np.bincount(places, minlength=len(self.batches))

    def occupied(self) -> Iterable[int]:
        """Returns the places of the turn's cells."""
        return (int(place) for place in np.flatnonzero(self.batches))

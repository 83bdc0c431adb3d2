"""A grid lays the cells of one turn out as an array, so that arithmetic finds the cell of a row.

The index of a cell in that array is called its place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import Int64s, fixed_width, null_mask
from bq_harper_assets.sync.cells.cell import Cell

NOT_OURS = -1


@dataclass(frozen=True)
class Part:
    """A part is what a turn moves of one cell: [begin, end) on the axis of its cut, as a batch."""

    batch: int
    begin: int
    end: int

    @classmethod
    def whole(cls, cell: Cell, batch: int) -> "Part":
        """Returns the part that covers all of the cell's range."""
        return cls(batch, cell.range.axis_start, cell.range.axis_end)


@dataclass(frozen=True, eq=False, kw_only=True)
class Grid:
    """A grid has every slice of each range; a cell that is not in the turn has the batch 0."""

    first: int  # start of the first range on the axis
    length: int  # of each range on the axis
    slices: int
    batches: Int64s  # the ledger's batch number of each cell, by place; range by range
    begins: Int64s  # start of each part on the axis, by place
    ends: Int64s

    @classmethod
    def of(cls, parts: Mapping[Cell, Part], slices: int) -> "Grid":
        """Builds the smallest grid that holds the cells."""
        starts = [cell.range.axis_start for cell in parts]
        one = next(iter(parts)).range
        length = one.axis_end - one.axis_start
        first = min(starts)
        size = ((max(starts) - first) // length + 1) * slices
        batches, begins, ends = (np.zeros(size, np.int64) for _ in range(3))
        grid = cls(
            first=first, length=length, slices=slices, batches=batches, begins=begins, ends=ends
        )
        for cell, part in parts.items():
            place = grid.place_of(cell)
            batches[place] = part.batch
            begins[place], ends[place] = part.begin, part.end
        return grid

    def place_of(self, cell: Cell) -> int:
        """Returns the index of the cell in `batches`."""
        return (cell.range.axis_start - self.first) // self.length * self.slices + cell.slice

    def places_of(self, axis_values: pa.Int64Array, slices: Int64s) -> Int64s:
        """Returns the place of each row, or NOT_OURS for a row outside all parts of the turn."""
        values = fixed_width(axis_values, np.int64)
        ranges = (values - self.first) // self.length
        places = ranges * self.slices + slices
        inside = (ranges >= 0) & (places < len(self.batches))
        at = np.where(inside, places, 0)
        inside &= (self.batches[at] != 0) & (values >= self.begins[at]) & (values < self.ends[at])
        nulls = null_mask(axis_values)
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

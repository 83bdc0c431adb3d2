"""The cells of one run laid out as an array, so that rows find theirs by arithmetic alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.arrow_buffers import Int64s, fixed_width
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.windows import Window

_MICROSECOND = timedelta(microseconds=1)
NOT_OURS = -1


@dataclass(frozen=True, eq=False)
class Grid:
    """Windows of one length times all slices; a cell outside the run has the batch 0."""

    first: int  # microseconds since 1970 to the first window
    length: int  # microseconds
    slices: int
    batches: Int64s  # ledger sequence by place, window by window

    @classmethod
    def of(cls, batches: Mapping[Cell, int], slices: int) -> "Grid":
        """The smallest grid that holds the cells, each with its batch."""
        starts = [cell.window.start_micros for cell in batches]
        window = next(iter(batches)).window
        length = (window.end - window.start) // _MICROSECOND
        first = min(starts)
        places = np.zeros(((max(starts) - first) // length + 1) * slices, np.int64)
        grid = cls(first, length, slices, places)
        for cell, batch in batches.items():
            places[grid.place_of(cell)] = batch
        return grid

    def place_of(self, cell: Cell) -> int:
        """Where the cell is in `batches`."""
        return (cell.window.start_micros - self.first) // self.length * self.slices + cell.slice

    def cell_at(self, place: int) -> Cell:
        """The cell at a place."""
        window, part = divmod(place, self.slices)
        start = self.first + window * self.length
        return Cell(Window.starting(start, timedelta(microseconds=self.length)), part)

    def places_of(self, window_starts: pa.Int64Array, slices: Int64s) -> Int64s:
        """The place of each row; NOT_OURS for rows of cells that are not in the run."""
        windows = (fixed_width(window_starts, np.int64) - self.first) // self.length
        places = windows * self.slices + slices
        inside = (windows >= 0) & (places < len(self.batches))
        places[~inside] = NOT_OURS
        places[inside & (self.batches[np.where(inside, places, 0)] == 0)] = NOT_OURS
        return places

    def count(self, places: Int64s) -> Int64s:
        """How many rows each place has."""
        return np.bincount(places, minlength=len(self.batches))

    def occupied(self) -> Iterable[int]:
        """The places of the run's cells."""
        return (int(place) for place in np.flatnonzero(self.batches))

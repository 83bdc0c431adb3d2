"""Tasks read a turn's rows from the splits of its source, and give each its id and its cell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from bq_harper_assets.sync.arrays.arrow_memory import Bools, Int64s
from bq_harper_assets.sync.cells.cut import Cut
from bq_harper_assets.sync.cells.grid import NOT_OURS, Grid
from bq_harper_assets.sync.cells.slicing import slice_of
from bq_harper_assets.sync.identity.occurrences import Counter, Numbers
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets.sync.identity.row_id import Identity, identify
from bq_harper_assets.sync.protocols import Split

ROWS_AT_ONCE = 20_000  # hashing and encoding need a few thousand rows to be fast


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading:
    """A reading says what is read and how its rows become records; it is sent to the executors."""

    splits: tuple[tuple[Split, ...], ...]  # by task
    layout: Any  # the target's RowLayout, which only the target knows in full
    cut: Cut
    grid: Grid
    numbers: Mapping[str, Numbers] = field(default_factory=dict)  # by split


@dataclass(frozen=True, eq=False)
class CellRows:
    """Cell rows are a batch of rows of the turn's cells, with each row's identity and place."""

    batch: pa.RecordBatch
    identity: Identity
    places: Int64s

    def where(self, rows: Bools) -> "CellRows":
        """Returns the rows that the mask selects."""
        if rows.all():
            return self
        batch = self.batch.filter(pa.array(rows))
        return CellRows(batch, self.identity.where(rows), self.places[rows])


def spread(splits: Sequence[Split], tasks: int) -> tuple[tuple[Split, ...], ...]:
    """Distributes the splits over at most `tasks` tasks."""
    return tuple(tuple(splits[first::tasks]) for first in range(min(tasks, len(splits))))


def cell_rows(reading: Reading, splits: Sequence[Split]) -> Iterator[CellRows]:
    """Yields all rows of these splits that belong to a cell of the turn."""
    layout = reading.layout
    for split in splits:
        counter = Counter(reading.numbers.get(split.name))
        for batch in batches_of(reading, split):
            hashes = row_hashes(batch, layout.names) if reading.numbers else None
            numbers = None if hashes is None else counter.number(hashes)
            identity = identify(batch, layout, numbers)
            slices = slice_of(identity.id_hashes, reading.grid.slices)
            values = reading.cut.axis_values(batch, layout.timestamp, layout.key)
            places = reading.grid.places_of(values, slices)
            yield CellRows(batch, identity, places).where(places != NOT_OURS)


def read_here(reading: Reading) -> Iterator[CellRows]:
    """Reads all rows in this process, without Spark; it is meant for few rows."""
    for splits in reading.splits:
        yield from cell_rows(reading, splits)


def batches_of(reading: Reading, split: Split) -> Iterator[pa.RecordBatch]:
    """Yields the split's rows in batches that are large enough to compute on fast."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in split.batches():
        named = reading.layout.named(batch)
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            waiting.append(named.slice(first, ROWS_AT_ONCE))
            count += waiting[-1].num_rows
            if count >= ROWS_AT_ONCE:
                yield pa.concat_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield pa.concat_batches(waiting)

"""Tasks read a turn's rows from BigQuery's streams, and give each its id and its cell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.read_session import read_stream
from bq_harper_assets.sync.arrays.arrow_memory import Bools, Int64s
from bq_harper_assets.sync.cells.grid import NOT_OURS, Grid
from bq_harper_assets.sync.cells.slicing import slice_of
from bq_harper_assets.sync.identity.occurrences import Counter, Numbers
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets.sync.identity.row_id import Identity, identify
from bq_harper_assets.sync.values.row_plan import RowPlan

ROWS_AT_ONCE = 20_000  # hashing and encoding need a few thousand rows to be fast


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading:
    """A reading says what is read and how its rows become records; it is sent to the executors."""

    bigquery: BigQueryConnection
    streams: tuple[tuple[str, ...], ...]  # by task
    schema: bytes
    plan: RowPlan
    grid: Grid
    give_up_after: timedelta
    numbers: Mapping[str, Numbers] = field(default_factory=dict)


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


def spread(streams: Sequence[str], tasks: int) -> tuple[tuple[str, ...], ...]:
    """Distributes the streams over at most `tasks` tasks."""
    return tuple(tuple(streams[first::tasks]) for first in range(min(tasks, len(streams))))


def cell_rows(reading: Reading, streams: Sequence[str]) -> Iterator[CellRows]:
    """Yields all rows of these streams that belong to a cell of the turn."""
    for stream in streams:
        counter = Counter(reading.numbers.get(stream))
        for batch in batches_of(reading, stream):
            hashes = row_hashes(batch, reading.plan.names) if reading.numbers else None
            numbers = None if hashes is None else counter.number(hashes)
            identity = identify(batch, reading.plan, numbers)
            slices = slice_of(identity.id_hashes, reading.grid.slices)
            places = reading.grid.places_of(batch.column(reading.plan.timestamp), slices)
            yield CellRows(batch, identity, places).where(places != NOT_OURS)


def read_here(reading: Reading) -> Iterator[CellRows]:
    """Reads all rows in this process, without Spark; it is meant for few rows."""
    for streams in reading.streams:
        yield from cell_rows(reading, streams)


def batches_of(reading: Reading, stream: str) -> Iterator[pa.RecordBatch]:
    """Yields the stream's rows in batches that are large enough to compute on fast."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    calls = BigQueryCalls(reading.bigquery, give_up_after=reading.give_up_after)
    for batch in read_stream(reading.bigquery, stream, reading.schema, calls=calls):
        named = reading.plan.named(batch)
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            waiting.append(named.slice(first, ROWS_AT_ONCE))
            count += waiting[-1].num_rows
            if count >= ROWS_AT_ONCE:
                yield pa.concat_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield pa.concat_batches(waiting)

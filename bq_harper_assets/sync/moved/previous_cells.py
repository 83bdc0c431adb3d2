"""Before rows are written, they are looked up by id to find the other cells that have them now.

A keyed row keeps its id when its time changes. Writing it into its new window takes it out of the
old one, whose commit is then no longer true; so the old cell is marked first.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bq_harper_assets.errors import BqhError
from bq_harper_assets.sync.cells.grid import Grid
from bq_harper_assets.sync.protocols import Split, TargetOfTasks
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading, cell_rows
from bq_harper_assets.sync.spark.receipts import Failure, error_of, failure_of
from bq_harper_assets.sync.spark.tasks import task_rows
from bq_harper_assets.sync.write.write_task import Chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOUND_DDL = "found binary"

OldCells = dict[tuple[int, int], int]  # the latest time of such a row, by (window start, slice)


@dataclass(frozen=True, eq=False, kw_only=True)
class PreviousCellSearch:
    """A search says which rows are about to be written, and where to find their older versions."""

    reading: Reading
    target: TargetOfTasks
    chosen: Chosen


def cells_elsewhere(spark: "SparkSession", look: PreviousCellSearch) -> OldCells:
    """Finds the other cells in which the target has rows that are about to be written.

    Their keys and times are in microseconds.
    """
    if not look.reading.splits:
        return {}

    def run(splits: tuple[Split, ...]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[pickle.dumps(_look(look, splits))]], names=["found"])

    merged: OldCells = {}
    for row in task_rows(spark, look.reading.splits, run, _FOUND_DDL).collect():
        answer = pickle.loads(bytes(row.found))
        if isinstance(answer, Failure):
            raise error_of(answer)
        _merge(merged, answer)
    return merged


def _look(look: PreviousCellSearch, splits: Sequence[Split]) -> OldCells | Failure:
    found: OldCells = {}
    try:
        with look.target.row_times(look.reading.layout) as row_times:
            for rows in cell_rows(look.reading, splits):
                written = rows.where(look.chosen.among(rows))
                named = written.where(
                    written.identity.ids.is_valid().to_numpy(zero_copy_only=False)
                )
                held = row_times(named.identity.ids)
                _merge(found, _held_elsewhere(look.reading.grid, named, held))
    except BqhError as error:
        return failure_of(error)
    return found


def _held_elsewhere(grid: Grid, rows: CellRows, held: Iterable[tuple[Any, int | None]]) -> OldCells:
    own = dict(zip(rows.identity.ids.to_pylist(), rows.places.tolist(), strict=True))
    found: OldCells = {}
    for row_id, time in held:
        if time is None:
            continue
        window, slice_number = divmod(own[row_id], grid.slices)
        start = time - time % grid.length
        if start != grid.first + window * grid.length:
            _merge(found, {(start, slice_number): time})
    return found


def _merge(into: OldCells, more: OldCells) -> None:
    for cell, time in more.items():
        into[cell] = max(time, into.get(cell, time))

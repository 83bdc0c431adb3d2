"""Before rows are written, they are looked up by id to find the other cells that have them now.

A keyed row keeps its id when its time changes. Writing it into its new window takes it out of the
old one, whose commit is then no longer true; so the old cell is marked first.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from bq_harper_assets.errors import BqhError
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import IDS_PER_REQUEST, HarperClient
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.diff.target_times import stored_micros
from bq_harper_assets.sync.source.cell_rows import CellRows, Reading, cell_rows
from bq_harper_assets.sync.spark.receipts import Failure, error_of, failure_of
from bq_harper_assets.sync.spark.task_login import HarperOfTasks
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
    harper: HarperOfTasks
    target: str
    timestamp_kind: Kind
    chosen: Chosen
    retry: RetryPolicy


def cells_elsewhere(spark: "SparkSession", look: PreviousCellSearch) -> OldCells:
    """Finds the other cells in which the target has rows that are about to be written.

    Their keys and times are in microseconds.
    """
    if not look.reading.streams:
        return {}

    def run(streams: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[pickle.dumps(_look(look, streams))]], names=["found"])

    merged: OldCells = {}
    for row in task_rows(spark, look.reading.streams, run, _FOUND_DDL).collect():
        answer = pickle.loads(bytes(row.found))
        if isinstance(answer, Failure):
            raise error_of(answer)
        _merge(merged, answer)
    return merged


def _look(look: PreviousCellSearch, streams: Sequence[str]) -> OldCells | Failure:
    found: OldCells = {}
    with HarperClient(look.harper.connection(), retry=look.retry) as client:
        try:
            for rows in cell_rows(look.reading, streams):
                written = rows.where(look.chosen.among(rows))
                named = written.where(
                    written.identity.ids.is_valid().to_numpy(zero_copy_only=False)
                )
                _merge(found, _held_elsewhere(look, client, named))
        except BqhError as error:
            return failure_of(error)
    return found


def _held_elsewhere(look: PreviousCellSearch, client: HarperClient, rows: CellRows) -> OldCells:
    grid, plan = look.reading.grid, look.reading.plan
    ids, places = rows.identity.ids, rows.places
    found: OldCells = {}
    for first in range(0, len(ids), IDS_PER_REQUEST):
        some = ids.slice(first, IDS_PER_REQUEST).to_pylist()
        held = client.search_by_id(look.target, some, (plan.primary_key, plan.timestamp))
        if not held:
            continue
        own = dict(zip(some, places[first : first + IDS_PER_REQUEST].tolist(), strict=True))
        times = stored_micros([row.get(plan.timestamp) for row in held], look.timestamp_kind)
        found_ids = require_ids(held, plan.primary_key, "search_by_id", look.target)
        for row_id, time in zip(found_ids, times, strict=True):
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

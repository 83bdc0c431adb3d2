"""The target's answers hold all slices of a window, and a turn may have some of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.diff.diff_job import DiffJob, compare
from bq_harper_assets.sync.protocols import TargetRange, TargetRows
from bq_harper_assets.sync.source.cell_rows import Reading

DAY = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class OneOfEachSlice:
    """A target with the rows 10 and 11, which are of the slices 0 and 1."""

    waits: None = None
    extras: tuple[str, ...] = ()

    @contextmanager
    def reader(self, *_: Any, **__: Any) -> Iterator["OneOfEachSlice"]:
        yield self

    def rows(self, ranges: Sequence[TargetRange]) -> Iterator[tuple[TargetRange, TargetRows]]:
        keys = pa.array([10, 11])
        hashes = np.array([1, 1], np.uint64)
        held = TargetRows(np.arange(2), id_hashes(keys, keyless=False), hashes, keys)
        yield from ((each, held) for each in ranges)


@pytest.mark.spark
def test_rows_of_a_slice_that_is_not_in_the_turn_are_left_out(spark: SparkSession) -> None:
    cell = Cell(Window(DAY, DAY + timedelta(hours=1)), 1)
    grid = Grid.of({cell: Part.whole(cell, 7)}, slices=2)
    target: Any = OneOfEachSlice()
    cut: Any = None  # no row of the source is read
    reading = Reading(splits=(), layout=None, cut=cut, grid=grid)
    job = DiffJob(reading=reading, target=target, ranges=((TargetRange(0, "", ""),),))
    found = compare(spark, job)
    assert {place: diff.vanished for place, diff in found.items()} == {grid.place_of(cell): [11]}

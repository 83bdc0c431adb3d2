"""Rows that left their window, written where they are now: before any row is taken out."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.grid import Part
from bq_harper_assets.sync.mover import Moved, move_all
from bq_harper_assets.sync.scene import Scene, Source
from bq_harper_assets.sync.slices import id_hashes
from bq_harper_assets.sync.source import asked_again
from bq_harper_assets.sync.task import Chosen
from bq_harper_assets.sync.vanished import times_of_rows
from bq_harper_assets.sync.windows import EPOCH
from bq_harper_assets.sync.work import Work

INSTANTS_PER_SESSION = 1_000

ByTime = dict[int, list[tuple[Any, Work]]]  # ids, by microseconds


def write_moved(scene: Scene, works: Sequence[Work]) -> list[Moved]:
    """Rows that left their window are brought up to date where they are now."""
    written = [work for work in works if not work.refusal]
    moved = [
        _write_at(scene, scene.source, some)
        for some in _by_time((work, work.vanished.elsewhere) for work in written)
    ]
    cells = {work.cell for work in works}
    for some in _by_time((work, _later(work, cells)) for work in written):
        moved += _write_again(scene, some)
    return moved


def _later(work: Work, cells: Collection[Cell]) -> dict[Any, int]:
    """What came after T into a cell of this run, which is what it was at T, is not for this run."""
    seen = work.vanished.later
    return {i: time for i, time in seen.items() if work.destinations[i] not in cells}


def _by_time(
    elsewhere: Iterable[tuple[Work, Mapping[Any, int]]],
) -> Iterator[ByTime]:
    """Rows by their time, so many times at once."""
    by_time: ByTime = {}
    for work, rows in elsewhere:
        for row_id, micros in rows.items():
            by_time.setdefault(micros, []).append((row_id, work))
    times = sorted(by_time)
    for first in range(0, len(times), INSTANTS_PER_SESSION):
        yield {time: by_time[time] for time in times[first : first + INSTANTS_PER_SESSION]}


def _write_again(scene: Scene, by_time: ByTime) -> list[Moved]:
    """Rows that a query did not have in its kept result: it is asked for them once more.

    They are newer than T; so is every later run of the cells that they go to, which are marked.
    """
    source = scene.source
    instants = [EPOCH + timedelta(microseconds=micros) for micros in by_time]
    with asked_again(source.queries, source.contract, source.pin, instants) as pin:
        ids = [row_id for rows in by_time.values() for row_id, _ in rows]
        found = times_of_rows(
            source.queries, source.harper, source.contract, pin, pin.source.sql, ids
        )
        still: ByTime = {}
        for micros, rows in by_time.items():
            if some := [(row_id, work) for row_id, work in rows if found.get(row_id) == micros]:
                still[micros] = some
        if not still:
            return []
        moved = _write_at(scene, replace(source, pin=pin), still)
    for rows in still.values():
        for row_id, work in rows:
            work.brought.add(row_id)
    return [moved]


def _write_at(scene: Scene, source: Source, by_time: ByTime) -> Moved:
    parts = {}
    for micros, rows in by_time.items():
        for _, work in rows:
            cell = scene.cell_at(micros, work.cell.slice)
            parts[cell] = Part.whole(cell, work.batch.seq)
    instants = [EPOCH + timedelta(microseconds=micros) for micros in by_time]
    reading = source.reading_at(instants, parts)
    ids = [row_id for rows in by_time.values() for row_id, _ in rows]
    chosen = Chosen(
        np.zeros(len(reading.grid.batches), np.bool_),
        np.sort(id_hashes(pa.array(ids), keyless=False)),
    )
    return move_all(source.spark, scene.move(reading, rows=len(ids), chosen=chosen))

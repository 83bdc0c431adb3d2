"""Rows that left their window are written into their new one before any row is deleted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.instants import instant_at
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.cells.slicing import id_hashes
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.protocols import PinnedSource
from bq_harper_assets.sync.turn_context import TurnContext, TurnSource
from bq_harper_assets.sync.write.write_job import WriteResult, write_all
from bq_harper_assets.sync.write.write_task import Chosen

INSTANTS_PER_SESSION = 1_000

ByTime = dict[int, list[tuple[Any, CellWork]]]  # ids, by microseconds


def write_moved(turn: TurnContext, works: Sequence[CellWork]) -> list[WriteResult]:
    """Writes the rows that left their window as they are now, each into its new cell.

    All rows that one cell gets are written under one batch, which is that of one of their origins.
    """
    written = [work for work in works if not work.refusal]
    moved = [
        _write_at(turn, turn.source, some)
        for some in _by_time((work, work.vanished.elsewhere) for work in written)
    ]
    # These rows are newer than T. Their new cells are marked, and later turns of those are newer.
    kept = [seen.pin for work in written for seen in work.vanished.later.values()]
    for pin in {id(each): each for each in kept}.values():
        rows = ((work, _seen_in(work, pin)) for work in written)
        source = replace(turn.source, pin=pin)
        moved += [_write_at(turn, source, some) for some in _by_time(rows)]
    return moved


def _seen_in(work: CellWork, pin: PinnedSource) -> dict[Any, int]:
    return {i: seen.micros for i, seen in work.vanished.later.items() if seen.pin is pin}


def _by_time(
    elsewhere: Iterable[tuple[CellWork, Mapping[Any, int]]],
) -> Iterator[ByTime]:
    """Groups the rows by their time, and yields INSTANTS_PER_SESSION of these times at once."""
    by_time: ByTime = {}
    for work, rows in elsewhere:
        for row_id, micros in rows.items():
            by_time.setdefault(micros, []).append((row_id, work))
    times = sorted(by_time)
    for first in range(0, len(times), INSTANTS_PER_SESSION):
        yield {time: by_time[time] for time in times[first : first + INSTANTS_PER_SESSION]}


def _write_at(turn: TurnContext, source: TurnSource, by_time: ByTime) -> WriteResult:
    parts = {}
    for micros, rows in by_time.items():
        for _, work in rows:
            cell = turn.cell_at(micros, work.cell.slice)
            parts[cell] = Part.whole(cell, work.batch.seq)
    instants = [instant_at(micros) for micros in by_time]
    reading = source.reading_at(instants, parts)
    ids = [row_id for rows in by_time.values() for row_id, _ in rows]
    chosen = Chosen(
        np.zeros(len(reading.grid.batches), np.bool_),
        np.sort(id_hashes(pa.array(ids), keyless=False)),
    )
    return write_all(source.spark, turn.write_job(reading, rows=len(ids), chosen=chosen))

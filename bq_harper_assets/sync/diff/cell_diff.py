"""Cells of a pinned source are compared with the target's rows of now."""

from collections.abc import Iterator, Mapping

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import CellRange
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.diff.diff_job import CellDiff, DiffJob, compare
from bq_harper_assets.sync.protocols import TargetRange
from bq_harper_assets.sync.spark.hash_blobs import bins_per_place
from bq_harper_assets.sync.turn_context import TurnSource


def compare_cells(
    source: TurnSource,
    parts: Mapping[Cell, Part],
    rows: Mapping[CellRange, int],
    *,
    has_equal_rows: bool,
    deep: bool = False,
    as_written: bool = False,
) -> Mapping[Cell, CellDiff]:
    """Compares cells and returns the differences; `rows` is approximately how many each range has.

    `deep` compares values instead of stored hashes. `as_written` also compares the stored hash: a
    turn must repair a wrong one, because the next quick comparison trusts it.
    """
    reading = source.reading(parts, has_equal_rows=has_equal_rows)
    job = DiffJob(
        reading=reading,
        target=source.target.of_tasks(source.spark),
        ranges=_dealt(_held_ranges(source, parts, rows, reading.grid), source.tasks),
        per_place=bins_per_place(max(rows.values())),
        deep=deep,
        as_written=as_written,
    )
    found = compare(source.spark, job)
    return {cell: found[reading.grid.place_of(cell)] for cell in parts}


def _held_ranges(
    source: TurnSource, parts: Mapping[Cell, Part], rows: Mapping[CellRange, int], grid: Grid
) -> Iterator[TargetRange]:
    ends: dict[CellRange, int] = {}
    for cell, part in parts.items():
        ends[cell.range] = max(part.end, ends.get(cell.range, part.end))
    for each, end in sorted(ends.items(), key=lambda item: item[0].axis_start):
        first = grid.place_of(Cell(each, 0))
        yield from source.target.ranges(source.pin.plan, first, each.axis_start, end, rows[each])


def _dealt(ranges: Iterator[TargetRange], tasks: int) -> tuple[tuple[TargetRange, ...], ...]:
    everything = list(ranges)
    return tuple(tuple(everything[n::tasks]) for n in range(min(tasks, len(everything))))

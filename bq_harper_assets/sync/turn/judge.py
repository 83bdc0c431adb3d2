"""A cell is done if the counts of the source, the tasks, Spark and the target agree."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bq_harper_assets.ledger.records import CellResult, Rejection
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import CellRange
from bq_harper_assets.sync.cells.grid import Grid
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.protocols import DeletePolicy
from bq_harper_assets.sync.spark.receipts import Tally, merged
from bq_harper_assets.sync.write.write_job import WriteResult


@dataclass(frozen=True)
class Removed:
    """A removal's outcome says which cells failed, and whether every delete was answered."""

    policy: DeletePolicy
    failed: Mapping[Cell, str]
    is_transient: bool
    all_answered: bool


@dataclass(frozen=True)
class CellOutcome:
    """An outcome is the result of one cell after the write, and the problem if it is not done."""

    cell: Cell
    result: CellResult
    problem: str | None = None


def judge_cells(
    works: Sequence[CellWork],
    grid: Grid | None,
    moved: WriteResult,
    elsewhere: Sequence[WriteResult],
    removed: Removed,
    seconds: float,
) -> list[CellOutcome]:
    """Judges every cell of the turn; `grid` has the place of each in the write.

    A range all of whose slices are in the turn is done when its cells add up to what the source
    counted in it, even if a task failed; cells of any other range are done only if no task did.
    """
    counts = _Counts(grid, moved)
    failed_elsewhere = _failure(*elsewhere)
    outcomes = []
    whole = {each: _is_whole(of_range) for each, of_range in _by_range(works).items()}
    settled = {
        each: sum(counts.settled(work) for work in of_range)
        for each, of_range in _by_range(works).items()
    }
    for work in works:
        result = counts.result(work, removed.policy, seconds)
        problem = work.refusal or removed.failed.get(work.cell)
        if problem is None and work.destinations and failed_elsewhere:
            problem = failed_elsewhere
        if problem is None:
            each = work.cell.range
            problem = counts.problem(work, result, settled[each] if whole[each] else None)
        outcomes.append(CellOutcome(work.cell, result, problem))
    return outcomes


class _Counts:
    """These counts are what the tasks of the write and Spark returned of each cell."""

    def __init__(self, grid: Grid | None, moved: WriteResult) -> None:
        self._grid = grid
        self._moved = moved
        self._tallies = merged(moved.receipts)
        self._failed = _failure(moved)
        self._refused: dict[int, list[Rejection]] = {}
        self._stale: dict[int, str] = {}  # an old version of a rejected row may still be stored
        for receipt in moved.receipts:
            for refusal in receipt.refusals:
                if receipt.failure:
                    self._stale[refusal.place] = receipt.failure.error
                rejection = Rejection(refusal.row_id, refusal.reason, refusal.payload)
                self._refused.setdefault(refusal.place, []).append(rejection)

    def _place(self, work: CellWork) -> int:
        return self._grid.place_of(work.cell) if self._grid and work.has_rows_to_write else -1

    def settled(self, work: CellWork) -> int:
        """Counts the rows that are written, were stored already, or are rejected."""
        place = self._place(work)
        written = self._tallies.get(place, Tally()).written + len(self._refused.get(place, []))
        return written + (work.diff.equal if work.diff else 0)

    def result(self, work: CellWork, policy: DeletePolicy, seconds: float) -> CellResult:
        place = self._place(work)
        tally = self._tallies.get(place, Tally())
        read = work.diff.read if work.diff else tally.read
        equal = work.diff.equal if work.diff else 0
        gone = 0 if work.refusal else len(work.vanished.gone)
        return CellResult(
            read=read,
            written=tally.written,
            unchanged=equal,
            quarantined=read - tally.written - equal,
            digest=str((work.diff.digest if work.diff else tally.digest) + work.digest_before),
            deleted=gone if policy == "mirror" else 0,
            flagged=gone if policy == "flag" else 0,
            kept=gone if policy == "keep" else 0,
            moved=0 if work.refusal else len(work.destinations),
            held=work.diff.held if work.diff else 0,
            bytes=tally.bytes,
            seconds=seconds,
            rejections=tuple(self._refused.get(place, [])),
        )

    def problem(self, work: CellWork, result: CellResult, settled: int | None) -> str | None:
        """Returns why the cell is not done; None if it is.

        `settled` is the count of the whole range if all of it is in the turn, otherwise None.
        """
        place = self._place(work)
        if settled is not None and settled != work.rows:
            return self._failed or (
                f"the source counts {work.rows} rows in the range and {settled} arrived"
            )
        if settled is None and self._failed and work.has_rows_to_write:
            return self._failed
        if place in self._stale:
            return self._stale[place]
        if result.quarantined != len(result.rejections):
            return self._failed or (
                f"{result.read} rows read, {result.written} written, {result.unchanged} there "
                f"already and {len(result.rejections)} refused"
            )
        sent, distinct = self._moved.sent.get(place, 0), self._moved.distinct.get(place, 0)
        if work.diff and work.diff.ids != work.diff.distinct:
            sent, distinct = work.diff.ids, work.diff.distinct
        if sent != distinct:
            return f"{sent} rows have only {distinct} different ids: rows would be lost"
        return None


def with_moved_rows_together(
    works: Sequence[CellWork], outcomes: Sequence[CellOutcome]
) -> list[CellOutcome]:
    """Fails cells whose rows have moved where rows of a failed cell have moved, too.

    The rows that one cell gets are staged together, under the batch of one of their origins. If
    another origin was committed without them, it would still hold rows that the ledger says left.
    """
    judged = list(outcomes)
    while True:
        waiting = {
            cell: each.cell
            for work, each in zip(works, judged, strict=True)
            if each.problem and not work.refusal
            for cell in work.destinations.values()
        }
        before = list(judged)
        for at, (work, each) in enumerate(zip(works, before, strict=True)):
            held_back = sorted(
                waiting[cell].key for cell in set(work.destinations.values()) & waiting.keys()
            )
            if held_back and not each.problem:
                why = f"its rows that moved are taken with those of {held_back[0]}, which failed"
                judged[at] = replace(each, problem=why)
        if judged == before:
            return judged


def spared_from_deletes(
    works: Sequence[CellWork], grid: Grid | None, moved: WriteResult, *, allowed: bool
) -> dict[Cell, str]:
    """Returns the cells whose vanished rows must stay because their new rows are not all stored.

    The reason is given by cell.
    """
    failed = _failure(moved)
    refused = Counter(refusal.place for receipt in moved.receipts for refusal in receipt.refusals)
    spared = {}
    for work in works:
        if grid is None or not (work.vanished.gone and work.has_rows_to_write):
            continue
        unstored = refused[grid.place_of(work.cell)]
        after = (
            replace(work.loss, gained=max(work.loss.gained - unstored, 0)) if work.loss else None
        )
        if failed:
            spared[work.cell] = f"its new rows were not all written, so none was deleted: {failed}"
        elif after and after.is_too_much and not allowed:
            spared[work.cell] = (
                f"{unstored:,} of its new rows cannot be stored, so none was deleted: it would lose"
                f" {after.lost:,} of the {after.held:,} rows that the target holds of it"
            )
    return spared


def _failure(*moves: WriteResult) -> str | None:
    failures = (r.failure for moved in moves for r in moved.receipts)
    return next((failure.error for failure in failures if failure), None)


def _by_range(works: Sequence[CellWork]) -> dict[CellRange, list[CellWork]]:
    ranges: dict[CellRange, list[CellWork]] = {}
    for work in works:
        ranges.setdefault(work.cell.range, []).append(work)
    return ranges


def _is_whole(of_range: Sequence[CellWork]) -> bool:
    """Says whether the source's count applies: all slices are here and cover the same part."""
    slices = of_range[0].batch.route.facts.slices
    parts = {(work.part.begin, work.part.end) for work in of_range}
    refused = any(work.refusal for work in of_range)
    return len(of_range) == slices and len(parts) == 1 and not refused

"""A cell that may have rows in the target is compared with its source; what differs is applied.

The order keeps every row present. A cell from which a write will take a row is marked in the ledger
first, and rows that changed windows are written before any row is deleted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bq_harper_assets.instants import instant_at
from bq_harper_assets.ledger.records import CellKey, Intent, Mark
from bq_harper_assets.sync.arrays.arrow_memory import UInt64s
from bq_harper_assets.sync.cells.grid import Grid
from bq_harper_assets.sync.diff.cell_diff import compare_cells
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.moved.gone_or_moved import find_later, find_vanished
from bq_harper_assets.sync.moved.previous_cells import PreviousCellSearch, cells_elsewhere
from bq_harper_assets.sync.plan.cell_work import CellWork, Vanished
from bq_harper_assets.sync.plan.delete_guard import REMEMBERED, Loss, refusals
from bq_harper_assets.sync.plan.retention import younger_than_retention
from bq_harper_assets.sync.source.cell_rows import Reading
from bq_harper_assets.sync.turn_context import TurnContext, TurnSource
from bq_harper_assets.sync.write.write_task import Chosen


def compare_works(source: TurnSource, works: Sequence[CellWork]) -> None:
    """Gives each cell its difference, by stored hashes or, where those may be stale, by values."""
    for deep in (False, True):
        some = [work for work in works if work.may_be_stale is deep]
        if not some:
            continue
        found = compare_cells(
            source,
            {work.cell: work.part for work in some},
            {work.cell.range: work.rows for work in some},
            has_equal_rows=any(work.has_equal_rows for work in some),
            deep=deep,
            as_written=True,
        )
        for work in some:
            work.diff = found[work.cell]


def find_gone(turn: TurnContext, works: Sequence[CellWork]) -> None:
    """Separates rows that are gone from the source from rows that are in another range now."""
    if not turn.cut.rows_move:
        for work in works:
            work.vanished = Vanished(list(work.diff.vanished) if work.diff else [])
        return
    pin, target = turn.source.pin, turn.source.target
    ids = [row_id for work in works if work.diff for row_id in work.diff.vanished]
    found = find_vanished(pin, target, turn.start, ids)
    if not pin.has_past:
        found.later = find_later(pin, target, turn.start, found.gone, turn.until_end)
    alive = found.alive
    for work in works:
        if work.diff:
            work.destinations = {
                row_id: turn.cell_at(alive[row_id], work.cell.slice)
                for row_id in work.diff.vanished
                # A record with the key of a row of this very part is not a version of that row.
                if row_id in alive and not _is_in(work, found.elsewhere.get(row_id))
            }
            work.vanished = Vanished(
                [row_id for row_id in work.diff.vanished if row_id not in work.destinations],
                {i: found.elsewhere[i] for i in work.destinations if i in found.elsewhere},
                {i: found.later[i] for i in work.destinations if i in found.later},
            )


def _is_in(work: CellWork, micros: int | None) -> bool:
    """Says whether a time lies in the part; times of an open window after it do not."""
    if micros is None:
        return False
    return work.part.begin <= micros < work.part.end


def refuse_great_losses(turn: TurnContext, works: Sequence[CellWork], *, allowed: bool) -> None:
    """Records what will be deleted, and lets the guard refuse it unless large losses are allowed.

    A table whose policy keeps deleted rows loses nothing.
    """
    if turn.source.contract.deletes == "keep":
        return
    for work in works:
        work.loss = _loss(turn, work)
    losses = {work.cell: work.loss for work in works if work.loss is not None}
    intents = [
        # A cell that loses nothing in sum is recorded too: otherwise its deletes count at commit.
        Intent(work.batch, losses[work.cell].lost, losses[work.cell].held)
        for work in works
        if work.diff is not None and work.vanished.gone
    ]
    if not intents:
        return
    # This comes before the losses of others are read: of two turns at once, one sees the other.
    turn.ledger.intend_deletes(turn.keeper.leases, intents, allowed=allowed)
    if allowed:
        return
    others = turn.ledger.recent_losses(turn.table, REMEMBERED, [work.batch for work in works])
    contract = turn.source.contract
    refused = refusals(contract.id, losses, others, open_after=turn.t - contract.safety_lag)
    for work in works:
        if (found := refused.get(work.cell)) is not None:
            work.refusal = found.why
            # This is recorded at once: until then other turns count what this one will not delete.
            turn.ledger.refuse_batch(work.batch, found.why, found.until)


def _loss(turn: TurnContext, work: CellWork) -> Loss | None:
    """Returns what a compared cell is about to lose; rows past their retention do not count.

    They do not count as rows of the cell either: among many of them other losses would look small.
    """
    if work.diff is None:
        return None
    young = len(younger_than_retention(turn, work))
    expired = len(work.vanished.gone) - young
    return Loss(young, work.diff.held - expired, len(work.diff.missing))


def mark_destinations(turn: TurnContext, works: Sequence[CellWork]) -> None:
    """Marks cells that get a row which left its window; one committed here needs no mark."""
    position = turn.source.pin.position
    written = [work for work in works if not work.refusal]
    at_t = _marks((work, work.vanished.elsewhere) for work in written)
    if at_t:
        turn.ledger.mark(turn.keeper.leases, position, at_t, unless_committed_there=True)
    # They are marked as of when they were read: a commit at T, of this turn too, lacks them.
    pins = {s.pin.t: s.pin for work in written for s in work.vanished.later.values()}
    for t, pin in sorted(pins.items(), key=lambda each: each[0]):
        later = _marks(
            (work, {i: seen.micros for i, seen in work.vanished.later.items() if seen.pin.t == t})
            for work in written
        )
        turn.ledger.mark(turn.keeper.leases, pin.position, later)


def _marks(moved: Iterable[tuple[CellWork, Mapping[Any, int]]]) -> list[Mark]:
    latest: dict[CellKey, int] = {}
    for work, rows in moved:
        for row_id, micros in rows.items():
            key = cell_key(work.destinations[row_id])
            latest[key] = max(micros, latest.get(key, micros))
    return [Mark(key, instant_at(micros), "a row moved here") for key, micros in latest.items()]


def mark_origins(
    turn: TurnContext, works: Sequence[CellWork], reading: Reading, chosen: Chosen
) -> None:
    """Marks cells from which a write will take a row; only rows with a key can be in another."""
    source = turn.source
    if not (turn.cut.rows_move and works and source.pin.plan.selection.key):
        return
    slices = turn.ledger.slices_committed_at_other_positions(turn.table, works[0].batch.rank)
    if not slices & {work.cell.slice for work in works}:
        return
    found = cells_elsewhere(
        source.spark,
        PreviousCellSearch(
            reading=reading, target=source.target.of_tasks(source.spark), chosen=chosen
        ),
    )
    marks = [
        Mark(
            cell_key(turn.cell_at(start, slice_number)),
            instant_at(micros),
            "a row moved away",
        )
        for (start, slice_number), micros in found.items()
    ]
    if marks:
        turn.ledger.mark(turn.keeper.leases, source.pin.position, marks)


def chosen_rows(works: Sequence[CellWork], grid: Grid) -> Chosen:
    """Chooses every row of cells that are written whole, and what differs in compared cells."""
    whole = np.zeros(len(grid.batches), np.bool_)
    for work in works:
        whole[grid.place_of(work.cell)] = work.diff is None
    return Chosen(whole, _ids([work.diff for work in works if work.diff]))


def unseen_rows(works: Sequence[CellWork], grid: Grid) -> Chosen:
    """Chooses those of chosen_rows() that may be in another cell of the target.

    Rows that the comparison found in their own cell are left out.
    """
    chosen = chosen_rows(works, grid)
    ids = [work.diff.missing for work in works if work.diff]
    return Chosen(chosen.whole, np.unique(np.concatenate(ids)) if ids else chosen.ids[:0])


def _ids(diffs: Sequence[CellDiff]) -> UInt64s:
    parts = [part for diff in diffs for part in (diff.missing, diff.changed)]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.uint64)

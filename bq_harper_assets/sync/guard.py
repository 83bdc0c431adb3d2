"""Refuses to delete much at once: a source that was emptied by accident must not empty the target.

Counted are real deletes, after rows that live on elsewhere were told from those that are gone. What
other runs took out lately, or are about to, counts with this run's: else a table that is emptied by
many small runs, or by runs that all fail, would be emptied without a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bq_harper_assets.ledger.losses import CellLoss
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.windows import Window

MOST_ROWS = 1_000
REMEMBERED = timedelta(hours=24)


@dataclass(frozen=True)
class Loss:
    """What a reconcile would take out of one cell."""

    deletes: int
    held: int

    @property
    def is_too_much(self) -> bool:
        """More than a thousand rows and more than half."""
        return self.deletes > MOST_ROWS and 2 * self.deletes > self.held


def refusals(
    table: str, losses: Mapping[Cell, Loss], others: Sequence[CellLoss] = ()
) -> dict[Cell, str]:
    """Why cells must not be reconciled, by cell; empty if nothing speaks against it."""
    before = _lacking(losses, others)
    both = {cell: _with(loss, before.get(cell)) for cell, loss in losses.items()}
    both |= {cell: loss for cell, loss in before.items() if cell not in losses}
    by_whom = _by_whom([each for each in others if _cell(each) in before])
    refused = {
        cell: f"would lose {_told(loss, both[cell], 'it', by_whom)}"
        for cell, loss in losses.items()
        if loss.is_too_much or (loss.deletes and both[cell].is_too_much)
    }
    total, total_of_both = _sum(losses), _sum(both)
    if total.is_too_much or total_of_both.is_too_much:
        told = _told(total, total_of_both, f"its {len(losses)} cells", by_whom)
        refused |= {
            cell: f"the run would lose {told}"
            for cell, loss in losses.items()
            if loss.deletes and cell not in refused
        }
    return {cell: f"{why}. {_way_out(table, cell)}" for cell, why in refused.items()}


def _lacking(losses: Mapping[Cell, Loss], others: Sequence[CellLoss]) -> dict[Cell, Loss]:
    """Rows that other runs took out and that are not back, nor still there to be taken out.

    What a cell of this run holds was just read. So what a failed run was about to delete counts
    once: here if it was deleted, and with this run's deletes if it was not.
    """
    found = {}
    for each in others:
        cell = _cell(each)
        rows = losses[cell].held if cell in losses else each.rows
        lacking = min(each.lost, each.held - rows)
        if lacking > 0:
            found[cell] = Loss(lacking, each.held)
    return found


def _with(now: Loss, before: Loss | None) -> Loss:
    if before is None:
        return now
    return Loss(before.deletes + now.deletes, max(before.held, now.held))


def _cell(loss: CellLoss) -> Cell:
    return Cell(Window(loss.cell.window_start, loss.cell.window_end), loss.cell.slice)


def _sum(losses: Mapping[Cell, Loss]) -> Loss:
    return Loss(
        sum(loss.deletes for loss in losses.values()), sum(loss.held for loss in losses.values())
    )


def _by_whom(others: Sequence[CellLoss]) -> str:
    if not others:
        return ""
    since = min(each.since for each in others)
    if all(each.is_committed for each in others):
        return f"earlier runs took out since {since:%F %T} UTC"
    return f"other runs took out, or were about to take out, since {since:%F %T} UTC"


def _told(now: Loss, both: Loss, what: str, by_whom: str) -> str:
    told = f"{now.deletes:,} of the {now.held:,} rows that Harper holds of {what}"
    if now.is_too_much or not by_whom:
        return told
    return (
        f"{told}; with the {both.deletes - now.deletes:,} rows that {by_whom} it would be "
        f"{both.deletes:,} of {both.held:,}"
    )


def _way_out(table: str, cell: Cell) -> str:
    start, end = (f"{moment:%Y-%m-%dT%H:%M}" for moment in (cell.window.start, cell.window.end))
    return (
        "Nothing of it was written. If these rows are really gone from BigQuery: "
        f"bqh sync {table} --from {start} --to {end} --allow-deletes"
    )

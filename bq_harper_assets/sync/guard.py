"""Refuses to delete much at once: a source that was emptied by accident must not empty the target.

Counted are real deletes, after rows that live on elsewhere were told from those that are gone. What
earlier runs took out lately counts with this run's: else a table that is emptied by many small runs
would be emptied without a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

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


@dataclass(frozen=True)
class Earlier:
    """What earlier runs took out, and from when on."""

    losses: Mapping[Cell, Loss] = field(default_factory=dict)
    since: datetime | None = None

    @classmethod
    def of(cls, recorded: Sequence[CellLoss]) -> "Earlier":
        """As the ledger has it."""
        losses = {
            Cell(Window(each.cell.window_start, each.cell.window_end), each.cell.slice): Loss(
                each.rows, each.held
            )
            for each in recorded
        }
        return cls(losses, min((each.since for each in recorded), default=None))


def refusals(
    table: str, losses: Mapping[Cell, Loss], earlier: Earlier | None = None
) -> dict[Cell, str]:
    """Why cells must not be reconciled, by cell; empty if nothing speaks against it."""
    earlier = earlier or Earlier()
    both = {**earlier.losses, **losses}
    for cell in losses.keys() & earlier.losses.keys():
        before, now = earlier.losses[cell], losses[cell]
        both[cell] = Loss(before.deletes + now.deletes, max(before.held, now.held))
    refused = {
        cell: f"would lose {_told(loss, both[cell], 'it', earlier.since)}"
        for cell, loss in losses.items()
        if loss.is_too_much or (loss.deletes and both[cell].is_too_much)
    }
    total, total_of_both = _sum(losses), _sum(both)
    if total.is_too_much or total_of_both.is_too_much:
        told = _told(total, total_of_both, f"its {len(losses)} cells", earlier.since)
        refused |= {
            cell: f"the run would lose {told}"
            for cell, loss in losses.items()
            if loss.deletes and cell not in refused
        }
    return {cell: f"{why}. {_way_out(table, cell)}" for cell, why in refused.items()}


def _sum(losses: Mapping[Cell, Loss]) -> Loss:
    return Loss(
        sum(loss.deletes for loss in losses.values()), sum(loss.held for loss in losses.values())
    )


def _told(now: Loss, both: Loss, what: str, since: datetime | None) -> str:
    told = f"{now.deletes:,} of the {now.held:,} rows that Harper holds of {what}"
    if now.is_too_much or since is None:
        return told
    return (
        f"{told}; with the {both.deletes - now.deletes:,} rows that earlier runs took out since "
        f"{since:%F %T} UTC it would be {both.deletes:,} of {both.held:,}"
    )


def _way_out(table: str, cell: Cell) -> str:
    start, end = (f"{moment:%Y-%m-%dT%H:%M}" for moment in (cell.window.start, cell.window.end))
    return (
        "Nothing of it was written. If these rows are really gone from BigQuery: "
        f"bqh sync {table} --from {start} --to {end} --allow-deletes"
    )

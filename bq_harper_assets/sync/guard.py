"""Refuses to delete much at once: a source that was emptied by accident must not empty the target.

Counted are real deletes, after rows that live on elsewhere were told from those that are gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bq_harper_assets.sync.cells import Cell

MOST_ROWS = 1_000


@dataclass(frozen=True)
class Loss:
    """What a reconcile would take out of one cell."""

    deletes: int
    held: int

    @property
    def is_too_much(self) -> bool:
        """More than a thousand rows and more than half."""
        return self.deletes > MOST_ROWS and 2 * self.deletes > self.held


def refusals(table: str, losses: Mapping[Cell, Loss]) -> dict[Cell, str]:
    """Why cells must not be reconciled, by cell; empty if nothing speaks against it."""
    refused = {
        cell: f"would lose {loss.deletes:,} of the {loss.held:,} rows that Harper holds of it"
        for cell, loss in losses.items()
        if loss.is_too_much
    }
    total = Loss(
        sum(loss.deletes for loss in losses.values()), sum(loss.held for loss in losses.values())
    )
    if total.is_too_much:
        together = (
            f"the run would lose {total.deletes:,} of the {total.held:,} rows that Harper holds "
            f"of its {len(losses)} cells"
        )
        refused |= {
            cell: together for cell, loss in losses.items() if loss.deletes and cell not in refused
        }
    return {cell: f"{why}. {_way_out(table, cell)}" for cell, why in refused.items()}


def _way_out(table: str, cell: Cell) -> str:
    start, end = (f"{moment:%Y-%m-%dT%H:%M}" for moment in (cell.window.start, cell.window.end))
    return (
        "Nothing of it was written. If these rows are really gone from BigQuery: "
        f"bqh sync {table} --from {start} --to {end} --allow-deletes"
    )

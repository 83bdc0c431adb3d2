"""The delete guard refuses large deletes: a source emptied by accident must not empty the target.

It counts real deletes: rows that are in another range now do not count, and rows that the same
cell gains are subtracted. What other turns deleted lately, or are about to delete, counts with this
turn's: otherwise many small turns, or turns that all fail, could empty a table unnoticed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bq_harper_assets.ledger.questions.losses import CellLoss
from bq_harper_assets.ledger.records import CellKey
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.ledger_facts import cell_key

MOST_UNGUARDED_ROWS = 1_000
LARGEST_UNGUARDED_SHARE = 0.5
REMEMBERED = timedelta(hours=24)


@dataclass(frozen=True)
class Loss:
    """A loss is what a reconcile would delete from one cell, and what it would add."""

    deletes: int
    held: int
    gained: int = 0  # a changed keyless row is deleted under one id, added under another

    @property
    def lost(self) -> int:
        """Returns how many rows fewer the cell would have."""
        return max(self.deletes - self.gained, 0)

    @property
    def is_too_much(self) -> bool:
        """Says whether the loss is above both limits, that of rows and that of their share."""
        share_is_large = self.lost > LARGEST_UNGUARDED_SHARE * self.held
        return self.lost > MOST_UNGUARDED_ROWS and share_is_large


@dataclass(frozen=True)
class Refused:
    """A refusal is the guard's no to one cell."""

    why: str  # with the command that allows it
    until: datetime | None = None  # when losses of other turns, its only cause, no longer count


def refusals(
    table: str,
    losses: Mapping[Cell, Loss],
    others: Sequence[CellLoss] = (),
    open_after: datetime | None = None,
) -> dict[Cell, Refused]:
    """Returns the refusals, by cell, of cells that must not be reconciled.

    `others` are losses by other turns. Windows that end after `open_after` are still open.
    """
    cells = {cell_key(cell): cell for cell in losses}
    before = _lacking({key: losses[cell] for key, cell in cells.items()}, others)
    both = {cell: _with(loss, before.get(cell_key(cell))) for cell, loss in losses.items()}
    counted = [each for each in others if each.cell in before]
    by_whom = _by_whom(counted)
    refused = {
        cell: f"would lose {_told(loss, both[cell], 'it', by_whom)}"
        for cell, loss in losses.items()
        if loss.is_too_much or (loss.lost and both[cell].is_too_much)
    }
    # A cell that is refused for its own loss loses nothing, so it is no reason to refuse others.
    passing = {cell: loss for cell, loss in losses.items() if cell not in refused}
    still = [loss for key, loss in before.items() if cells.get(key) not in passing]
    total = _sum(passing.values())
    total_of_both = _sum([*(both[cell] for cell in passing), *still])
    if total.is_too_much or total_of_both.is_too_much:
        told = _told(total, total_of_both, f"its {len(passing)} cells", by_whom)
        refused |= {
            cell: f"the run would lose {told}" for cell, loss in passing.items() if loss.lost
        }
    forgotten = max((each.until for each in counted), default=None)
    by_others = {cell for cell in refused if not (total.is_too_much or losses[cell].is_too_much)}
    command = command_that_allows(table, refused, open_after) if refused else ""
    return {
        cell: _refused(table, why, command, forgotten if cell in by_others else None)
        for cell, why in refused.items()
    }


def command_that_allows(
    table: str, cells: Iterable[Cell], open_after: datetime | None = None
) -> str:
    """Returns the command that reconciles all of the cells if their rows are really gone."""
    windows = sorted(cell.range for cell in cells if isinstance(cell.range, Window))
    if not windows:
        return f"bqh sync {table} --allow-deletes"
    start, end = windows[0].start, windows[-1].end
    # A command with --to leaves out the open window.
    until = "" if open_after and end > open_after else f" --to {end:%Y-%m-%dT%H:%M}"
    return f"bqh sync {table} --from {start:%Y-%m-%dT%H:%M}{until} --allow-deletes"


def _refused(table: str, why: str, command: str, forgotten: datetime | None) -> Refused:
    until = forgotten + REMEMBERED if forgotten else None
    then = (
        f" Those are forgotten at {until:%F %T} UTC, and revisit_{table} asks for it again then."
        if until
        else ""
    )
    return Refused(
        f"{why}. Nothing of it was written.{then} If these rows are really gone from the source: "
        f"{command}",
        until,
    )


def _lacking(losses: Mapping[CellKey, Loss], others: Sequence[CellLoss]) -> dict[CellKey, Loss]:
    """Returns what other turns deleted from each cell, without rows that are in the target now.

    What a cell of this turn has was just read. So what a failed turn was about to delete counts
    once: here if it was deleted, and with this turn's deletes if it was not.
    """
    found = {}
    for each in others:
        rows = losses[each.cell].held if each.cell in losses else each.rows
        lacking = min(each.lost, each.held - rows)
        if lacking > 0:
            found[each.cell] = Loss(lacking, each.held)
    return found


def _with(now: Loss, before: Loss | None) -> Loss:
    if before is None:
        return now
    return Loss(before.lost + now.lost, max(before.held, now.held))


def _sum(losses: Collection[Loss]) -> Loss:
    return Loss(sum(loss.lost for loss in losses), sum(loss.held for loss in losses))


def _by_whom(others: Sequence[CellLoss]) -> str:
    if not others:
        return ""
    since = min(each.since for each in others)
    if all(each.is_committed for each in others):
        return f"earlier runs took out since {since:%F %T} UTC"
    return f"other runs took out, or were about to take out, since {since:%F %T} UTC"


def _told(now: Loss, both: Loss, what: str, by_whom: str) -> str:
    told = f"{now.lost:,} of the {now.held:,} rows that the target holds of {what}"
    if now.is_too_much or not by_whom:
        return told
    return (
        f"{told}; with the {both.lost - now.lost:,} rows that {by_whom} it would be "
        f"{both.lost:,} of {both.held:,}"
    )

"""A turn keeps, for each cell, what is planned and what it has found out so far."""

from dataclasses import dataclass, field
from typing import Any

from bq_harper_assets.ledger.records import Batch, Mode
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.sync.identity.digest import Digest
from bq_harper_assets.sync.ledger_facts import part_of
from bq_harper_assets.sync.plan.delete_guard import Loss
from bq_harper_assets.sync.protocols import PinnedSource


@dataclass(frozen=True, eq=False)
class LaterRow:
    """A later row is one that a query returned after T; `pin` keeps the result of that query."""

    micros: int
    pin: PinnedSource


@dataclass
class Vanished:
    """Vanished rows are in a cell of the target and not in that cell of the source."""

    gone: list[Any] = field(default_factory=list)  # ids
    elsewhere: dict[Any, int] = field(default_factory=dict)  # the time in the source at T, by id
    later: dict[Any, LaterRow] = field(default_factory=dict)  # found by a query after T

    @property
    def alive(self) -> dict[Any, int]:
        """Returns the time of each row that is not gone, by id."""
        return self.elsewhere | {row_id: seen.micros for row_id, seen in self.later.items()}


@dataclass(eq=False, kw_only=True)
class CellWork:
    """This is what a turn is to do with one cell, and what it has found out of it so far."""

    cell: Cell
    batch: Batch
    rows: int  # that the source counts in the part, in all slices of the range
    has_equal_rows: bool = False  # the range of a keyless table has some
    may_be_stale: bool = False  # stored hashes may ignore old values: compare by value
    diff: CellDiff | None = None  # only of a cell that is reconciled
    vanished: Vanished = field(default_factory=Vanished)
    destinations: dict[Any, Cell] = field(default_factory=dict)  # of rows now elsewhere
    digest_before: Digest = field(default_factory=Digest)  # of the rows before a top-up
    loss: Loss | None = None  # that the guard judges; None if nothing was compared
    refusal: str | None = None  # the delete guard's reason: nothing of the cell is written

    @property
    def part(self) -> Part:
        """Returns the part of the cell that the batch covers."""
        return part_of(self.batch, self.cell)

    @property
    def is_reconcile(self) -> bool:
        """Says whether the target's rows are read and compared before anything is written."""
        return self.batch.mode is Mode.RECONCILE

    @property
    def has_rows_to_write(self) -> bool:
        """Says whether rows must be written.

        The answer is no for a refused cell, and if the target has all of the source's rows already.
        """
        if self.refusal is not None:
            return False
        diff = self.diff
        return diff is None or bool(len(diff.missing) or len(diff.changed) or diff.read > diff.ids)

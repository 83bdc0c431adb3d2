"""One cell of a run, from its plan to what came of it."""

from dataclasses import dataclass, field
from typing import Any

from bq_harper_assets.ledger.records import Batch, Mode
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.sync.identity.digest import Digest
from bq_harper_assets.sync.moved.gone_or_moved import Vanished
from bq_harper_assets.sync.plan.delete_guard import Loss


@dataclass(eq=False, kw_only=True)
class Work:
    """What is to be done with a cell, and what is known of it so far."""

    cell: Cell
    batch: Batch
    rows: int  # of the part in all slices of the window, by BigQuery's own count
    has_equal_rows: bool = False  # in its window, of a keyless table
    may_be_stale: bool = False  # rows may hold what their stored hashes say nothing of
    diff: CellDiff | None = None  # only of a cell that may have held rows before
    vanished: Vanished = field(default_factory=Vanished)
    destinations: dict[Any, Cell] = field(default_factory=dict)  # of the rows that live elsewhere
    digest_before: Digest = field(default_factory=Digest)  # of what a top-up leaves as it is
    loss: Loss | None = None  # as the guard has judged it; None where nothing was compared
    refusal: str | None = None  # by the guard: nothing of it is written

    @property
    def part(self) -> Part:
        """The times that the batch covers."""
        return Part(self.batch.seq, self.batch.since or self.cell.window.start, self.batch.upto)

    @property
    def is_reconcile(self) -> bool:
        """Whether what the target holds is read first."""
        return self.batch.mode is Mode.RECONCILE

    @property
    def has_rows_to_write(self) -> bool:
        """False if the target is known to hold all of the source's rows already."""
        if self.refusal is not None:
            return False
        diff = self.diff
        return diff is None or bool(len(diff.missing) or len(diff.changed) or diff.read > diff.ids)

"""The sixth step of a turn writes rows to the target, and deletes from it last."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Grid
from bq_harper_assets.sync.moved.moved_writes import write_moved
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.source.cell_rows import Reading
from bq_harper_assets.sync.spark.hash_blobs import bins_per_place
from bq_harper_assets.sync.spark.receipts import Receipt
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets.sync.turn import reconcile
from bq_harper_assets.sync.turn.judge import Removed, spared_from_deletes
from bq_harper_assets.sync.turn_context import TurnContext
from bq_harper_assets.sync.write.write_job import WriteResult, write_all
from bq_harper_assets.sync.write.write_task import WriteJob

TIMES_LOST = 3  # in one write; splits that are lost each time are no accident


@dataclass(frozen=True, kw_only=True)
class Written:
    """This is what a turn has written and removed, and what it knows of the effect."""

    grid: Grid | None  # of the cells' own write
    moved: WriteResult  # rows of the cells themselves
    elsewhere: tuple[WriteResult, ...]  # rows that left their window
    removed: Removed
    given_up: tuple[WriteResult, ...] = ()  # tries that lost their splits

    @property
    def parts(self) -> tuple[WriteResult, ...]:
        """Returns the result of every job whose rows count."""
        return (self.moved, *self.elsewhere)

    @property
    def all_receipts(self) -> list[Receipt]:
        """Returns the receipts of every job that wrote, also of tries that were repeated."""
        return [receipt for part in (*self.parts, *self.given_up) for receipt in part.receipts]

    @property
    def staged(self) -> Mapping[int, int]:
        """Counts the rows that were written for each batch, also those that moved elsewhere."""
        counts: Counter[int] = Counter()
        for part in self.parts:
            counts.update(part.written)
        return counts


@dataclass(frozen=True, kw_only=True)
class Writing:
    """A writing moves the rows of a turn's cells, after they were planned and compared."""

    turn: TurnContext
    works: Sequence[CellWork]
    allow_deletes: bool  # even those that the guard would refuse
    stop: Stop
    say: Callable[[str], None]

    def write(self) -> Written:
        """Writes rows that left their window, then the cells' own rows, and deletes last."""
        turn, works = self.turn, self.works
        job = self._job()
        reconcile.mark_destinations(turn, works)
        # However the tasks end, the leases stay until the receipts show that all was answered.
        turn.keeper.leave_to_expire()
        elsewhere = tuple(write_moved(turn, works))
        tries = self._tries(job) if job else [WriteResult()]
        grid = job.reading.grid if job else None
        spared = spared_from_deletes(works, grid, tries[-1], allowed=self.allow_deletes)
        removed = self._remove(spared)
        return Written(
            grid=grid,
            moved=tries[-1],
            elsewhere=elsewhere,
            removed=removed,
            given_up=tuple(tries[:-1]),
        )

    def _tries(self, job: WriteJob) -> list[WriteResult]:
        """Writes the cells and returns what each try did.

        Splits that the source has lost are made again at the same instant. Nobody knows which rows
        they had left, so all of them are written again, which is harmless; only the last try's
        receipts are counted.
        """
        tries = [write_all(self.turn.source.spark, job)]
        while len(tries) <= TIMES_LOST and (lost := _lost_splits(tries[-1])):
            contract = self.turn.source.contract
            self.say(f"{contract.id}: opens a new session at {self.turn.t:%F %T}: {lost}")
            again = replace(job, reading=self._reading())
            tries.append(write_all(self.turn.source.spark, again))
        return tries

    def _job(self) -> WriteJob | None:
        """Builds the order to write, and marks every cell from which it will take rows."""
        turn, works = self.turn, self._moving
        if not works:
            return None
        reading = self._reading()
        unseen = reconcile.unseen_rows(works, reading.grid)
        reconcile.mark_origins(turn, works, reading, unseen)
        chosen = reconcile.chosen_rows(works, reading.grid)
        return turn.write_job(
            reading,
            rows=sum({work.cell.range: work.rows for work in works}.values()),
            per_place=bins_per_place(max(work.rows for work in works)),
            chosen=None if chosen.whole[reading.grid.batches > 0].all() else chosen,
            clears=tuple(
                sorted({name for work in works if work.diff for name in work.diff.extras})
            ),
        )

    @property
    def _moving(self) -> list[CellWork]:
        return [work for work in self.works if work.has_rows_to_write]

    def _reading(self) -> Reading:
        parts = {work.cell: work.part for work in self._moving}
        has_equal_rows = any(work.has_equal_rows for work in self._moving)
        return self.turn.source.reading(parts, has_equal_rows=has_equal_rows)

    def _remove(self, spared: Mapping[Cell, str]) -> Removed:
        """Removes vanished rows; this comes last, when every other row is in its cell."""
        source = self.turn.source
        contract, pin = source.contract, source.pin
        failed: dict[Cell, BqhError] = {}
        with source.target.removal(self.turn.keeper.terms) as removal:
            for work in self.works:
                ids = [] if work.refusal or work.cell in spared else work.vanished.gone
                try:
                    if ids:
                        self.stop.check()
                    removal.remove(work.batch, ids, contract.deletes, pin.plan.primary_key, pin.t)
                except BqhError as error:
                    failed[work.cell] = error
            return Removed(
                contract.deletes,
                {**spared, **{cell: str(error) for cell, error in failed.items()}},
                any(isinstance(error, TransientError) for error in failed.values()),
                removal.all_answered,
            )


def _lost_splits(moved: WriteResult) -> str | None:
    """Returns the error of a task that lost its splits; None if no task did."""
    failures = (receipt.failure for receipt in moved.receipts)
    return next((each.error for each in failures if each and each.lost_splits), None)

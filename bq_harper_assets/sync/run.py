"""One run: one table, many cells, in the order that loses nothing.

Lease, schema, T, plan, write, quarantine, commit. What is done is committed even if the rest fails.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.records import LogicalTable
from bq_harper_assets.schema.changes import waiting_changes
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.breaker import PROCESS_BREAKERS
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.ensure_table import ensure_table
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync import reconcile
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.grid import Grid
from bq_harper_assets.sync.keeper import Keeper, LeaseTimes
from bq_harper_assets.sync.moved_rows import write_moved
from bq_harper_assets.sync.mover import Moved, move_all
from bq_harper_assets.sync.outcome import CellOutcome, Removed, judge
from bq_harper_assets.sync.packed import bins_per_place
from bq_harper_assets.sync.phases import Phase, phase_of, rows_per_request
from bq_harper_assets.sync.planned import plan_cells
from bq_harper_assets.sync.recorded import record_version, table_facts, version_of
from bq_harper_assets.sync.removal import Removal
from bq_harper_assets.sync.report import CellReport, RunFailed, RunReport
from bq_harper_assets.sync.scene import Scene, Source, Stores
from bq_harper_assets.sync.source import pinned, require_unique_key
from bq_harper_assets.sync.spark_errors import errors_of_spark
from bq_harper_assets.sync.task import Move
from bq_harper_assets.sync.transient import TRANSIENT
from bq_harper_assets.sync.windows import floor_to_window
from bq_harper_assets.sync.work import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNCOMMITTED = (
    "None of them is committed; what was written stays and is written again by the next run, which"
    " has to wait until the lease runs out, three minutes at most"
)


@dataclass(frozen=True)
class Written:
    """All that a run has sent, and what it knows of its effect."""

    grid: Grid | None  # of the move
    moved: Moved  # rows of the cells themselves
    elsewhere: tuple[Moved, ...]  # rows that left their window
    removed: Removed

    @property
    def parts(self) -> tuple[Moved, ...]:
        """Every job that wrote."""
        return (self.moved, *self.elsewhere)


@dataclass(frozen=True)
class Run:
    """A run of one contract's cells."""

    stores: Stores
    contract: TableContract
    spark: "SparkSession"
    run_id: str
    times: LeaseTimes = field(default_factory=LeaseTimes)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    say: Callable[[str], None] = lambda line: None
    allow_deletes: bool = False  # also beyond what the guard lets pass
    deep: bool = False  # compares what is held by all values: a stored hash may be wrong
    key_is_known: bool = False  # to be unique: this reads the key of the whole table

    def sync(self, cells: Sequence[Cell]) -> RunReport:
        """Make the cells equal to the source at one instant; RunFailed if some could not be."""
        began = time.monotonic()
        ledger = self.stores.ledger
        table = ledger.register_table(table_facts(self.contract, self.stores.bigquery))
        calls = BigQueryCalls(self.stores.bigquery, breakers=PROCESS_BREAKERS)
        queries = Queries(calls, labels={"bqh": "sync", "bqh_table": self.contract.id})
        slices = sorted({cell.slice for cell in cells})
        with (
            queries.client,
            HarperClient(self.stores.harper, retry=self.retry) as harper,
            Keeper(ledger, harper, table, slices, self.run_id, self.times, say=self.say) as keeper,
        ):
            start = min(cell.window.start for cell in cells)
            end = max(cell.window.end for cell in cells)
            seen = ledger.newest_schema(table)
            with (
                pinned(queries, self.contract, start, end, version_of(seen)) as pin,
                ExitStack() as keep,
            ):
                if not self.key_is_known:
                    require_unique_key(queries, self.contract, pin)
                ensured = ensure_table(
                    harper,
                    pin.plan,
                    adopted=self.contract.manage == "adopt",
                    alone=lambda: ledger.alone(table),
                )
                cause = "a sync saw it" if seen else "first sync"
                version = record_version(
                    ledger, table, self.contract, seen, pin.plan, self.run_id, cause
                ).version
                first = self._start(start)
                phase = self._phase(table, pin.t, first)
                tasks = self.stores.harper.requests_in_flight or harper.server_threads() or 1
                source = Source(
                    self.stores, self.contract, self.spark, queries, harper, pin, self.retry, tasks
                )
                most_rows = rows_per_request(phase, self.contract.sync)
                scene = Scene(source, table, keeper, first, most_rows, keep)
                works = plan_cells(scene, version, cells, self.run_id, deep=self.deep)
                self.say(f"{self.contract.id}: moving {len(cells)} cells at {pin.t:%F %T}")
                waiting = waiting_changes(pin.plan.version, self.contract)
                for change in waiting:
                    self.say(f"{self.contract.id} goes on with the columns it has: {change}")
                then = f"{_UNCOMMITTED}. Next: bqh sync {self.contract.id}"
                with errors_of_spark(self.contract.id, cells, then):
                    self._prepare(scene, works)
                    written = self._write(scene, works)
                if self._all_answered(written):
                    keeper.give_back()
                seconds = time.monotonic() - began
                outcomes = judge(
                    works,
                    written.grid,
                    written.moved,
                    written.elsewhere,
                    written.removed,
                    seconds,
                )
                self._commit(scene, works, outcomes)
        receipts = [receipt for part in written.parts for receipt in part.receipts]
        report = RunReport(
            self.contract.id,
            pin.t,
            phase,
            ensured.action,
            version,
            tuple(_report(work, outcome) for work, outcome in zip(works, outcomes, strict=True)),
            sum(receipt.requests for receipt in receipts),
            sum(receipt.retries for receipt in receipts),
            time.monotonic() - began,
            pin.plan.warnings,
            any(r.failure.is_transient for r in receipts if r.failure)
            or written.removed.is_transient,
            pin.plan.columns,
            source.bytes_read,
            queries.bytes_billed,
            version != (seen.version if seen else 0),
            waiting,
        )
        if any(cell.problem for cell in report.cells):
            raise RunFailed(report)
        return report

    def _prepare(self, scene: Scene, works: Sequence[Work]) -> None:
        """Compares what may hold rows, and decides before the first write what must not be done."""
        compared = [work for work in works if work.is_reconcile]
        reconcile.compare_works(scene.source, compared)
        reconcile.find_gone(scene, compared)
        reconcile.refuse_great_losses(scene, compared, allowed=self.allow_deletes)

    def _write(self, scene: Scene, works: Sequence[Work]) -> Written:
        move = self._move(scene, [work for work in works if work.has_rows_to_write])
        reconcile.mark_destinations(scene, works)
        scene.keeper.leave_to_expire()  # whatever ends the tasks, until their receipts say more
        elsewhere = tuple(write_moved(scene, works))
        moved = move_all(self.spark, move) if move else Moved()
        grid = move.reading.grid if move else None
        return Written(grid, moved, elsewhere, self._remove(scene, works))

    def _move(self, scene: Scene, works: Sequence[Work]) -> Move | None:
        """The rows to write, and marks on every cell that this will take rows from."""
        if not works:
            return None
        parts = {work.cell: work.part for work in works}
        has_equal_rows = any(work.has_equal_rows for work in works)
        reading = scene.source.reading(parts, has_equal_rows=has_equal_rows)
        unseen = reconcile.unseen_rows(works, reading.grid)
        reconcile.mark_origins(scene, works, reading, unseen)
        chosen = reconcile.chosen_rows(works, reading.grid)
        return scene.move(
            reading,
            rows=sum({work.cell.window: work.rows for work in works}.values()),
            per_place=bins_per_place(max(work.rows for work in works)),
            chosen=None if chosen.whole[reading.grid.batches > 0].all() else chosen,
        )

    def _remove(self, scene: Scene, works: Sequence[Work]) -> Removed:
        """Last, when every row that lives on is where it belongs."""
        contract, pin = self.contract, scene.source.pin
        failed: dict[Cell, BqhError] = {}
        with Removal(
            self.stores.harper, contract.target_table, scene.keeper.terms, self.retry
        ) as removal:
            for work in works:
                ids = [] if work.refusal else work.vanished.gone
                try:
                    removal.remove(ids, contract.deletes, pin.plan.primary_key, pin.t)
                except BqhError as error:
                    failed[work.cell] = error
            return Removed(
                contract.deletes,
                {cell: str(error) for cell, error in failed.items()},
                any(isinstance(error, TRANSIENT) for error in failed.values()),
                removal.all_answered,
            )

    def _all_answered(self, written: Written) -> bool:
        # Of two tries that run side by side, the one that is killed leaves no trace.
        speculative = self.spark.conf.get("spark.speculation", "false") == "true"
        receipts = [receipt for part in written.parts for receipt in part.receipts]
        answered = all(receipt.all_answered for receipt in receipts)
        return not speculative and answered and written.removed.all_answered

    def _start(self, first: datetime) -> datetime:
        """Of the table's first window."""
        declared = self.contract.sync.start_timestamp
        start = declared or self.stores.ledger.start_of(self.contract.id) or first
        return floor_to_window(start, self.contract.window)

    def _phase(self, table: LogicalTable, t: datetime, start: datetime) -> Phase:
        """By how far the table is behind before this run; the first is behind from its start."""
        synced_until = self.stores.ledger.progress(table, start).synced_until
        return phase_of(max(t - synced_until, timedelta(0)), self.contract.sync)

    def _commit(self, scene: Scene, works: Sequence[Work], outcomes: Sequence[CellOutcome]) -> None:
        both = list(zip(works, outcomes, strict=True))
        done = [(work.batch, outcome.result) for work, outcome in both if not outcome.problem]
        self.stores.ledger.commit_cells(
            scene.keeper.leases, done, deletes_allowed=self.allow_deletes
        )
        for work, outcome in both:
            if outcome.problem and not work.refusal:
                # If the lease ran out, the next run may have taken the cell: then it is that run's.
                with suppress(LedgerConflict):
                    self.stores.ledger.fail_batch(work.batch, outcome.problem)


def _report(work: Work, outcome: CellOutcome) -> CellReport:
    batch = work.batch
    return CellReport(work.cell, batch.mode, batch.seq, outcome.result, outcome.problem, batch.upto)

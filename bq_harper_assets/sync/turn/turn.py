"""A turn takes many cells of one table through seven steps, in the order that loses nothing.

Lease, pin, ensure, plan, prepare, write, commit: `Turn.sync` is the list of them. Cells that are
done are committed even if the others fail.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bq_harper_assets.activity import doing, note_committed
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import instant_at, micros_at
from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.records import LedgerRoute, SchemaVersion
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.changes import waiting_changes
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.lease.keeper import LEASE_LASTS, Keeper, LeaseTimes
from bq_harper_assets.sync.ledger_facts import record_version, registered
from bq_harper_assets.sync.phases import Phase, phase_of
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.plan.planned_cells import plan_cells
from bq_harper_assets.sync.protocols import PinnedSource, Route, Source, TableAction, Target
from bq_harper_assets.sync.schema_sync.version_of_rows import version_of_rows
from bq_harper_assets.sync.spark.errors import errors_of_spark
from bq_harper_assets.sync.spark.job_watch import told_while_quiet
from bq_harper_assets.sync.stop_request import Stop, cancelled_by
from bq_harper_assets.sync.turn import reconcile
from bq_harper_assets.sync.turn.judge import (
    CellOutcome,
    judge_cells,
    with_moved_rows_together,
)
from bq_harper_assets.sync.turn.report import CellReport, TurnReport
from bq_harper_assets.sync.turn.turn_transaction import TurnTransaction, begin_transaction
from bq_harper_assets.sync.turn.writing import Writing, Written
from bq_harper_assets.sync.turn_context import TurnContext, TurnSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class Leased:
    """A leased turn has its stores open, and a keeper of the leases of its slices."""

    table: LedgerRoute
    source: Source
    target: Target
    keeper: Keeper
    transaction: TurnTransaction | None  # None if the target takes rows one by one
    newest_schema: SchemaVersion | None  # before the source's columns were read


@dataclass(frozen=True)
class EnsuredTable:
    """An ensured table says what was done to the target's table, and its schema version."""

    action: TableAction
    version: int  # of its schema
    version_is_new: bool  # this turn has recorded it


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A turn moves cells of one contract, in one call of `sync`."""

    route: Route
    spark: "SparkSession"
    run_id: str
    times: LeaseTimes = field(default_factory=LeaseTimes)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    say: Callable[[str], None] = lambda line: None
    allow_deletes: bool = False  # even those that the guard would refuse
    deep: bool = False  # compares by all values, because stored hashes may be wrong
    key_is_known: bool = False  # to be unique: skips the check, which reads the whole key
    stop: Stop = field(default_factory=Stop)

    @property
    def contract(self) -> TableContract:
        """Returns what the user declares of the table."""
        return self.route.contract

    @property
    def _source_name(self) -> str:
        """Returns what people call the store that the rows come from."""
        return self.contract.source.store

    @property
    def _target_name(self) -> str:
        """Returns what people call the store that takes the rows."""
        return self.contract.target.store

    def sync(self, cells: Sequence[Cell]) -> TurnReport:
        """Makes the cells equal to the source at one instant; raises TurnFailed if some are not."""
        self.stop.check()
        began = time.monotonic()
        with ExitStack() as until_end:
            with doing(f"reading {self._source_name}'s columns and fingerprints"):
                leased = self._lease(cells, until_end)
                pin = self._pin(leased, cells, until_end)
                ensured = self._ensure(leased, pin)
                turn = self._context(leased, pin, cells, until_end)
                works = self._plan(turn, ensured.version, cells)
            with self._spark_at_work(cells):
                self._prepare(turn, works)
                self.stop.check()
                written = self._write(turn, works)
            outcomes = self._commit(leased, turn, works, written, began)
        report = self._report(leased, turn, ensured, written, began, works, outcomes)
        if any(cell.problem for cell in report.cells):
            raise TurnFailed(report)
        return report

    def _lease(self, cells: Sequence[Cell], until_end: ExitStack) -> Leased:
        """Opens the stores and leases the slices, if ledger and target do not contradict."""
        ledger = self.route.ledger
        table = registered(self.route)
        source = until_end.enter_context(self.route.source("sync", self.stop.sleep))
        until_end.enter_context(WAITS.listen(self.say))
        target = until_end.enter_context(self.route.target(self._retry))
        target.require_in_step(ledger, table)
        slices = sorted({cell.slice for cell in cells})
        if target.transaction() is not None:
            # The target has one guard and one newest turn: turns of other slices would overtake
            # each other, and what one of them took would not be recognised by the next.
            slices = list(range(table.facts.slices))
        keeper = until_end.enter_context(
            Keeper(
                ledger,
                target.mirror(ledger, table, self.run_id),
                table,
                slices,
                self.run_id,
                self.times,
                stop=self.stop,
            )
        )
        return Leased(
            table=table,
            source=source,
            target=target,
            keeper=keeper,
            transaction=begin_transaction(ledger, table, target, keeper, self.say),
            newest_schema=ledger.newest_schema(table),
        )

    def _pin(self, leased: Leased, cells: Sequence[Cell], until_end: ExitStack) -> PinnedSource:
        """Reads the source's columns, and pins its rows at one instant T."""
        start = min(cell.range.axis_start for cell in cells)
        end = max(cell.range.axis_end for cell in cells)
        before = version_of_rows(
            self.route.ledger, leased.target, leased.table, leased.newest_schema, self.run_id
        )
        pin = until_end.enter_context(leased.source.pinned(self.contract, start, end, before))
        if leased.transaction is not None:
            leased.transaction.require_not_ahead(pin.position)
        if not self.key_is_known:
            pin.require_unique_key()
        return pin

    def _ensure(self, leased: Leased, pin: PinnedSource) -> EnsuredTable:
        """Makes or evolves the target's table, and records its schema version."""
        ledger, table, known = self.route.ledger, leased.table, leased.newest_schema
        ensured = leased.target.ensure(pin.plan, lambda: ledger.alone(table), self.stop.sleep)
        cause = "a sync saw it" if known else "first sync"
        recorded = record_version(
            ledger, table, self.contract, known, pin.plan, self.run_id, cause
        ).version
        return EnsuredTable(ensured.action, recorded, recorded != (known.version if known else 0))

    def _context(
        self, leased: Leased, pin: PinnedSource, cells: Sequence[Cell], until_end: ExitStack
    ) -> TurnContext:
        """Gathers what the next steps share."""
        target = leased.target
        first = self._start(min(cell.range.axis_start for cell in cells))
        source = TurnSource(
            contract=self.contract,
            cut=self.route.cut,
            spark=self.spark,
            pin=pin,
            target=target,
            tasks=target.tasks,
            others=target.known_paths(pin.plan) if self.deep else None,
        )
        phase = self._phase(leased.table, pin.t, first)
        return TurnContext(
            source=source,
            ledger=self.route.ledger,
            table=leased.table,
            keeper=leased.keeper,
            start=first,
            phase=phase,
            until_end=until_end,
        )

    def _plan(self, turn: TurnContext, version: int, cells: Sequence[Cell]) -> list[CellWork]:
        """Records a batch per cell in one transaction, and shows the newest in the target."""
        works = plan_cells(turn, version, cells, self.run_id, deep=self.deep)
        turn.keeper.note_planned()
        self.say(f"{self.contract.id}: moving {len(cells)} cells at {turn.t:%F %T}")
        for change in self._waiting(turn):
            self.say(f"{self.contract.id} goes on with the columns it has: {change}")
        return works

    @contextmanager
    def _spark_at_work(self, cells: Sequence[Cell]) -> Iterator[None]:
        """Reports what Spark does while it is quiet, explains its errors, and cancels on a stop."""
        with (
            told_while_quiet(self.spark, f"moving {len(cells)} cells of {self.contract.id}"),
            errors_of_spark(self.contract.id, cells, told_uncommitted(self.contract.id)),
            cancelled_by(self.stop, self.spark),
        ):
            yield

    @property
    def _retry(self) -> RetryPolicy:
        """Returns the caller's policy with the table's time limit; its waits end on a stop."""
        within = self.retry.within(self.contract.sync.give_up_after)
        # A caller with its own sleep function decides how to wait.
        return replace(within, sleep=self.stop.sleep) if within.sleep is time.sleep else within

    def _prepare(self, turn: TurnContext, works: Sequence[CellWork]) -> None:
        """Compares cells that may have rows, and refuses large deletes before the first write."""
        compared = [work for work in works if work.is_reconcile]
        with doing(f"comparing {len(works):,} cells with what {self._target_name} holds"):
            reconcile.compare_works(turn.source, compared)
            reconcile.find_gone(turn, compared)
            reconcile.refuse_great_losses(turn, compared, allowed=self.allow_deletes)

    def _write(self, turn: TurnContext, works: Sequence[CellWork]) -> Written:
        """Writes rows that left their window, then the cells' own rows, and deletes last."""
        with doing(f"writing rows of {len(works):,} cells to {self._target_name}"):
            writing = Writing(
                turn=turn,
                works=works,
                allow_deletes=self.allow_deletes,
                stop=self.stop,
                say=self.say,
            )
            return writing.write()

    def _all_answered(self, written: Written) -> bool:
        # With speculation two tries run at once, and the one that is killed leaves no receipt.
        speculative = is_on(str(self.spark.conf.get("spark.speculation", "false")))
        receipts = written.all_receipts
        answered = all(receipt.all_answered for receipt in receipts)
        return not speculative and answered and written.removed.all_answered

    def _start(self, first: int) -> int:
        """Returns where the first range begins: as declared, else as recorded, else `first`."""
        cut = self.route.cut
        if not cut.follows_time:
            return cut.range_at(0).axis_start
        declared = self.contract.sync.start_timestamp
        start = declared or self.route.ledger.start_of(self.contract.id)
        return cut.range_at(micros_at(start)).axis_start if start else first

    def _phase(self, table: LedgerRoute, t: datetime, start: int) -> Phase:
        """Returns the phase for the table's lag before this turn; the first lags from the start.

        Without windows there is no lag: key ranges are always moved as in a first load.
        """
        if not self.route.cut.follows_time:
            return Phase.INITIAL
        synced_until = self.route.ledger.progress(table, instant_at(start)).synced_until
        return phase_of(max(t - synced_until, timedelta(0)), self.contract.sync)

    def _commit(
        self,
        leased: Leased,
        turn: TurnContext,
        works: Sequence[CellWork],
        written: Written,
        began: float,
    ) -> list[CellOutcome]:
        """Judges each cell, and commits those that are done even if the others are not."""

        def give_back() -> None:
            if self._all_answered(written):
                turn.keeper.give_back()

        transaction = leased.transaction
        if transaction is None:
            give_back()
        outcomes = judge_cells(
            works,
            written.grid,
            written.moved,
            written.elsewhere,
            written.removed,
            time.monotonic() - began,
        )
        if transaction is not None:
            outcomes = with_moved_rows_together(works, outcomes)
        both = list(zip(works, outcomes, strict=True))
        done = [(work.batch, outcome.result) for work, outcome in both if not outcome.problem]
        if transaction is not None:
            position = turn.source.pin.position
            transaction.take(position, self.run_id, done, written.staged, give_back)
        ledger, leases = self.route.ledger, turn.keeper.leases
        with doing(f"committing {len(works):,} cells to the ledger"):
            ledger.commit_cells(leases, done, deletes_allowed=self.allow_deletes)
            note_committed({o.cell.key: o.result.read for o in outcomes if not o.problem})
            for work, outcome in both:
                if outcome.problem and not work.refusal:
                    # If the lease ran out, the next run may own the cell already.
                    with suppress(LedgerConflict):
                        ledger.fail_batch(work.batch, outcome.problem)
        return outcomes

    def _waiting(self, turn: TurnContext) -> tuple[Change, ...]:
        """Returns what the source has and the turn leaves out, because it waits for a person."""
        return waiting_changes(turn.source.pin.plan.version, self.contract)

    def _report(
        self,
        leased: Leased,
        turn: TurnContext,
        ensured: EnsuredTable,
        written: Written,
        began: float,
        works: Sequence[CellWork],
        outcomes: Sequence[CellOutcome],
    ) -> TurnReport:
        plan = turn.source.pin.plan
        failures = [r.failure for part in written.parts for r in part.receipts if r.failure]
        return TurnReport(
            table=self.contract.id,
            t=turn.t,
            phase=turn.phase,
            table_action=ensured.action,
            schema_version=ensured.version,
            cells=tuple(map(_cell_report, works, outcomes)),
            requests=sum(receipt.requests for receipt in written.all_receipts),
            retries=sum(receipt.retries for receipt in written.all_receipts),
            seconds=time.monotonic() - began,
            warnings=plan.warnings,
            is_transient=any(each.is_transient for each in failures)
            or written.removed.is_transient,
            columns=plan.columns,
            bytes_read=turn.source.pin.bytes_read,
            bytes_billed=leased.source.bytes_billed,
            schema_is_new=ensured.version_is_new,
            waiting=self._waiting(turn),
        )


def told_uncommitted(table: str) -> str:
    """Says what is left of cells whose Spark job failed, and what to do if no other try follows."""
    minutes = LEASE_LASTS // timedelta(minutes=1)
    return (
        "None of them is committed; what was written stays and is written again. Next: bqh sync"
        f" {table}, which waits until the lease has run out, {minutes} minutes at most"
    )


def is_on(setting: str) -> bool:
    """Says whether Spark takes a setting for true, however its letters are written."""
    return setting.strip().lower() == "true"


def _cell_report(work: CellWork, outcome: CellOutcome) -> CellReport:
    batch = work.batch
    return CellReport(
        cell=work.cell,
        mode=batch.mode,
        batch=batch.seq,
        result=outcome.result,
        problem=outcome.problem,
        upto=work.part.end,
        is_refused=work.refusal is not None,
    )

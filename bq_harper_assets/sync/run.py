"""One run: one table, many cells, in the order that loses nothing.

Lease, schema, T, plan, write, quarantine, commit. What is done is committed even if the rest fails.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import Batch, LogicalTable, Mode, Wanted
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.fingerprint import Fingerprint, fingerprints
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.read_session import open_session
from bq_harper_assets.stores.bigquery.restriction import between
from bq_harper_assets.stores.breaker import PROCESS_BREAKERS
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.ensure_table import ensure_table
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.grid import Grid
from bq_harper_assets.sync.keeper import Keeper, LeaseTimes
from bq_harper_assets.sync.mover import Moved, move_all, numbered, spread
from bq_harper_assets.sync.outcome import CellOutcome, judge
from bq_harper_assets.sync.phases import Phase, phase_of, rows_per_request
from bq_harper_assets.sync.recorded import cell_key, schema_body, table_facts
from bq_harper_assets.sync.report import CellReport, RunFailed, RunReport
from bq_harper_assets.sync.source import Pinned, pinned, require_unique_key
from bq_harper_assets.sync.stored import RowPlan
from bq_harper_assets.sync.task import Move
from bq_harper_assets.sync.windows import floor_to_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class WindowStillOpen(BqhError):
    """Rows of the window may still arrive."""


@dataclass(frozen=True)
class Stores:
    """Where a run reads, writes and records."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    ledger: Ledger


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

    def sync(self, cells: Sequence[Cell]) -> RunReport:
        """Make the cells equal to the source at one instant; RunFailed if some could not be."""
        began = time.monotonic()
        table = self.stores.ledger.register_table(table_facts(self.contract, self.stores.bigquery))
        calls = BigQueryCalls(self.stores.bigquery, breakers=PROCESS_BREAKERS)
        queries = Queries(calls, labels={"bqh": "sync", "bqh_table": self.contract.id})
        with (
            queries.client,
            HarperClient(self.stores.harper, retry=self.retry) as harper,
            Keeper(
                self.stores.ledger,
                harper,
                table,
                sorted({cell.slice for cell in cells}),
                self.run_id,
                self.times,
            ) as keeper,
        ):
            start = min(cell.window.start for cell in cells)
            end = max(cell.window.end for cell in cells)
            seen = self.stores.ledger.newest_schema(table)
            with pinned(queries, self.contract, start, end) as pin:
                self._require_closed(cells, pin.t)
                require_unique_key(queries, self.contract, pin)
                ensured = ensure_table(
                    harper, pin.plan, alone=lambda: self.stores.ledger.alone(table)
                )
                version = self.stores.ledger.record_schema(
                    table, schema_body(pin.plan), seen.version if seen else 0
                ).version
                prints = dict(fingerprints(queries, pin.source, start, end, self.contract.window))
                phase = self._phase(table, pin.t, start)
                batches = self._plan(keeper, pin, version, cells, prints)
                move = self._move(keeper, harper, queries, pin, batches, prints, phase)
                self.say(f"{self.contract.id}: moving {len(cells)} cells at {pin.t:%F %T}")
                keeper.leave_to_expire()  # whatever ends the tasks, until their receipts say more
                moved = self._spark(move, pin, prints)
                if self._all_answered(moved):
                    keeper.give_back()
                outcomes = judge(moved, move.grid, _rows(prints), time.monotonic() - began)
                self._commit(keeper, batches, outcomes)
        report = RunReport(
            self.contract.id,
            pin.t,
            phase,
            ensured.action,
            version,
            tuple(_report(outcome, batches) for outcome in outcomes),
            sum(receipt.requests for receipt in moved.receipts),
            sum(receipt.retries for receipt in moved.receipts),
            time.monotonic() - began,
            pin.plan.warnings,
            any(r.failure.is_transient for r in moved.receipts if r.failure),
        )
        if any(cell.problem for cell in report.cells):
            raise RunFailed(report)
        return report

    def _require_closed(self, cells: Sequence[Cell], t: datetime) -> None:
        closed = t - self.contract.safety_lag
        if still_open := [cell for cell in cells if cell.window.end > closed]:
            raise WindowStillOpen(
                f"the window {still_open[0].window.key} of {self.contract.id} is open until "
                f"{still_open[0].window.end + self.contract.safety_lag:%F %T} UTC. Nothing was "
                "written; run it again then"
            )

    def _plan(
        self,
        keeper: Keeper,
        pin: Pinned,
        version: int,
        cells: Sequence[Cell],
        prints: dict[datetime, Fingerprint],
    ) -> dict[Cell, Batch]:
        keyless = not pin.plan.selection.key
        wanted = [
            Wanted(
                cell_key(cell),
                Mode.NUMBER
                if keyless and prints[cell.window.start].distinct < prints[cell.window.start].rows
                else Mode.COPY,
                prints[cell.window.start].text,
            )
            for cell in cells
        ]
        batches = self.stores.ledger.plan(keeper.leases, pin.t, version, wanted, self.run_id)
        return dict(zip(cells, batches, strict=True))

    def _move(
        self,
        keeper: Keeper,
        harper: HarperClient,
        queries: Queries,
        pin: Pinned,
        batches: dict[Cell, Batch],
        prints: dict[datetime, Fingerprint],
        phase: Phase,
    ) -> Move:
        start, end = min(prints), max(prints) + self.contract.window
        tasks = self.stores.harper.requests_in_flight or harper.server_threads() or 1
        selection = pin.plan.selection
        storage = connect_storage(self.stores.bigquery)
        session = open_session(
            storage,
            queries.calls,
            pin.source.table,
            [column.name for column in selection.columns],
            between(selection.timestamp, start, end, pin.source.row_filter),
            pin.source.at,
            tasks,
        )
        storage.transport.close()  # type: ignore[no-untyped-call]
        return Move(
            bigquery=self.stores.bigquery,
            harper=self.stores.harper,
            target=self.contract.target_table,
            streams=spread(session.streams, tasks),
            schema=session.schema,
            plan=RowPlan.of(pin.plan),
            grid=Grid.of({cell: b.seq for cell, b in batches.items()}, self.contract.slices),
            lease=keeper.terms,
            synced_at=pin.t,
            most_rows=rows_per_request(phase, self.contract.sync),
            most_bytes=self.contract.max_request_bytes,
            retry=self.retry,
            numbers={},
        )

    def _spark(self, move: Move, pin: Pinned, prints: dict[datetime, Fingerprint]) -> Moved:
        keyless = not pin.plan.selection.key
        if keyless and any(found.distinct < found.rows for found in prints.values()):
            move = numbered(self.spark, move)
        return move_all(self.spark, move)

    def _all_answered(self, moved: Moved) -> bool:
        # Of two tries that run side by side, the one that is killed leaves no trace.
        speculative = self.spark.conf.get("spark.speculation", "false") == "true"
        return not speculative and all(receipt.all_answered for receipt in moved.receipts)

    def _phase(self, table: LogicalTable, t: datetime, first: datetime) -> Phase:
        """By how far the table is behind before this run; the first is behind from its start."""
        declared = self.contract.sync.start_timestamp
        start = declared or self.stores.ledger.start_of(self.contract.id) or first
        aligned = floor_to_window(start, self.contract.window)
        synced_until = self.stores.ledger.progress(table, aligned).synced_until
        return phase_of(max(t - synced_until, timedelta(0)), self.contract.sync)

    def _commit(
        self,
        keeper: Keeper,
        batches: dict[Cell, Batch],
        outcomes: Sequence[CellOutcome],
    ) -> None:
        done = [(batches[o.cell], o.result) for o in outcomes if not o.problem]
        self.stores.ledger.commit_cells(keeper.leases, done)
        for outcome in outcomes:
            # If the lease ran out, the next run may have taken the cell: then it is that run's.
            with suppress(LedgerConflict):
                if outcome.problem:
                    self.stores.ledger.fail_batch(batches[outcome.cell], outcome.problem)


def _rows(prints: dict[datetime, Fingerprint]) -> dict[int, int]:
    microsecond = timedelta(microseconds=1)
    return {(start - _NEVER) // microsecond: found.rows for start, found in prints.items()}


def _report(outcome: CellOutcome, batches: dict[Cell, Batch]) -> CellReport:
    batch = batches[outcome.cell]
    return CellReport(outcome.cell, batch.mode, batch.seq, outcome.result, outcome.problem)

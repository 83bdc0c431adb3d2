"""The steps of one turn share its stores, leases, pinned source, and the sessions to read it."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_window, instant_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LogicalTable
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.read_session import ReadPlan, open_session
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.lease.keeper import Keeper
from bq_harper_assets.sync.phases import Phase, rows_per_request
from bq_harper_assets.sync.source.arrival_check import require_planned
from bq_harper_assets.sync.source.cell_rows import Reading, spread
from bq_harper_assets.sync.source.pinned import Pinned
from bq_harper_assets.sync.spark.task_login import FOLDER_SETTING, HarperOfTasks, harper_of_tasks
from bq_harper_assets.sync.values.row_plan import RowPlan
from bq_harper_assets.sync.write.write_job import numbered, numbered_here
from bq_harper_assets.sync.write.write_task import Chosen, Move

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Stores:
    """The stores are where a turn reads, writes and records."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    ledger: Ledger


@dataclass(frozen=True, kw_only=True)
class SourceReader:
    """A source reader opens sessions that read a contract's rows at one instant."""

    contract: TableContract
    queries: Queries
    pin: Pinned
    tasks: int = 1  # at once; for Spark as many as Harper serves requests at once
    sessions: list[ReadPlan] = field(default_factory=list)  # opened so far
    others: frozenset[str] | None = None  # paths that rows may have besides; None: unchecked

    @property
    def rows(self) -> RowPlan:
        """Returns how the source's rows become records."""
        return replace(RowPlan.of(self.pin.plan), others=self.others)

    @property
    def bytes_read(self) -> int:
        """Returns the bytes that BigQuery estimates for all sessions; 0 where it does not."""
        return sum(session.estimated_bytes for session in self.sessions)

    def reading_at(
        self,
        instants: Sequence[datetime],
        parts: Mapping[Cell, Part],
        *,
        has_equal_rows: bool = False,
    ) -> Reading:
        """Opens a session that reads only the rows of these times; it is meant for few rows.

        Equal rows of a keyless table are numbered in this process, without Spark.
        """
        column, row_filter = self.pin.plan.selection.timestamp, self.pin.source.row_filter
        reading = self._open(restriction.at_any(column, instants, row_filter), parts)
        return numbered_here(reading) if has_equal_rows else reading

    def _open(self, within: str, parts: Mapping[Cell, Part]) -> Reading:
        source = self.pin.source
        storage = connect_storage(self.queries.connection)
        try:
            session = open_session(
                storage,
                self.queries.calls,
                source.table,
                [column.read_as for column in source.columns],
                within,
                source.at,
                self.tasks,
            )
        finally:
            storage.transport.close()  # type: ignore[no-untyped-call]
        require_planned(self.contract.id, session.schema, self.pin.plan.columns)
        self.sessions.append(session)
        return Reading(
            bigquery=self.queries.connection,
            streams=spread(session.streams, self.tasks),
            schema=session.schema,
            plan=self.rows,
            grid=Grid.of(parts, self.contract.slices),
            give_up_after=self.contract.sync.give_up_after,
        )


@dataclass(frozen=True, kw_only=True)
class TurnSource(SourceReader):
    """A turn's source is a contract's rows at one instant, and Spark to read them with."""

    stores: Stores
    spark: "SparkSession"
    harper: HarperClient
    retry: RetryPolicy

    @property
    def harper_of_tasks(self) -> HarperOfTasks:
        """Returns how tasks reach Harper; the secrets are not sent with it."""
        return harper_of_tasks(self.stores.harper, self.spark.conf.get(FOLDER_SETTING, None))

    def reading(self, parts: Mapping[Cell, Part], *, has_equal_rows: bool = False) -> Reading:
        """Opens one session for all parts, and numbers the equal rows of a keyless table."""
        begin = min(part.begin for part in parts.values())
        end = max(part.end for part in parts.values())
        column, row_filter = self.pin.plan.selection.timestamp, self.pin.source.row_filter
        reading = self._open(restriction.between(column, begin, end, row_filter), parts)
        return numbered(self.spark, reading) if has_equal_rows else reading


@dataclass(frozen=True, kw_only=True)
class TurnContext:
    """This is what the steps of a turn share once it has its leases and its pinned source."""

    source: TurnSource
    table: LogicalTable
    keeper: Keeper
    start: datetime  # of the table's first window
    phase: Phase
    until_end: ExitStack  # of the turn, when what it holds is closed

    @property
    def t(self) -> datetime:
        """Returns T, the instant at which the turn reads its source."""
        return self.source.pin.t

    @property
    def ledger(self) -> Ledger:
        """Returns the ledger of the turn."""
        return self.source.stores.ledger

    def cell_at(self, micros: int, slice_number: int) -> Cell:
        """Returns the cell of a row with this time and slice."""
        length = self.source.contract.window
        start = floor_to_window(instant_at(micros), length)
        return Cell(Window(start, start + length), slice_number)

    def move(
        self,
        reading: Reading,
        *,
        rows: int,
        per_place: int = 1,
        chosen: Chosen | None = None,
        clears: tuple[str, ...] = (),
    ) -> Move:
        """Builds the order to write all rows of a reading, or the chosen ones, under the lease."""
        source, contract = self.source, self.source.contract
        return Move(
            reading=reading,
            harper=source.harper_of_tasks,
            target=contract.target_table,
            lease=self.keeper.terms,
            synced_at=self.t,
            most_rows=rows_per_request(self.phase, contract.sync),
            most_bytes=contract.max_request_bytes,
            retry=source.retry,
            rows=rows,
            per_place=per_place,
            chosen=chosen,
            most_refused=contract.quarantine_limit.of(rows),
            clears=clears,
        )


def known_attributes(harper: HarperClient, pin: Pinned) -> frozenset[str]:
    """Returns what rows may have besides the synced columns.

    That is what the schema version knows, and what the Harper table declares: a declared attribute
    belongs to its owner, as in a table that was adopted.
    """
    described = harper.describe_table(pin.plan.table)
    declared = described.attributes if described else ()
    return pin.plan.version.known_paths | {attribute.name for attribute in declared}

"""The steps of one turn share its route, leases, pinned source and target."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import Cut
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.lease.keeper import Keeper
from bq_harper_assets.sync.phases import Phase, rows_per_request
from bq_harper_assets.sync.protocols import PinnedSource, Split, Target, WriteOrder
from bq_harper_assets.sync.source.cell_rows import Reading, spread
from bq_harper_assets.sync.write.write_job import numbered, numbered_here
from bq_harper_assets.sync.write.write_task import Chosen, WriteJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class SourceReader:
    """A source reader reads a contract's rows at one instant, as the target stores them."""

    contract: TableContract
    cut: Cut
    pin: PinnedSource
    target: Target
    tasks: int = 1  # at once; for Spark as many as the target serves requests at once
    others: frozenset[str] | None = None  # paths that rows may have besides; None: unchecked

    @property
    def rows(self) -> Any:
        """Returns how the source's rows are stored: the target's RowLayout."""
        return self.target.layout(self.pin.plan, self.others)

    def reading_at(
        self,
        instants: Sequence[datetime],
        parts: Mapping[Cell, Part],
        *,
        has_equal_rows: bool = False,
    ) -> Reading:
        """Reads only the rows of these times; it is meant for few rows.

        Equal rows of a keyless table are numbered in this process, without Spark.
        """
        reading = self._reading(self.pin.splits_at(instants, self.tasks), parts)
        return numbered_here(reading) if has_equal_rows else reading

    def _reading(self, splits: Sequence[Split], parts: Mapping[Cell, Part]) -> Reading:
        return Reading(
            splits=spread(splits, self.tasks),
            layout=self.rows,
            cut=self.cut,
            grid=Grid.of(parts, self.contract.slices),
        )


@dataclass(frozen=True, kw_only=True)
class TurnSource(SourceReader):
    """A turn's source is a contract's rows at one instant, and Spark to read them with."""

    spark: "SparkSession"

    def reading(self, parts: Mapping[Cell, Part], *, has_equal_rows: bool = False) -> Reading:
        """Reads all parts at once, and numbers the equal rows of a keyless table."""
        begin = min(part.begin for part in parts.values())
        end = max(part.end for part in parts.values())
        reading = self._reading(self.pin.splits(begin, end, self.tasks), parts)
        return numbered(self.spark, reading) if has_equal_rows else reading


@dataclass(frozen=True, kw_only=True)
class TurnContext:
    """This is what the steps of a turn share once it has its leases and its pinned source."""

    source: TurnSource
    ledger: Ledger
    table: LedgerRoute
    keeper: Keeper
    start: int  # of the table's first range, on the axis of the cut
    phase: Phase
    until_end: ExitStack  # of the turn, when what it holds is closed

    @property
    def t(self) -> datetime:
        """Returns T, the instant at which the turn reads its source."""
        return self.source.pin.t

    @property
    def cut(self) -> Cut:
        """Returns how the route divides its rows."""
        return self.source.cut

    def cell_at(self, value: int, slice_number: int) -> Cell:
        """Returns the cell of a row with this value on the axis and this slice."""
        return Cell(self.cut.range_at(value), slice_number)

    def write_job(
        self,
        reading: Reading,
        *,
        rows: int,
        per_place: int = 1,
        chosen: Chosen | None = None,
        clears: tuple[str, ...] = (),
    ) -> WriteJob:
        """Builds the job that writes all rows of a reading, or the chosen ones, under the lease."""
        source, contract = self.source, self.source.contract
        order = WriteOrder(
            lease=self.keeper.terms,
            synced_at=self.t,
            most_rows=rows_per_request(self.phase, contract.sync),
            most_bytes=contract.target.max_request_bytes,
            most_refused=contract.quarantine_limit.of(rows),
            clears=clears,
        )
        return WriteJob(
            reading=reading,
            target=source.target.of_tasks(source.spark),
            table=contract.target.table,
            order=order,
            rows=rows,
            per_place=per_place,
            chosen=chosen,
        )

"""A report says what a turn did; it is shown in Dagster's metadata and in terminals."""

from dataclasses import dataclass
from datetime import datetime

from bq_harper_assets.ledger.records import CellResult, Mode
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.version import VersionColumn
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.protocols import TableAction


@dataclass(frozen=True, kw_only=True)
class CellReport:
    """A cell report says what a turn did to one cell, and why it is not done if it is not."""

    cell: Cell
    mode: Mode
    batch: int
    result: CellResult
    problem: str | None
    upto: int  # on the axis; before the end of the range while it is open
    is_refused: bool = False  # by the delete guard

    @property
    def is_open(self) -> bool:
        """Says whether rows of the range may still arrive."""
        return self.upto < self.cell.range.axis_end


@dataclass(frozen=True, kw_only=True)
class TurnReport:
    """A run report says what one turn did to its table and to each of its cells."""

    table: str
    t: datetime
    phase: Phase
    table_action: TableAction
    schema_version: int
    cells: tuple[CellReport, ...]
    requests: int
    retries: int
    seconds: float
    warnings: tuple[str, ...] = ()
    is_transient: bool = False
    columns: tuple[VersionColumn, ...] = ()  # of the target's table
    bytes_read: int = 0  # from the source, as it estimates them
    bytes_billed: int = 0  # by the source, for the turn's queries
    schema_is_new: bool = False  # the turn recorded its version
    waiting: tuple[Change, ...] = ()  # what the source has and the turn left out

    @property
    def not_synced(self) -> str:
        """Says what waits for a person or is frozen, and what to do about it."""
        return "; ".join(map(str, self.waiting))

    @property
    def rows(self) -> int:
        """Counts the rows written by the cells that are done."""
        return sum(cell.result.written for cell in self.cells if not cell.problem)

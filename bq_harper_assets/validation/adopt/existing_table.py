"""A Harper table that others made and filled is compared with its source and then taken over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_day, floor_to_window, micros_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.fingerprint import Outside
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.reading.target_rows import text_of
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Part
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.diff.cell_diff import compare_cells
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.sync.ledger_facts import table_facts
from bq_harper_assets.sync.turn_context import TurnSource

_KIND = "adopt"
COUNTED = 1_000  # rows outside every window; a larger count is shown as more
_WINDOWS_AT_ONCE = 96


@dataclass(frozen=True, kw_only=True)
class WindowDiff:
    """A window diff counts where Harper's rows of one window, before any sync, differ.

    They are compared with the source as it is now; `phantom` rows are only in Harper.
    """

    window: Window
    rows: int = 0
    equal: int = 0
    missing: int = 0
    changed: int = 0
    phantom: int = 0

    @classmethod
    def of(cls, window: Window, cells: Sequence[CellDiff]) -> "WindowDiff":
        """Adds up the differences of the window's cells."""
        return cls(
            window=window,
            rows=sum(cell.read for cell in cells),
            equal=sum(cell.equal for cell in cells),
            missing=sum(len(cell.missing) for cell in cells),
            changed=sum(len(cell.changed) for cell in cells),
            phantom=sum(len(cell.vanished) for cell in cells),
        )

    @property
    def is_equal(self) -> bool:
        """Says whether Harper has exactly the source's rows."""
        return self.equal == self.rows and not self.phantom


def held_outside(
    harper: HarperClient, contract: TableContract, kind: Kind, start: datetime, now: datetime
) -> Outside:
    """Counts Harper's rows that no window covers; each count ends at COUNTED + 1."""
    name = contract.timestamp_column
    wanted = (
        Condition(name, "equals", None),
        Condition(name, "less_than", text_of(kind, start)),
        Condition(name, "greater_than_equal", text_of(kind, now)),
    )
    found = (
        harper.search_by_conditions(contract.target.table, [each], (name,), limit=COUNTED + 1)
        for each in wanted
    )
    return Outside(*(len(rows) for rows in found))


def oldest_held(harper: HarperClient, contract: TableContract) -> object:
    """Returns the timestamp of Harper's oldest row, as it is stored; None if no row has one."""
    name = contract.timestamp_column
    # A search for "*" returns rows in the order of ids, not of times.
    has_one = Condition(name, "greater_than", "")
    rows = harper.search_by_conditions(
        contract.target.table, [has_one], (name,), sort_by=name, limit=1
    )
    return rows[0].get(name) if rows else None


def start_where_others_began(
    contract: TableContract, held: datetime, in_source: datetime | None
) -> datetime:
    """Returns the window of Harper's oldest row, but none before the source's oldest day.

    Rows before that day are gone from the source, perhaps because they expired there: they stay.
    """
    start = floor_to_window(held, contract.window)
    return max(start, floor_to_day(in_source)) if in_source else start


def compare_range(source: TurnSource, start: datetime, end: datetime) -> Iterator[WindowDiff]:
    """Compares the rows of [start, end) by all their values, because no sync has stored hashes."""
    windows = list(windows_between(start, end, source.contract.window))
    for first in range(0, len(windows), _WINDOWS_AT_ONCE):
        yield from _compared(source, windows[first : first + _WINDOWS_AT_ONCE], end)


def _compared(source: TurnSource, windows: Sequence[Window], end: datetime) -> Iterator[WindowDiff]:
    contract = source.contract
    last = min(windows[-1].axis_end, micros_at(end))
    prints = source.pin.fingerprints(windows[0].axis_start, last)
    keyless = not source.pin.plan.selection.key
    parts = {
        Cell(window, number): Part(1, window.axis_start, min(window.axis_end, last))
        for window in windows
        for number in range(contract.slices)
    }
    diffs = compare_cells(
        source,
        parts,
        {window: prints[window.axis_start].rows for window in windows},
        has_equal_rows=keyless and any(each.distinct < each.rows for each in prints.values()),
        deep=True,
    )
    for window, cells in groupby(parts, lambda cell: cell.window):
        yield WindowDiff.of(window, [diffs[cell] for cell in cells])


def take_over(
    ledger: Ledger,
    bigquery: BigQueryConnection,
    contract: TableContract,
    start: datetime | None,
    diffs: Sequence[WindowDiff],
) -> LedgerRoute:
    """Registers the table in the ledger and records the adoption; no row is moved."""
    table = ledger.register_route(table_facts(contract, bigquery.project))
    if start is not None:
        ledger.record_start(contract.id, start)
    detail = {
        "start": start.isoformat() if start else None,
        "windows": len(diffs),
        "windows_equal": sum(diff.is_equal for diff in diffs),
        **{
            name: sum(getattr(diff, name) for diff in diffs)
            for name in ("rows", "equal", "missing", "changed", "phantom")
        },
    }
    ledger.record_audit(table, Note(_KIND, contract.target.table, "adopted", detail))
    return table

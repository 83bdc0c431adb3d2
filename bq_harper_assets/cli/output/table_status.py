"""The ledger alone says how far a table has come; neither BigQuery nor Harper is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bq_harper_assets.cli.output.outside_rows import OutsideRows, outside_rows
from bq_harper_assets.contract.fields.quantities import window_text
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import CellState

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.ledger.questions.progress import CellCount, WindowState
    from bq_harper_assets.ledger.questions.workers import Worker
    from bq_harper_assets.ledger.records import LedgerRoute


@dataclass(frozen=True)
class HeldSlice:
    """A run holds the lease of this slice: only that run may write its rows now."""

    slice: int
    owner: str
    until: datetime


@dataclass(frozen=True, kw_only=True)
class SliceStatus:
    """A slice has come so far; SyncCheckpoint in Harper shows the same."""

    slice: str
    synced_until: datetime
    lag_s: float
    phase: str
    batch_size: int  # rows per request
    rows: int


@dataclass(frozen=True, kw_only=True)
class TableStatus:
    """A table has come so far, as the ledger knows it; a table never synced has no times."""

    table: str
    target: str
    timestamp_column: str
    cells_due: int  # of closed windows
    cells: dict[str, int] = field(default_factory=dict)  # of closed windows, by state
    cells_open: dict[str, int] = field(default_factory=dict)  # of the open window, by state
    open_upto: datetime | None = None  # as far as the open window is synced in every slice
    cells_before_start: int = 0  # the first window was an earlier one when they were synced
    synced_until: datetime | None = None  # every cell up to here
    lag_s: float | None = None
    phase: str = "initial"
    batch_size: int = 0  # rows per request
    windows_per_run: int = 0
    next_poll_within_s: float | None = None  # if its sensors are on
    due: dict[str, int] = field(default_factory=dict)  # cells of closed windows, by reason
    rows: int = 0
    quarantined: int = 0
    newest_t: datetime | None = None
    leases: tuple[HeldSlice, ...] = ()
    slices: tuple[SliceStatus, ...] = ()
    workers: "tuple[Worker, ...]" = ()
    ended: dict[str, str] = field(default_factory=dict)  # what became of runs that hold leases
    rows_outside: OutsideRows | None = None
    declared_otherwise: str | None = None
    out_of_step: str | None = None  # how ledger and Harper contradict each other

    @property
    def is_advised(self) -> bool:
        """Says whether a sync helps: nobody is at work, and it would not be refused."""
        return not self.is_at_work and self.out_of_step is None

    @property
    def is_at_work(self) -> bool:
        """Says whether a run may be writing now."""
        return any(self.works(worker) for worker in self.workers)

    def works(self, worker: "Worker") -> bool:
        """Says whether the run holds its lease and has not ended."""
        return worker.is_live and worker.owner not in self.ended


def table_state(
    contract: TableContract, ledger: "Ledger", now: datetime, ended: Mapping[str, str] | None = None
) -> TableStatus:
    """Says how far the table is at `now`; its cells are counted as synced, not as declared.

    `ended` says what became of runs that still hold a lease and have ended.
    """
    from bq_harper_assets.instants import floor_to_window
    from bq_harper_assets.ledger.questions.progress import WindowState
    from bq_harper_assets.sync.cells.window import windows_between
    from bq_harper_assets.sync.phases import phase_of, rows_per_request
    from bq_harper_assets.sync.revisit.horizon import standing
    from bq_harper_assets.sync.revisit.pace import WINDOWS_PER_RUN, poll_delay

    start = contract.sync.start_timestamp or ledger.start_of(contract.id)
    table = ledger.find_route(contract.id)
    window = (table.facts.window if table else None) or contract.window
    slices = table.facts.slices if table else contract.slices
    closed = floor_to_window(now - contract.safety_lag, window)
    windows = list(windows_between(start, closed, window)) if start else []
    bare = TableStatus(
        table=contract.id,
        target=contract.target.table,
        timestamp_column=contract.timestamp_column,
        cells_due=len(windows) * slices,
    )
    if table is None or start is None:
        return bare
    first = floor_to_window(start, window)
    progress = ledger.progress(table, first)
    lag = max(now - progress.synced_until, timedelta(0))
    phase = phase_of(lag, contract.sync)
    otherwise = _declared_otherwise(contract, table)
    # What is due is found by the contract's windows and slices.
    stands = None if otherwise else standing(ledger, contract, first, now, ended=ended or {})
    counts = ledger.cell_counts(table, first, closed)
    still_open = [each for each in counts if each.window is WindowState.OPEN and each.synced_upto]
    return TableStatus(
        table=contract.id,
        target=contract.target.table,
        timestamp_column=contract.timestamp_column,
        cells_due=bare.cells_due,
        cells=_by_state(counts, WindowState.CLOSED),
        cells_open=_by_state(counts, WindowState.OPEN),
        open_upto=min((each.synced_upto for each in still_open if each.synced_upto), default=None),
        cells_before_start=sum(each.cells for each in counts if each.window is WindowState.BEFORE),
        synced_until=progress.synced_until,
        lag_s=lag.total_seconds(),
        phase=phase.value,
        batch_size=rows_per_request(phase, contract.sync),
        windows_per_run=WINDOWS_PER_RUN[phase],
        next_poll_within_s=poll_delay(phase, contract.sync).total_seconds(),
        due={reason.value: count for reason, count in stands.by_reason.items()} if stands else {},
        rows=progress.rows,
        quarantined=progress.quarantined,
        newest_t=progress.newest_t,
        leases=tuple(
            HeldSlice(lease.slice, lease.owner, lease.expires_at)
            for lease in ledger.leases(table)
            if lease.is_live and lease.owner and lease.expires_at
        ),
        slices=_slices(contract, ledger, table, first, now),
        workers=(workers := ledger.workers(table)),
        ended={each.owner: ended[each.owner] for each in workers if ended and each.owner in ended},
        rows_outside=outside_rows(contract, ledger),
        declared_otherwise=otherwise,
    )


def _slices(
    contract: TableContract, ledger: "Ledger", table: "LedgerRoute", first: datetime, now: datetime
) -> tuple[SliceStatus, ...]:
    from bq_harper_assets.sync.cells.cell import slice_key
    from bq_harper_assets.sync.phases import phase_of, rows_per_request

    found = []
    for point in ledger.checkpoints(table, first):
        lag = max(now - point.until, timedelta(0))
        phase = phase_of(lag, contract.sync)
        found.append(
            SliceStatus(
                slice=slice_key(point.slice),
                synced_until=point.until,
                lag_s=lag.total_seconds(),
                phase=phase.value,
                batch_size=rows_per_request(phase, contract.sync),
                rows=point.rows,
            )
        )
    return tuple(found)


def _by_state(counts: "Sequence[CellCount]", window: "WindowState") -> dict[str, int]:
    """Counts the cells by state, always in the same order."""
    found = {each.state: each.cells for each in counts if each.window is window}
    return {state.value: found[state] for state in CellState if state in found}


def _declared_otherwise(contract: TableContract, table: "LedgerRoute") -> str | None:
    """Says why the contract's cells are not those that are counted; None if they are."""
    facts = table.facts
    if facts.window is not None and contract.window != facts.window:
        return (
            f"config/tables.yaml says window: {window_text(contract.window)}, and the table is "
            f"synced by windows of {window_text(facts.window)}, which cannot be changed: write "
            f"window: {window_text(facts.window)}"
        )
    if contract.slices != facts.slices:
        return (
            f"config/tables.yaml says slices: {contract.slices}, and the table is synced with "
            f"{facts.slices}; type: bqh slices set {contract.id} {contract.slices}"
        )
    return None

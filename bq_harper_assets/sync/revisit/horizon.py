"""To find late, changed and deleted rows, windows are compared with the source again and again.

Windows inside the horizon are compared each time, and of all older ones a part, so that each of
them is compared once within the scrub period.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellKey, CellState, LedgerRoute
from bq_harper_assets.sync.cells.window import Span, windows_between
from bq_harper_assets.sync.phases import Phase, phase_of
from bq_harper_assets.sync.revisit.due_cells import (
    Due,
    Reason,
    WindowFingerprint,
    closed_until,
    due_cells,
)
from bq_harper_assets.sync.revisit.pace import look_delay


@dataclass(frozen=True)
class ScrubPart:
    """A scrub part is the old windows that are compared next."""

    begin: datetime
    end: datetime
    after: datetime  # where the part after this one begins
    pause: timedelta  # until that one, so that the whole history takes one period


@dataclass(frozen=True)
class TableStanding:
    """A standing is a table's phase and its due cells, as the ledger knows them."""

    phase: Phase
    due: tuple[Due, ...]  # cells of closed windows
    until: datetime  # the end of the newest closed window
    # Which run is at work on a cell, which is not judged before it has ended.
    at_work: Mapping[CellKey, str] = field(default_factory=dict)

    @property
    def by_reason(self) -> dict[Reason, int]:
        """Counts the due cells of each reason."""
        return {
            reason: count
            for reason in Reason
            if (count := sum(each.reason is reason for each in self.due))
        }


def standing(
    ledger: Ledger,
    contract: TableContract,
    start: datetime,
    now: datetime,
    changed: Mapping[datetime, WindowFingerprint] | None = None,
    ended: Collection[str] = (),
) -> TableStanding:
    """Returns the standing at `now`; neither source nor target is asked.

    `changed` are the windows that the last comparison with the source found, `ended` the runs that
    are known to have ended, though their leases have not expired yet.
    """
    until = closed_until(contract, now)
    table = ledger.find_route(contract.id)
    if table is None:
        windows = windows_between(start, until, contract.window)
        phase = phase_of(max(now - start, timedelta(0)), contract.sync)
        return TableStanding(phase, tuple(due_cells(windows, contract.slices, ())), until)
    progress = ledger.progress(table, start)
    first = start
    if not progress.dirty and not set(progress.cells) - {CellState.SYNCED}:
        # Nothing is missing before this: there only changed windows can be due.
        first = floor_to_window(
            min(progress.synced_until, *(changed or ()), until), contract.window
        )
    at_work = _at_work(ledger, table, ended)
    due = due_cells(
        windows_between(first, until, contract.window),
        contract.slices,
        ledger.cells(table, first, until),
        at_work,
        changed,
        now,
    )
    phase = phase_of(max(now - progress.synced_until, timedelta(0)), contract.sync)
    return TableStanding(phase, tuple(due), until, at_work)


def _at_work(ledger: Ledger, table: LedgerRoute, ended: Collection[str]) -> dict[CellKey, str]:
    """Says which run is at work on a cell: one that holds a lease and has not ended."""
    return {
        cell: left.run_id
        for left in ledger.left_over(table)
        if left.held_until is not None and left.run_id not in ended
        for cell in left.cells
    }


def known_after(
    before: Mapping[datetime, WindowFingerprint],
    ranges: Sequence[Span],
    found: Mapping[datetime, WindowFingerprint],
) -> dict[datetime, WindowFingerprint]:
    """Returns what a comparison found, and what was known of windows that it did not compare."""
    elsewhere = {
        at: seen
        for at, seen in before.items()
        if not any(start <= at < end for start, end in ranges)
    }
    return {**elsewhere, **found}


def horizon(contract: TableContract, start: datetime, until: datetime) -> Span:
    """Returns the range that every comparison covers; it is empty without a horizon."""
    return max(start, floor_to_window(until - contract.revisit, contract.window)), until


def scrub_part(
    contract: TableContract, start: datetime, until: datetime, scrubbed_to: datetime | None
) -> ScrubPart | None:
    """Returns the next part of what is older than the horizon; None if nothing is older."""
    older_until, _ = horizon(contract, start, until)
    count = (older_until - start) // contract.window
    if count <= 0:
        return None
    looks = contract.scrub // look_delay(contract)
    size = -(-count // looks)
    begin = scrubbed_to if scrubbed_to and start <= scrubbed_to < older_until else start
    end = min(begin + size * contract.window, older_until)
    pause = contract.scrub / -(-count // size)
    return ScrubPart(begin, end, end if end < older_until else start, pause)

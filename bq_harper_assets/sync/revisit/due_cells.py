"""The ledger, and the fingerprints that the source gave, decide which cells need work and why."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.ledger_facts import cell_key


class Reason(StrEnum):
    """A reason says why a cell needs work."""

    MISSING = "missing"
    FAILED = "failed"
    PLANNED_LEFT = "planned_left"  # by a run that has ended
    REFUSED = "refused"  # by the guard: a person decides
    FORGOTTEN = "forgotten"  # was refused for deletes of others, which no longer count
    DIRTY = "dirty"  # another cell's turn wrote or took a row of it
    CLOSED_SINCE = "closed_since"  # was synced while its window was open
    SOURCE_CHANGED = "source_changed"


CATCHING_UP = frozenset({Reason.MISSING, Reason.FAILED, Reason.PLANNED_LEFT})


@dataclass(frozen=True)
class WindowFingerprint:
    """This is a window's fingerprint as the source computed it at an instant."""

    fingerprint: str
    at: datetime


@dataclass(frozen=True)
class Due:
    """A due cell needs work; `sign` distinguishes this need from an earlier one of the cell."""

    cell: Cell
    reason: Reason
    sign: str = ""


def closed_until(contract: TableContract, now: datetime) -> datetime:
    """Returns the end of the newest window in which no row should arrive any more."""
    return floor_to_window(now - contract.safety_lag, contract.window)


def due_cells(
    windows: Iterable[Window],
    slices: int,
    records: Sequence[CellRecord],
    at_work: Collection[CellKey] = (),
    seen: Mapping[datetime, WindowFingerprint] | None = None,
    now: datetime | None = None,
) -> list[Due]:
    """Returns the cells of these closed windows that need work, in the order of the windows.

    Runs are `at_work` on some cells, so what is planned of these is not left over. `seen` has
    fingerprints by the start of a window; one that is older than a cell's commit does not count.
    Without `now` no refusal is old enough to be tried again.
    """
    known = {record.cell: record for record in records}
    found = []
    for window in windows:
        sight = (seen or {}).get(window.start)
        for number in range(slices):
            cell = Cell(window, number)
            record = known.get(cell_key(cell))
            reason = _reason(record, cell_key(cell) in at_work, sight, now)
            if reason is not None:
                found.append(Due(cell, reason, _sign(reason, record, sight)))
    return found


def is_comparable(record: CellRecord) -> bool:
    """Says whether comparing a cell with the source can show that it needs work."""
    if record.refusal is not None:
        return True
    return record.is_clean and record.commit is not None and record.commit.is_closed


def _reason(
    record: CellRecord | None,
    is_at_work: bool,
    seen: WindowFingerprint | None,
    now: datetime | None,
) -> Reason | None:
    if record is None:
        return Reason.MISSING
    if record.state is CellState.PLANNED:
        return None if is_at_work else Reason.PLANNED_LEFT
    if record.state is CellState.FAILED:
        return Reason.FAILED
    if record.state is CellState.REFUSED:
        # The guard judged the source as it was then, not as it is now.
        if _has_changed_since(record, seen):
            return Reason.SOURCE_CHANGED
        is_forgotten = now and record.refusal and record.refusal.is_forgotten(now)
        return Reason.FORGOTTEN if is_forgotten else Reason.REFUSED
    if record.commit is None:
        return Reason.MISSING
    if not record.is_clean:
        return Reason.DIRTY
    if not record.commit.is_closed:
        return Reason.CLOSED_SINCE
    if seen is None or seen.at <= record.commit.t:
        return None
    return None if seen.fingerprint == record.commit.fingerprint else Reason.SOURCE_CHANGED


def _has_changed_since(record: CellRecord, seen: WindowFingerprint | None) -> bool:
    refusal = record.refusal
    if refusal is None or seen is None or seen.at <= refusal.t:
        return False
    return seen.fingerprint != refusal.fingerprint


def _sign(reason: Reason, record: CellRecord | None, seen: WindowFingerprint | None) -> str:
    if reason is Reason.SOURCE_CHANGED and seen is not None:
        return seen.fingerprint
    batch = record.commit.batch if record and record.commit else 0
    return f"{batch}/{record.marks if record else 0}"

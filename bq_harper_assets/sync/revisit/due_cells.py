"""Which cells need work, and why: by the ledger, and by what BigQuery was seen to hold."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window, floor_to_window
from bq_harper_assets.sync.ledger_facts import cell_key


class Reason(StrEnum):
    """Why a cell needs work."""

    MISSING = "missing"
    FAILED = "failed"
    PLANNED_LEFT = "planned_left"  # by a run that has ended without a word
    REFUSED = "refused"  # by the guard: a person decides
    FORGOTTEN = "forgotten"  # refused for what others took out, which counts no more
    DIRTY = "dirty"  # a row of it was written by another cell
    CLOSED_SINCE = "closed_since"  # synced while its window was open
    SOURCE_CHANGED = "source_changed"


CATCHING_UP = frozenset({Reason.MISSING, Reason.FAILED, Reason.PLANNED_LEFT})


@dataclass(frozen=True)
class WindowFingerprint:
    """A window's fingerprint as BigQuery made it at an instant."""

    fingerprint: str
    at: datetime


@dataclass(frozen=True)
class Due:
    """A cell that needs work; `sign` tells this need from an earlier one of the same cell."""

    cell: Cell
    reason: Reason
    sign: str = ""


def closed_until(contract: TableContract, now: datetime) -> datetime:
    """The end of the newest window that no row should arrive in any more."""
    return floor_to_window(now - contract.safety_lag, contract.window)


def due_cells(
    windows: Iterable[Window],
    slices: int,
    records: Sequence[CellRecord],
    leased: Collection[int] = (),
    seen: Mapping[datetime, WindowFingerprint] | None = None,
    now: datetime | None = None,
) -> list[Due]:
    """Of these closed windows, in their order.

    `leased` slices are at work, so what is planned there is not left over; `seen` is by the start
    of a window, and a cell that was committed after it was seen is not judged by it; without `now`
    no refusal is old enough.
    """
    known = {record.cell: record for record in records}
    found = []
    for window in windows:
        sight = (seen or {}).get(window.start)
        for number in range(slices):
            cell = Cell(window, number)
            record = known.get(cell_key(cell))
            reason = _reason(record, number in leased, sight, now)
            if reason is not None:
                found.append(Due(cell, reason, _sign(reason, record, sight)))
    return found


def is_comparable(record: CellRecord) -> bool:
    """Whether a look at the source can tell something new about a closed cell."""
    if record.refusal is not None:
        return True
    return record.is_clean and record.commit is not None and record.commit.is_closed


def _reason(
    record: CellRecord | None, is_leased: bool, seen: WindowFingerprint | None, now: datetime | None
) -> Reason | None:
    if record is None:
        return Reason.MISSING
    if record.state is CellState.PLANNED:
        return None if is_leased else Reason.PLANNED_LEFT
    if record.state is CellState.FAILED:
        return Reason.FAILED
    if record.state is CellState.REFUSED:
        # The guard has judged what the source was then, and not what it is now.
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

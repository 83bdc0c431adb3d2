"""The cells that need work are requested in few runs, each over neighbouring windows."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.revisit.due_cells import CATCHING_UP, Due, Reason
from bq_harper_assets.sync.revisit.pace import ASK_AGAIN_AFTER, NEWEST_WINDOWS, WINDOWS_PER_RUN


class End(StrEnum):
    """An end says which end of the work a run takes; a table has one run of each at a time."""

    NEWEST = "newest"  # windows that just closed or changed
    OLDEST = "oldest"  # of the backlog


@dataclass(frozen=True)
class Ask:
    """This is a request for one run, over the rectangle that its cells span."""

    end: End
    due: tuple[Due, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Returns the cells that need work."""
        return tuple(each.cell for each in self.due)

    @property
    def windows(self) -> tuple[Window, ...]:
        """Returns the windows of the cells, in order."""
        return tuple(sorted({cell.window for cell in self.cells}))

    @property
    def reasons(self) -> str:
        """Joins the reasons of all cells, one word per reason."""
        return ", ".join(sorted({each.reason for each in self.due}))

    def key(self, now: datetime) -> str:
        """Returns a key that is the same for the same need until it is time to ask again."""
        signs = "".join(f"{each.cell.key} {each.reason} {each.sign};" for each in self.due)
        digest = hashlib.sha256(signs.encode()).hexdigest()[:16]
        spell = int(now.timestamp() // ASK_AGAIN_AFTER.total_seconds())
        return f"{self.windows[0].key}...{self.windows[-1].key}|{digest}|{spell}"


def asks(
    due: Sequence[Due],
    phase: Phase,
    newest: Window,
    at_work: Collection[Window] = (),
    ends: Collection[End] = (),
    failed: Collection[Window] = (),
) -> list[Ask]:
    """Returns at most one request for each end without a run; windows of runs are left out.

    `newest` is the newest closed window: it and what changed come newest first and do not wait for
    the backlog, which is taken oldest first. Windows whose last run `failed` come when an end has
    no others; otherwise one that fails each time would keep all behind it waiting.
    """
    wanted = [d for d in due if d.reason is not Reason.REFUSED and d.cell.window not in at_work]
    found = _asks([d for d in wanted if d.cell.window not in failed], phase, newest, ends)
    taken = {*ends, *(ask.end for ask in found)}
    return found + _asks([d for d in wanted if d.cell.window in failed], phase, newest, taken)


def _asks(wanted: Sequence[Due], phase: Phase, newest: Window, ends: Collection[End]) -> list[Ask]:
    most = WINDOWS_PER_RUN[phase]
    found = []
    taken: Collection[Window] = ()
    fresh = [d.cell.window for d in wanted if _is_fresh(d, newest)]
    if fresh and End.NEWEST not in ends:
        whole = _neighbours({d.cell.window for d in wanted}, max(fresh))
        taken = whole if len(whole) <= most else whole[-NEWEST_WINDOWS:]
        found.append(Ask(End.NEWEST, _of(wanted, taken)))
    backlog = {d.cell.window for d in wanted if not _is_fresh(d, newest)} - set(taken)
    if backlog and End.OLDEST not in ends:
        found.append(Ask(End.OLDEST, _of(wanted, _row_from(backlog, min(backlog))[:most])))
    return found


def _is_fresh(due: Due, newest: Window) -> bool:
    return due.cell.window == newest or due.reason not in CATCHING_UP


def _of(due: Iterable[Due], windows: Collection[Window]) -> tuple[Due, ...]:
    return tuple(each for each in due if each.cell.window in windows)


def _neighbours(windows: Collection[Window], last: Window) -> list[Window]:
    """Returns the windows without a gap up to the last."""
    by_end = {window.end: window for window in windows}
    found = [last]
    while found[-1].start in by_end:
        found.append(by_end[found[-1].start])
    return found[::-1]


def _row_from(windows: Collection[Window], first: Window) -> list[Window]:
    """Returns the windows without a gap from the first on."""
    by_start = {window.start: window for window in windows}
    found = [first]
    while found[-1].end in by_start:
        found.append(by_start[found[-1].end])
    return found

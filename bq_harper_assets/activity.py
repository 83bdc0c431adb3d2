"""What this process is at now: told by whoever does it, read by whoever shows it to a user.

Whatever takes longer than a moment opens a step; the newest open one is what a terminal shows:

    with doing("writing check results", total=len(results)) as step:
        for result in results:
            ...
            step.advance()

A run also says which cells it has committed; whoever shows it keeps a tally of them.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

_OPEN: "list[ActivityStep]" = []
_TALLIES: "list[CellTally]" = []
_LOCK = threading.Lock()


@dataclass(eq=False)
class ActivityStep:
    """A step is what a process does now; one that counts says how many of how many are done."""

    what: str
    total: int | None = None
    done: int = 0
    since: float = field(default_factory=time.monotonic)  # it is the newest that is open

    def advance(self, by: int = 1) -> None:
        """So many more are done."""
        self.done += by

    def __str__(self) -> str:
        return self.what if self.total is None else f"{self.what}, {self.done:,} of {self.total:,}"


@contextmanager
def doing(what: str, total: int | None = None) -> Iterator[ActivityStep]:
    """The step is open for as long as the block runs, also if the block raises.

    The time of an outer step begins anew when it comes back: that of the inner one is not its own.
    """
    step = ActivityStep(what, total)
    with _LOCK:
        _OPEN.append(step)
    try:
        yield step
    finally:
        with _LOCK:
            was_shown = _OPEN[-1] is step
            _OPEN.remove(step)
            if was_shown and _OPEN:
                _OPEN[-1].since = time.monotonic()


def now_doing() -> ActivityStep | None:
    """The step that was opened last and is still open; None if there is none."""
    with _LOCK:
        return _OPEN[-1] if _OPEN else None


@dataclass(eq=False)
class CellTally:
    """A tally knows the cells that this process has committed since it was opened."""

    rows_read: Mapping[str, int] = field(default_factory=dict)  # by the cell's key


@contextmanager
def tallying() -> Iterator[CellTally]:
    """The tally hears of every commit of this process for as long as the block runs."""
    tally = CellTally()
    with _LOCK:
        _TALLIES.append(tally)
    try:
        yield tally
    finally:
        with _LOCK:
            _TALLIES.remove(tally)


def note_committed(rows_read: Mapping[str, int]) -> None:
    """Enters cells into every open tally; a cell that is committed again counts once."""
    with _LOCK:
        for tally in _TALLIES:
            tally.rows_read = {**tally.rows_read, **rows_read}

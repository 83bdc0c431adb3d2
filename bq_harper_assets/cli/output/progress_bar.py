"""While a run works, a user sees a bar on a terminal, lines elsewhere, and nothing in JSON.

Runs happen in this process, so it knows by itself what it is at and which cells are committed: no
store is asked.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bq_harper_assets.activity import ActivityStep, CellTally, now_doing, tallying
from bq_harper_assets.retries.waiting import TERMINAL, WAITS

_LOOK_EVERY_S = 1.0
LINE_EVERY_S = 30.0
# Another step is told by a line of its own, but not one that is over in a moment.
STEP_AFTER_S = 5.0


@dataclass(frozen=True)
class ProgressLine:
    """A line about a run says how many cells are done, and which step it is at for how long."""

    what: str
    cells: int
    tally: CellTally

    def __str__(self) -> str:
        done = self.tally.rows_read
        told = f"{self.what}: {len(done):,} of {self.cells:,} cells done"
        if done:
            told += f", {sum(done.values()):,} rows read"
        step = now_doing()
        return f"{told}; {step}{_for(step)}" if step else told


@contextmanager
def working(what: str, output: str, cells: int) -> Iterator[None]:
    """Shows a run of so many cells for as long as the block runs."""
    if output == "json":
        yield  # waits are told on stderr, as by every command
    elif sys.stdout.isatty():
        with bar(what, cells, Console()):
            yield
    else:
        with lines(what, cells, click.echo):
            yield


@contextmanager
def bar(what: str, cells: int, console: Console) -> Iterator[None]:
    """Draws a bar that is as long as there are cells; a cell is done when it is committed."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with tallying() as tally, Progress(*columns, console=console, transient=True) as progress:
        line = ProgressLine(what, cells, tally)
        task = progress.add_task(str(line), total=cells)

        def show() -> None:
            progress.update(task, completed=len(tally.rows_read), description=str(line))

        def say(text: str) -> None:
            progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

        with WAITS.listen(say, TERMINAL), _watched(show, _LOOK_EVERY_S):
            yield


@contextmanager
def lines(
    what: str, cells: int, say: Callable[[str], None], every_s: float = LINE_EVERY_S
) -> Iterator[None]:
    """Says a line at the start, and others while it takes long: a log shows that it is alive."""
    with tallying() as tally:
        line = ProgressLine(what, cells, tally)
        say(str(line))
        with WAITS.listen(say, TERMINAL), _watched(lambda: say(str(line)), every_s):
            yield


def _for(step: ActivityStep) -> str:
    """Says how long the step has been under way, once that is longer than steps usually take."""
    seconds = time.monotonic() - step.since
    return f", for {timedelta(seconds=int(seconds))}" if seconds >= STEP_AFTER_S else ""


@contextmanager
def _watched(show: Callable[[], None], every_s: float) -> Iterator[None]:
    """Calls `show` from a thread of its own, so that the run need not know of it."""
    over = threading.Event()
    watching = threading.Thread(target=_watch, args=(show, every_s, over, now_doing()), daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def _watch(
    show: Callable[[], None], every_s: float, over: threading.Event, shown: ActivityStep | None
) -> None:
    shown_at = time.monotonic()
    while not over.wait(min(every_s, _LOOK_EVERY_S)):
        now, step = time.monotonic(), now_doing()
        is_new = step is not None and step is not shown and now - step.since >= STEP_AFTER_S
        if now - shown_at >= every_s or is_new:
            show()
            shown, shown_at = step, now

"""What a user sees while a run works: a bar on a terminal, lines elsewhere, nothing in JSON."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bq_harper_assets.activity import ActivityStep, now_doing
from bq_harper_assets.contract.connections import HarperConnection, LedgerSettings
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.breaker import Breakers
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.stores.waiting import TERMINAL, WAITS

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.sync.cells.cell import Cell

_LOOK_EVERY_S = 1.0
LINE_EVERY_S = 30.0
# Another step is told by a line of its own, but not one that is over in a moment.
STEP_AFTER_S = 5.0
LOOK_ENDS_WITHIN_S = 2.0  # a store that does not answer must not hold up the command
# A look at many cells takes a while: it may have this part of the time.
_SHARE = 0.05


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The cells that a run is to do, since when, and where to look how far it is."""

    contract: TableContract
    cells: "Sequence[Cell]"
    since: datetime  # by the ledger's clock
    ledger: LedgerSettings
    harper: HarperConnection


@dataclass(frozen=True)
class ProgressReading:
    """A reading says how far the run is; `rows` is None where Harper gave no answer."""

    done: int
    rows: int | None = None
    is_exact: bool = True  # those of the cells, by the ledger; Harper's count is about right


@contextmanager
def working(what: str, output: str, asked: Asked) -> Iterator[None]:
    """For as long as the block runs."""
    if output == "json":
        yield  # waits are told on stderr, as by every command
    elif sys.stdout.isatty():
        with bar(what, asked, Console()):
            yield
    else:
        with lines(what, asked, click.echo):
            yield


@contextmanager
def bar(what: str, asked: Asked, console: Console) -> Iterator[None]:
    """As long as there are cells; a cell is done when the ledger has it."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(_text(what, asked, ProgressReading(0)), total=len(asked.cells))

        def show(seen: ProgressReading) -> None:
            progress.update(task, completed=seen.done, description=_text(what, asked, seen))

        def say(line: str) -> None:
            progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

        with WAITS.listen(say, TERMINAL), _watched(asked, show, _LOOK_EVERY_S):
            yield


@contextmanager
def lines(
    what: str, asked: Asked, say: Callable[[str], None], every_s: float = LINE_EVERY_S
) -> Iterator[None]:
    """One at the start, and others while it takes long: a log shows that it is alive."""
    say(_text(what, asked, ProgressReading(0)))
    with (
        WAITS.listen(say, TERMINAL),
        _watched(asked, lambda seen: say(_text(what, asked, seen)), every_s),
    ):
        yield


def _text(what: str, asked: Asked, seen: ProgressReading) -> str:
    told = f"{what}: {seen.done:,} of {len(asked.cells):,} cells done"
    if seen.rows is not None and seen.is_exact:
        told += f", which hold {seen.rows:,} rows"
    elif seen.rows is not None:
        told += f", about {seen.rows:,} rows in {asked.contract.target_table}"
    step = now_doing()
    return f"{told}; {step}" if step else told


@contextmanager
def _watched(
    asked: Asked, show: Callable[[ProgressReading], None], every_s: float
) -> Iterator[None]:
    """Looks from a thread of its own, so that the run need not know of it."""
    over = threading.Event()
    watching = threading.Thread(
        target=_watch, args=(asked, show, every_s, over, now_doing()), daemon=True
    )
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join(LOOK_ENDS_WITHIN_S)


def _watch(
    asked: Asked,
    show: Callable[[ProgressReading], None],
    every_s: float,
    over: threading.Event,
    shown: ActivityStep | None,
) -> None:
    # Here and not above: a command that only asks for help does not wait for SQLAlchemy.
    from bq_harper_assets.ledger.ledger import open_ledger

    once = RetryPolicy(max_retries=0)
    with (
        suppress(BqhError),
        open_ledger(asked.ledger.url) as ledger,
        # Breakers of its own: that a look fails must not stop the run's own calls.
        HarperClient(asked.harper, retry=once, breakers=Breakers()) as harper,
    ):
        shown_at, wait_s = time.monotonic(), every_s
        while not over.wait(min(every_s, _LOOK_EVERY_S)):
            began, step = time.monotonic(), now_doing()
            is_new = step is not None and step is not shown and began - step.since >= STEP_AFTER_S
            if began - shown_at < wait_s and not is_new:
                continue
            with suppress(BqhError):
                show(_seen(asked, ledger, harper))
            shown, shown_at = step, time.monotonic()
            wait_s = max(every_s, (shown_at - began) / _SHARE)


def _seen(asked: Asked, ledger: "Ledger", harper: HarperClient) -> ProgressReading:
    """While cells are under way Harper tells how it grows; then the ledger knows it exactly."""
    rows = _rows_done(asked, ledger)
    if len(rows) == len(asked.cells):
        return ProgressReading(len(rows), sum(rows))
    return ProgressReading(len(rows), _rows(asked, harper), is_exact=False)


def _rows_done(asked: Asked, ledger: "Ledger") -> list[int]:
    """How many rows each cell holds that was committed since the run was asked for."""
    table = ledger.find_table(asked.contract.id)
    if table is None:
        return []
    wanted = {(cell.window.start, cell.slice) for cell in asked.cells}
    starts = [start for start, _ in wanted]
    # To the end of the last window: what is compared are the windows' starts.
    found = ledger.cells(table, min(starts), max(starts) + asked.contract.window)
    return [
        record.commit.rows
        for record in found
        if record.commit is not None
        and record.commit.committed_at >= asked.since
        and (record.cell.window_start, record.cell.slice) in wanted
    ]


def _rows(asked: Asked, harper: HarperClient) -> int | None:
    with suppress(BqhError):
        if table := harper.describe_table(asked.contract.target_table):
            return table.record_count
    return None

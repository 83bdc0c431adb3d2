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

from bq_harper_assets.contract.connections import HarperConnection, LedgerSettings
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.breaker import Breakers
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.retry import RetryPolicy

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.sync.cells import Cell

LOOK_EVERY_S = 1.0
LINE_EVERY_S = 30.0
# A look at many cells takes a while: it may have this part of the time.
_SHARE = 0.05


@dataclass(frozen=True)
class Asked:
    """The cells that a run is to do, since when, and where to look how far it is."""

    contract: TableContract
    cells: "Sequence[Cell]"
    since: datetime  # by the ledger's clock
    ledger: LedgerSettings
    harper: HarperConnection


@dataclass(frozen=True)
class Seen:
    """How far the run is; rows are all of the target's, None where Harper gave no answer."""

    done: int
    rows: int | None = None


@contextmanager
def working(what: str, output: str, asked: Asked) -> Iterator[None]:
    """For as long as the block runs."""
    if output == "json":
        yield
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
        task = progress.add_task(_text(what, asked, Seen(0)), total=len(asked.cells))

        def show(seen: Seen) -> None:
            progress.update(task, completed=seen.done, description=_text(what, asked, seen))

        with _watched(asked, show, LOOK_EVERY_S):
            yield


@contextmanager
def lines(
    what: str, asked: Asked, say: Callable[[str], None], every_s: float = LINE_EVERY_S
) -> Iterator[None]:
    """One at the start, and others while it takes long: a log shows that it is alive."""
    say(_text(what, asked, Seen(0)))
    with _watched(asked, lambda seen: say(_text(what, asked, seen)), every_s):
        yield


def _text(what: str, asked: Asked, seen: Seen) -> str:
    rows = "" if seen.rows is None else f", {seen.rows:,} rows in {asked.contract.target_table}"
    return f"{what}: {seen.done:,} of {len(asked.cells):,} cells done{rows}"


@contextmanager
def _watched(asked: Asked, show: Callable[[Seen], None], every_s: float) -> Iterator[None]:
    """Looks from a thread of its own, so that the run need not know of it."""
    over = threading.Event()
    watching = threading.Thread(target=_watch, args=(asked, show, every_s, over))
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def _watch(
    asked: Asked, show: Callable[[Seen], None], every_s: float, over: threading.Event
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
        wait_s = every_s
        while not over.wait(wait_s):
            began = time.monotonic()
            with suppress(BqhError):
                show(Seen(_done(asked, ledger), _rows(asked, harper)))
            wait_s = max(every_s, (time.monotonic() - began) / _SHARE)


def _done(asked: Asked, ledger: "Ledger") -> int:
    table = ledger.find_table(asked.contract.id)
    if table is None:
        return 0
    starts = [cell.window.start for cell in asked.cells]
    slices = sorted({cell.slice for cell in asked.cells})
    # To the end of the last window: what is compared are the windows' starts.
    found = ledger.cells(table, min(starts), max(starts) + asked.contract.window, slices)
    return sum(
        record.commit is not None and record.commit.committed_at >= asked.since for record in found
    )


def _rows(asked: Asked, harper: HarperClient) -> int | None:
    with suppress(BqhError):
        if table := harper.describe_table(asked.contract.target_table):
            return table.record_count
    return None

"""What a user sees while a run works: a bar on a terminal, a line elsewhere, nothing in JSON."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.retry import RetryPolicy

POLL_S = 1.0


@contextmanager
def working(what: str, output: str, harper: HarperConnection, target: str) -> Iterator[None]:
    """For as long as the block runs."""
    if output == "json":
        yield
    elif sys.stdout.isatty():
        with bar(what, harper, target, Console()):
            yield
    else:
        click.echo(what)
        yield


@contextmanager
def bar(what: str, harper: HarperConnection, target: str, console: Console) -> Iterator[None]:
    """Counts the target's rows in Harper; a run that only replaces rows leaves the count as is."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    over = threading.Event()
    with Progress(*columns, console=console, transient=True) as progress:
        # No length: how many rows a run will write is known when it has read them.
        task = progress.add_task(what, total=None)

        def count() -> None:
            with HarperClient(harper, retry=RetryPolicy(max_retries=0)) as client:
                while not over.wait(POLL_S):
                    with suppress(BqhError):
                        if table := client.describe_table(target):
                            shown = f"{what}: {table.record_count:,} rows in {target}"
                            progress.update(task, description=shown)

        counting = threading.Thread(target=count)
        counting.start()
        try:
            yield
        finally:
            over.set()
            counting.join()

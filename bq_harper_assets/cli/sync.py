"""`bqh sync`: the windows of a table moved to Harper, in one run."""

import difflib
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from bq_harper_assets.cli.progress import Asked, working
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.root import find_project_root
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.defs.launch import Launched
    from bq_harper_assets.sync.cells import Cell

EXIT_ERROR, EXIT_PARTIAL = 1, 4
CLOCKS_DIFFER_BY = timedelta(minutes=1)  # a window that has not begun for BigQuery is refused
MOMENT = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ"])


@click.command()
@click.argument("table")
@click.option(
    "--from", "from_", type=MOMENT, help="First window, UTC.  [default: the table's start]"
)
@click.option(
    "--to", type=MOMENT, help="End of the last window, UTC.  [default: the newest, open if live]"
)
@click.option("--slices", help="Only these, such as 0-1 or 2.  [default: all]")
@click.option(
    "--allow-deletes",
    is_flag=True,
    help="Also delete more rows than a run may; those that are gone from BigQuery.",
)
@click.option(
    "--profile", help="The profile of config/profiles.  [default: BQH_PROFILE, else local]"
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def sync(
    table: str,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
    allow_deletes: bool,
    profile: str | None,
    output: str,
) -> None:
    """Move the windows of TABLE to Harper, all in one run that Dagster records.

    Those that are closed, and the open one if the table is live and no --to is given.

    Exit code 0 if all cells are done, 1 if none is, 2 if the configuration is wrong, 4 if some are.
    """
    if profile:
        os.environ["BQH_PROFILE"] = profile
    root = find_project_root(os.environ, Path.cwd())
    project = load_project(root)
    contract = contract_named(project, table)
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.defs.build import build_definitions
    from bq_harper_assets.defs.launch import launch, project_instance
    from bq_harper_assets.defs.starts import start_of
    from bq_harper_assets.ledger.ledger import open_ledger

    with open_ledger(project.ledger.url) as ledger:
        start = start_of(project, contract, ledger)
        asked_at = ledger.now()
    cells = cells_between(contract, start, from_, to, slices)
    if not cells:
        raise click.UsageError("no window that can be synced lies in that range")
    asked = Asked(contract, cells, asked_at, project.ledger, project.harper)
    with working(f"syncing {contract.id}", output, asked), project_instance(root) as instance:
        began = time.monotonic()
        definitions = build_definitions(root)
        launched = launch(definitions, instance, contract, cells, allow_deletes=allow_deletes)
    seconds = time.monotonic() - began
    if output == "json":
        click.echo(json.dumps(as_json(contract, launched, len(cells), seconds), indent=2))
    else:
        Console().print(summary([(contract.id, launched, len(cells), seconds)]))
        if launched.not_synced:
            click.echo(f"went on with the columns it has: {launched.not_synced}")
        if launched.error:
            click.echo(f"error: {launched.error}", err=True)
    if launched.error:
        sys.exit(EXIT_PARTIAL if launched.done else EXIT_ERROR)


def contract_named(project: Project, name: str) -> TableContract:
    """The contract with that id or target; a usage error that offers the nearest name."""
    for contract in project.tables:
        if name.lower() in (contract.id.lower(), contract.target_table.lower()):
            return contract
    known = [contract.id for contract in project.tables]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    raise click.UsageError(f"config/tables.yaml declares no table {name!r}; {hint}")


def cells_between(
    contract: TableContract,
    start: datetime,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
) -> "list[Cell]":
    """The closed cells of the range; of a live table also the open ones, if no end is given."""
    from bq_harper_assets.sync.cells import Cell
    from bq_harper_assets.sync.windows import windows_between

    closed = datetime.now(UTC) - contract.safety_lag
    first = max(start, from_.replace(tzinfo=UTC)) if from_ else start
    last = min(closed, to.replace(tzinfo=UTC)) if to else closed
    takes_open = contract.live and to is None
    windows = [
        window
        for window in windows_between(first, last, contract.window)
        if window.end <= closed or (takes_open and window.start < closed - CLOCKS_DIFFER_BY)
    ]
    return [Cell(w, number) for w in windows for number in slices_asked(contract, slices)]


def slices_asked(contract: TableContract, asked: str | None) -> range:
    """Those of --slices; a usage error for what is none."""
    if asked is None:
        return range(contract.slices)
    first, _, last = asked.replace("s", "").partition("-")
    try:
        wanted = range(int(first), int(last or first) + 1)
    except ValueError:
        raise click.UsageError(f"--slices {asked}: give one, or a range such as 0-1") from None
    if not wanted or wanted[-1] >= contract.slices:
        raise click.UsageError(f"--slices {asked}: there are 0 to {contract.slices - 1}")
    return wanted


def as_json(
    contract: TableContract, launched: "Launched", cells: int, seconds: float
) -> dict[str, Any]:
    """For programs."""
    return {
        "table": contract.id,
        "target": contract.target_table,
        "run_id": launched.run_id,
        "cells": cells,
        "done": len(launched.done),
        "seconds": round(seconds, 3),
        "error": launched.error,
        "not_synced": launched.not_synced,
        "partitions": launched.done,
    }


def summary(runs: "list[tuple[str, Launched, int, float]]") -> Table:
    """What was read and written, and how fast, a line per table."""
    shown = Table("table", "cells", "read", "written", "quarantined", "seconds", "rows/s")
    for name, launched, cells, seconds in runs:
        cell = launched.done.values()
        read, written, refused = (
            sum(metadata[f"rows_{what}"] for metadata in cell)
            for what in ("read", "written", "quarantined")
        )
        shown.add_row(
            name,
            f"{len(launched.done)} of {cells}",
            f"{read:,}",
            f"{written:,}",
            f"{refused:,}",
            f"{seconds:.1f}",
            f"{written / seconds:,.0f}",
        )
    return shown

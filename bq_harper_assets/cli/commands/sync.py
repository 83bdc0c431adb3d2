"""`bqh sync`: the windows of a table moved to Harper, or only those of them that are due."""

import difflib
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.exit_codes import ExitCode, exit_codes
from bq_harper_assets.cli.output.outside_rows import outside_lines
from bq_harper_assets.cli.output.sync_summary import remarks, summary
from bq_harper_assets.cli.output.young_rows import young_rows
from bq_harper_assets.cli.runs.ranged_runs import Ran, open_project, run_cells
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.runs.readiness import require_ready
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells.cell import Cell

CLOCKS_DIFFER_BY = timedelta(minutes=1)  # a window that has not begun for BigQuery is refused
MOMENT = click.DateTime(
    [
        *("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"),
        *("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"),
    ]
)


@click.command(
    epilog=exit_codes(
        *(ExitCode.DIFFERS, ExitCode.PARTLY, ExitCode.CHANGED_SINCE, ExitCode.NOT_PROVED)
    )
)
@click.argument("table")
@click.option(
    "--changed",
    is_flag=True,
    help="Only what is due: look at BigQuery and the ledger, and sync what changed or is missing.",
)
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
    changed: bool,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
    allow_deletes: bool,
    profile: str | None,
    output: str,
) -> None:
    """Move the windows of TABLE to Harper, in runs that Dagster records.

    Those that are closed, and the open one if the table is live and no --to is given. With
    --changed only those that BigQuery has changed since their sync, and those that are missing,
    failed or marked.
    """
    project = open_project(profile)
    contract = contract_named(project, table)
    require_range(from_, to)
    require_servers(project)
    require_ready(project, contract)
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.defs.tables.first_window import first_window_start
    from bq_harper_assets.ledger.ledger import open_ledger

    with open_ledger(project.ledger.url) as ledger:
        start = first_window_start(project.bigquery, contract, ledger)
    cells = cells_between(contract, start, from_, to, slices)
    if not cells:
        raise click.UsageError(
            f"no window of {contract.id} that can be synced lies in that range: its first begins at"
            f" {start:%FT%H:%M} UTC, and one can be synced once it has begun, or, of a table that"
            " is not live, once it has closed"
        )
    if changed:
        from bq_harper_assets.cli.runs.due_windows import find_due

        say = click.echo if output == "text" else _nothing
        say(f"looking at {len(cells):,} cells of {contract.id} in BigQuery and in the ledger")
        due = find_due(project, contract, start, cells)
        say(str(due))
        cells = due.cells
    ran = run_cells(
        f"syncing {contract.id}", project, contract, cells, output, allow_deletes=allow_deletes
    )
    if output == "json":
        click.echo(json.dumps(sync_json(contract, ran), indent=2))
    elif cells:
        _tell(project, contract, ran, has_newest=to is None and not changed)
    sys.exit(ran.exit_code)


def _nothing(line: str) -> None:
    """Programs read one document."""


def _tell(project: Project, contract: TableContract, ran: Ran, *, has_newest: bool) -> None:
    from bq_harper_assets.ledger.ledger import open_ledger

    young = young_rows(project, contract, ran) if has_newest else ()
    with open_ledger(project.ledger.url) as ledger:
        outside = list(outside_lines(contract, ledger))
    for line in (*summary([(contract.id, ran)]), *remarks(ran), *young, *outside):
        click.echo(line)
    if ran.not_synced:
        click.echo(f"went on with the columns it has: {ran.not_synced}")
    ran.tell_outcome(contract.id)


def contract_named(project: Project, name: str) -> TableContract:
    """The contract with that id or target; a usage error that offers the nearest name."""
    for contract in project.tables:
        if name.lower() in (contract.id.lower(), contract.target_table.lower()):
            return contract
    known = [contract.id for contract in project.tables]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    raise click.UsageError(f"config/tables.yaml declares no table {name!r}; {hint}")


def require_range(from_: datetime | None, to: datetime | None) -> None:
    """A usage error for a range that ends before it begins."""
    if from_ and to and from_ >= to:
        raise click.UsageError(f"--from {from_:%FT%H:%M} is not before --to {to:%FT%H:%M}")


def cells_between(
    contract: TableContract,
    start: datetime,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
) -> "list[Cell]":
    """The closed cells of the range; of a live table also the open ones, if no end is given."""
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.cells.window import windows_between

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


def sync_json(contract: TableContract, ran: Ran) -> dict[str, Any]:
    """Returns what a sync did as programs read it."""
    told = {"table": contract.id, "target": contract.target_table, "not_synced": ran.not_synced}
    return told | ran.as_json()

"""`bqh sync` copies the windows of a table to Harper, or only those of them that are due."""

import json
import sys
from datetime import datetime
from typing import Any

import click

from bq_harper_assets.cli.exit_codes import RUN_EXITS
from bq_harper_assets.cli.options import ALLOW_DELETES, OUTPUT, PROFILE, cell_range
from bq_harper_assets.cli.output.outside_rows import outside_lines
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.cli.output.sync_summary import remarks, summary
from bq_harper_assets.cli.output.young_rows import young_rows
from bq_harper_assets.cli.runs.asked_cells import cells_between, require_range
from bq_harper_assets.cli.runs.asked_table import contract_named, open_project
from bq_harper_assets.cli.runs.due_windows import DueCells, find_due
from bq_harper_assets.cli.runs.ranged_runs import run_cells
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.runs.readiness import require_ready, require_source
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract


@click.command(epilog=RUN_EXITS)
@click.argument("table")
@click.option(
    "--changed",
    is_flag=True,
    help="Only what is due: look at BigQuery and the ledger, and sync what changed or is missing.",
)
@cell_range("the table's start", "the newest, open if live")
@ALLOW_DELETES
@PROFILE
@OUTPUT
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
    """Copy the windows of TABLE to Harper, in runs that Dagster records.

    It takes the closed windows, and the open one if the table is live and no --to is given. With
    --changed it takes only those that BigQuery has changed since their sync, and those that are
    missing, failed or marked.
    """
    project = open_project(profile)
    contract = contract_named(project, table)
    require_range(from_, to)
    require_servers(project)
    require_ready(project, contract)
    require_source(project, contract)
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
    due: DueCells | None = None
    if changed:
        say = click.echo if output == "text" else _nothing
        say(f"looking at {len(cells):,} cells of {contract.id} in BigQuery and in the ledger")
        due = find_due(project, contract, start, cells)
        say(str(due))
        cells = due.cells
    ran = run_cells(
        f"syncing {contract.id}", project, contract, cells, output, allow_deletes=allow_deletes
    )
    if output == "json":
        click.echo(json.dumps(sync_json(contract, ran, due), indent=2))
    elif cells:
        _tell(project, contract, ran, has_newest=to is None and not changed)
    if due and (not_judged := due.told_at_the_end()):
        click.echo(f"error: {not_judged}", err=True)
    sys.exit(due.exit_code(ran.exit_code) if due else ran.exit_code)


def _nothing(line: str) -> None:
    """Says nothing, because programs read one document."""


def _tell(project: Project, contract: TableContract, ran: RunResults, *, has_newest: bool) -> None:
    from bq_harper_assets.ledger.ledger import open_ledger

    young = young_rows(project, contract, ran) if has_newest else ()
    with open_ledger(project.ledger.url) as ledger:
        outside = list(outside_lines(contract, ledger))
    for line in (*summary([(contract.id, ran)]), *remarks(ran), *young, *outside):
        click.echo(line)
    if ran.not_synced:
        click.echo(f"went on with the columns it has: {ran.not_synced}")
    ran.tell_outcome(contract.id)


def sync_json(contract: TableContract, ran: RunResults, due: DueCells | None) -> dict[str, Any]:
    """Returns what a sync did as programs read it."""
    told: dict[str, Any] = {
        "table": contract.id,
        "target": contract.target.table,
        "not_synced": ran.not_synced,
    }
    at_work = due.at_work if due else {}
    told["not_judged"] = {run_id: [cell.key for cell in cells] for run_id, cells in at_work.items()}
    return told | ran.as_json()

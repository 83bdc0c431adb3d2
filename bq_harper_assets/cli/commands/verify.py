"""`bqh verify` says whether a table is equal to BigQuery now: it compares every synced row."""

import json
import sys
from dataclasses import replace
from datetime import datetime

import click

from bq_harper_assets.cli.exit_codes import PROOF_EXITS
from bq_harper_assets.cli.options import DEEP, OUTPUT, PROFILE, cell_range
from bq_harper_assets.cli.output.proof_text import diff_line, equality_json
from bq_harper_assets.cli.runs.asked_table import contract_named, open_project
from bq_harper_assets.cli.runs.proof_runs import SHOWN_ROWS, prove, proving


@click.command(epilog=PROOF_EXITS)
@click.argument("table")
@cell_range("the first", "the last")
@DEEP
@click.option("--show", is_flag=True, help=f"Name the rows that differ, {SHOWN_ROWS} of each cell.")
@PROFILE
@OUTPUT
def verify(
    table: str,
    from_: datetime | None,
    to: datetime | None,
    slices: str | None,
    deep: bool,
    show: bool,
    profile: str | None,
    output: str,
) -> None:
    """Tell whether all that is synced of TABLE is equal to BigQuery now, row by row.

    Each cell is compared with BigQuery as it was at its sync, and what changed in BigQuery since
    is named, as is what was not looked at. No row is changed.
    """
    project = open_project(profile)
    contract = contract_named(project, table)
    with proving(project, contract, from_, to, slices) as looking:
        found = prove(looking, looking.cells, output, deep=deep, show=show)
        if deep and not looking.unseen(looking.cells, given_up=0).outside:
            found = replace(found, presence=looking.presence())
    if output == "json":
        click.echo(json.dumps(equality_json(found), indent=2, default=str))
    elif found.presence:
        click.echo(f"  {found.presence.message}")
        for row in found.presence.rows:
            click.echo(f"  {diff_line(row)}")
    if output == "text" and found.out_of_step:
        click.echo(
            f"{contract.id} is out of step, as said above; type: bqh reconcile {contract.id}"
        )
    sys.exit(found.exit_code)

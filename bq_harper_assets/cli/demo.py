"""`bqh demo`: the stack started, the sample data loaded, and what is where."""

import os
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.root import find_project_root
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets.maritime.initialize import AlreadyFilled, Sample, initialize
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.scenarios import SCENARIOS
from bq_harper_assets.maritime.warehouse import TableStats, Warehouse

DATASET, SEED = "maritime", 7


@click.command()
@click.option(
    "--scenario", type=click.Choice(list(SCENARIOS)), default="realistic", show_default=True
)
def demo(scenario: str) -> None:
    """Start the local stack, load the sample data, and show what is where."""
    root = find_project_root(os.environ, Path.cwd())
    LocalStack(root).up(click.echo)
    project = load_project(root, profile="local")
    warehouse = Warehouse(project.bigquery, DATASET)
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    try:
        sample = Sample(SCENARIOS[scenario], SEED, microseconds(end))
        initialize(
            warehouse,
            sample,
            lambda table, done, total: click.echo(f"{table}: {done:,} of {total:,} rows"),
        )
    except AlreadyFilled:
        click.echo(
            "the sample data of an earlier demo is still there; `bqh maritime reset` replaces it"
        )
    Console().print(_shown(warehouse.stats()))
    click.echo(
        f"BigQuery  {project.bigquery.endpoint}, dataset {project.bigquery.project}.{DATASET}"
    )
    click.echo(f"Harper    {project.harper.url}, ready; its tables come with the sync")
    click.echo("Next: `make ui` opens Dagster, `make down` stops the servers,")
    click.echo("      `.venv/bin/bqh doctor` checks every setting and connection")


def _shown(stats: list[TableStats]) -> Table:
    table = Table("BigQuery table", "rows", "vessels", "from", "to")
    for found in stats:
        oldest, newest = (f"{t:%Y-%m-%d %H:%M}" if t else "" for t in (found.oldest, found.newest))
        table.add_row(found.table, f"{found.rows:,}", f"{found.vessels:,}", oldest, newest)
    return table

"""`bqh demo` starts the stack, loads and syncs the sample data, and shows what is where."""

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bq_harper_assets.cli.exit_codes import ExitCode, exit_codes
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.cli.output.sync_summary import summary
from bq_harper_assets.cli.output.young_rows import young_rows
from bq_harper_assets.cli.runs.asked_cells import cells_between
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.errors import BqhError
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets.maritime.initialize import SCENARIOS, AlreadyFilled, Sample, initialize
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.tables import DATASET
from bq_harper_assets.maritime.warehouse import TableStats, Warehouse

_SEED = 7


class DemoFailed(BqhError):
    """A table could not be synced."""


@click.command(epilog=exit_codes(ExitCode.DIFFERS, ExitCode.CHANGED_SINCE, ExitCode.NOT_PROVED))
@click.option(
    "--scenario", type=click.Choice(list(SCENARIOS)), default="realistic", show_default=True
)
def demo(scenario: str) -> None:
    """Start the local stack, load the sample data, sync it to Harper, and show what is where."""
    root = find_project_root(os.environ, Path.cwd())
    LocalStack(root).up(click.echo)
    project = load_project(root, profile="local")
    warehouse = Warehouse(project.bigquery, DATASET)
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    try:
        sample = Sample(SCENARIOS[scenario], _SEED, microseconds(end))
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
    synced = list(_synced(project))
    for line in summary(synced):
        click.echo(line)
    for table, (name, ran) in zip(project.tables, synced, strict=True):
        for line in young_rows(project, table, ran):
            click.echo(f"{name}: {line}")
        if ran.proof:
            wrong = ran.proof.told(name)
            click.echo(f"{name}: {wrong or ran.proof.message}", err=bool(wrong))
        if left_out := ran.told_of_quarantine(name):
            click.echo(left_out, err=True)
    click.echo(
        f"BigQuery  {project.bigquery.endpoint}, dataset {project.bigquery.project}.{DATASET}"
    )
    click.echo(f"Harper    {project.harper.url}, user {project.harper.user}")
    click.echo(
        "Next: `make ui` opens Dagster on http://127.0.0.1:3000, `make down` stops the servers,"
    )
    click.echo("      `.venv/bin/bqh doctor` checks every setting and connection")
    sys.exit(max(ran.exit_code for _, ran in synced))


def _synced(project: Project) -> Iterator[tuple[str, RunResults]]:
    """Syncs each table in one run, oldest window first; an error ends the demo."""
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.defs.build import build_definitions
    from bq_harper_assets.defs.resources import start_spark
    from bq_harper_assets.defs.runs.launch import launch, project_instance
    from bq_harper_assets.defs.tables.first_window import first_window_start
    from bq_harper_assets.ledger.ledger import open_ledger

    click.echo("starting Spark; each table is then synced by one Dagster run")
    start_spark(project)  # before the clock: in real use it is running already
    with open_ledger(project.ledger.url) as ledger:
        starts = {
            table.id: first_window_start(project.bigquery, table, ledger)
            for table in project.tables
        }
        definitions = build_definitions(project.root, ledger, profile=project.profile_name)
    with project_instance(project.root) as instance:
        for table in project.tables:
            cells = cells_between(table, starts[table.id], None, None, None)
            began = time.monotonic()
            launched = launch(definitions, instance, table, cells)
            if launched.error:
                raise DemoFailed(launched.error)
            click.echo(f"{table.id}: {len(cells)} partitions of harper/{table.target.table}")
            yield table.id, RunResults((launched,), len(cells), time.monotonic() - began)


def _shown(stats: list[TableStats]) -> Table:
    table = Table("BigQuery table", "rows", "vessels", "from", "to")
    for found in stats:
        oldest, newest = (f"{t:%Y-%m-%d %H:%M}" if t else "" for t in (found.oldest, found.newest))
        table.add_row(found.table, f"{found.rows:,}", f"{found.vessels:,}", oldest, newest)
    return table

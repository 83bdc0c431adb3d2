"""`bqh reconcile` compares every window of a table with BigQuery, whatever the ledger says."""

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from bq_harper_assets.cli.exit_codes import RUN_EXITS
from bq_harper_assets.cli.options import ALLOW_DELETES, OUTPUT, PROFILE
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.cli.runs.asked_cells import cells_between
from bq_harper_assets.cli.runs.asked_table import contract_named, open_project
from bq_harper_assets.cli.runs.ranged_runs import run_cells
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.runs.readiness import require_source
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger


@click.command(epilog=RUN_EXITS)
@click.argument("table")
@ALLOW_DELETES
@PROFILE
@OUTPUT
def reconcile(table: str, allow_deletes: bool, profile: str | None, output: str) -> None:
    """Compare every window of TABLE with BigQuery, and write only what differs.

    For when the ledger and Harper do not tell the same story: an older ledger was put back, the
    ledger was lost or replaced, Harper was restored from a backup, or its table is gone or empty.
    This ledger keeps the table from then on, and believes nothing that was recorded of its windows.
    """
    project = open_project(profile)
    contract = contract_named(project, table)
    require_servers(project)
    require_source(project, contract)
    start = _distrust(project, contract)
    cells = cells_between(contract, start, None, None, None)
    what = f"reconciling {contract.id}"
    ran = run_cells(what, project, contract, cells, output, allow_deletes=allow_deletes, deep=True)
    outside = _outside(project, contract, start)
    if output == "json":
        click.echo(json.dumps({**ran.as_json(), "rows_outside": outside}, indent=2))
    else:
        _tell(contract, ran, outside, start)
    sys.exit(ran.exit_code)


def _distrust(project: Project, contract: TableContract) -> datetime:
    """Distrusts all cells, from the window on that holds the oldest row of both stores."""
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.instants import floor_to_day
    from bq_harper_assets.ledger.ledger import open_ledger
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.stores.harper.lease.full_reconcile import distrust_everything
    from bq_harper_assets.stores.harper.mirror.plugin_checkpoints import moment_of
    from bq_harper_assets.sync.ledger_facts import refused_declaration
    from bq_harper_assets.validation.adopt.existing_table import oldest_held

    with (
        open_ledger(project.ledger.url) as ledger,
        HarperClient(project.harper) as harper,
    ):
        if refused := refused_declaration(ledger, contract, project.bigquery.project):
            raise refused
        start = _start(project, contract, ledger)
        is_there = harper.describe_table(contract.target.table) is not None
        held = moment_of(oldest_held(harper, contract)) if is_there else None
        if contract.sync.start_timestamp is None and held is not None and held < start:
            # A lost ledger had begun earlier: rows that have gone since are found there.
            start = ledger.begin_earlier(contract.id, floor_to_day(held))
        now = datetime.now(UTC)
        distrust_everything(ledger, harper, contract, project.bigquery, start, now)
    return start


def _start(project: Project, contract: TableContract, ledger: "Ledger") -> datetime:
    """Gives the declared or recorded start, else the day of BigQuery's oldest row, else today.

    An error of BigQuery ends the command before anything is changed: a start that was guessed would
    leave rows before the first window for good.
    """
    from bq_harper_assets.instants import floor_to_day, floor_to_window
    from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
    from bq_harper_assets.stores.bigquery.queries import Queries
    from bq_harper_assets.stores.bigquery.source import oldest_row

    if contract.sync.start_timestamp is not None:
        return floor_to_window(contract.sync.start_timestamp, contract.window)
    if (known := ledger.start_of(contract.id)) is not None:
        return known
    limit = contract.sync.give_up_after
    queries = Queries(BigQueryCalls(project.bigquery, give_up_after=limit))
    with queries.client:
        oldest = oldest_row(queries, contract)
    if oldest is None:
        return floor_to_day(datetime.now(UTC))
    return ledger.record_start(contract.id, floor_to_day(oldest))


def _outside(project: Project, contract: TableContract, start: datetime) -> dict[str, int]:
    """Counts the rows of Harper that are in no window, by where they are."""
    from bq_harper_assets.ledger.ledger import open_ledger
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.sync.ledger_facts import version_of
    from bq_harper_assets.validation.adopt.existing_table import held_outside

    with open_ledger(project.ledger.url) as ledger:
        table = ledger.find_route(contract.id)
        version = version_of(ledger.newest_schema(table)) if table else None
    column = version.find(contract.timestamp_column) if version else None
    if column is None:
        return {}
    try:
        with HarperClient(project.harper) as harper:
            found = held_outside(harper, contract, column.kind, start, datetime.now(UTC))
    except BqhError:
        return {}  # the run has said what is wrong
    return {
        "without_time": found.without_time,
        "before_start": found.before_start,
        "in_future": found.in_future,
    }


def _tell(
    contract: TableContract, ran: RunResults, outside: dict[str, int], start: datetime
) -> None:
    cells = ran.done.values()
    counts = ", ".join(
        f"{sum(cell[f'rows_{kind}'] for cell in cells):,} {kind}"
        for kind in ("unchanged", "written", "deleted")
    )
    click.echo(
        f"{len(ran.done):,} of {ran.cells:,} cells of {contract.id} are compared and done: "
        f"rows {counts}"
    )
    if count := sum(outside.values()):
        click.echo(
            f"{count:,} rows of {contract.target.table} lie in no window and were left as they "
            f"are: {outside['before_start']:,} before {start:%F %T} UTC, {outside['in_future']:,} "
            f"after now, {outside['without_time']:,} without a time. To have older ones compared, "
            f"set sync.startTimestamp before them, then type: bqh reconcile {contract.id}"
        )
    ran.tell_outcome(contract.id)
    if ran.error:
        click.echo(
            "What is not compared yet stays marked: no run copies over it, and bqh sync "
            f"{contract.id} compares it",
            err=True,
        )

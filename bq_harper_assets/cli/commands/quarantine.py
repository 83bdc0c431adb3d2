"""`bqh quarantine` shows rows that Harper did not take, and why, and gets rid of them."""

import getpass
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.exit_codes import RUN_EXITS
from bq_harper_assets.cli.options import OUTPUT, PROFILE
from bq_harper_assets.cli.runs.asked_table import contract_named, open_project
from bq_harper_assets.cli.runs.ranged_runs import run_cells
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.runs.readiness import require_source
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.ledger.questions.status import QuarantinedRow
    from bq_harper_assets.ledger.records import LedgerRoute
    from bq_harper_assets.sync.cells.cell import Cell

MOST = 100_000  # rows that are looked at
LISTED = 1_000
_REASON = 120  # characters in a list
_CELL_HELP = "The cell's key, such as '2026-11-16T07:00|s02'."
CELL = click.option("--cell", metavar="KEY", help=_CELL_HELP)


@click.group()
def quarantine() -> None:
    """See, sync again or forget rows that Harper did not take."""


@quarantine.command("list")
@click.argument("table", required=False)
@PROFILE
@OUTPUT
def list_(table: str | None, profile: str | None, output: str) -> None:
    """List the rows in quarantine, of TABLE or of all tables."""
    project = open_project(profile)
    contracts = [contract_named(project, table)] if table else project.tables
    rows = []
    for contract in contracts:
        with _known(project, contract) as (ledger, known):
            found = ledger.quarantined(known, limit=LISTED + 1) if known else ()
            rows += [(contract, row) for row in found]
    if output == "json":
        click.echo(json.dumps([_as_json(*row) for row in rows[:LISTED]], indent=2))
        return
    for contract, row in rows[:LISTED]:
        reason = row.rejection.reason[:_REASON]
        shown = row.rejection.row_id or "without an id"
        click.echo(f"{contract.id}  {row.cell}  row {row.number}  {shown}  {reason}")
    if len(rows) > LISTED:
        click.echo(f"... and more; list one table, or look at one cell: {_show_command(rows[-1])}")
    elif not rows:
        click.echo("nothing is in quarantine")


@quarantine.command()
@click.argument("table")
@click.argument("row_id", required=False)
@CELL
@PROFILE
@OUTPUT
def show(
    table: str, row_id: str | None, cell: str | None, profile: str | None, output: str
) -> None:
    """Show rows of TABLE whole, with the reason: the one with ROW_ID, or all of a cell."""
    if (row_id is None) == (cell is None):
        raise click.UsageError("give a ROW_ID, or --cell KEY")
    project = open_project(profile)
    contract = contract_named(project, table)
    found = [
        row for row in rows_of(project, contract, cell) if row_id in (None, row.rejection.row_id)
    ]
    if not found:
        what = f"a row {row_id}" if row_id else f"a row of {cell}"
        raise click.UsageError(
            f"{what} is not in quarantine; see: bqh quarantine list {contract.id}"
        )
    if output == "json":
        click.echo(json.dumps([_as_json(contract, row) for row in found], indent=2))
        return
    for row in found:
        click.echo(f"{row.cell}  row {row.number}  {row.rejection.row_id or 'without an id'}")
        click.echo(f"  since   {row.at:%F %T} UTC, batch {row.batch}")
        click.echo(f"  reason  {row.rejection.reason}")
        click.echo(f"  row     {row.rejection.payload}")


@quarantine.command(epilog=RUN_EXITS)
@click.argument("table")
@CELL
@PROFILE
@OUTPUT
def replay(table: str, cell: str | None, profile: str | None, output: str) -> None:
    """Sync the cells of TABLE that have rows in quarantine, once source or contract are mended."""
    project = open_project(profile)
    contract = contract_named(project, table)
    before = rows_of(project, contract, cell)
    if not before:
        click.echo("[]" if output == "json" else f"{contract.id} has no such row in quarantine")
        return
    require_servers(project)
    require_source(project, contract)
    ran = run_cells(f"replaying {contract.id}", project, contract, _cells_with(before), output)
    left = rows_of(project, contract, cell)
    if output == "json":
        told = {**ran.as_json(), "before": len(before), "left": len(left)}
        click.echo(json.dumps({"table": contract.id, **told}, indent=2))
    else:
        click.echo(f"{len(before):,} rows were in quarantine, {len(left):,} still are")
        for row in left[:1]:
            click.echo(f"the first of them: {row.rejection.reason}")
            click.echo(f"see it with: {_show_command((contract, row))}")
        ran.tell_outcome(contract.id)
    sys.exit(ran.exit_code)


@quarantine.command()
@click.argument("table")
@click.option("--cell", metavar="KEY", required=True, help=_CELL_HELP)
@click.option("--row", "numbers", type=int, multiple=True, help="A row's number.  [default: all]")
@click.option("--yes", is_flag=True, help="Forget the rows.")
@PROFILE
def drop(table: str, cell: str, numbers: tuple[int, ...], yes: bool, profile: str | None) -> None:
    """Forget rows of TABLE: a proof calls them missing, until a sync finds them again."""
    from bq_harper_assets.sync.ledger_facts import cell_key

    project = open_project(profile)
    contract = contract_named(project, table)
    found = [r for r in rows_of(project, contract, cell) if not numbers or r.number in numbers]
    if not found:
        raise click.UsageError(
            f"no such row is in quarantine; see: bqh quarantine list {contract.id}"
        )
    if not yes:
        raise click.UsageError(
            f"this forgets {len(found):,} rows of {cell}, which are not in Harper either; if that "
            "is meant, add --yes"
        )
    with _known(project, contract) as (ledger, known):
        assert known is not None
        key = cell_key(_cell(contract, cell))
        dropped = ledger.drop_quarantined(known, key, list(numbers) or None, getpass.getuser())
    click.echo(f"{dropped:,} rows of {cell} are forgotten; the audit keeps that it was done")


@contextmanager
def _known(
    project: Project, contract: TableContract
) -> "Iterator[tuple[Ledger, LedgerRoute | None]]":
    # Here and not above: a command that only asks for help does not wait for SQLAlchemy.
    from bq_harper_assets.ledger.ledger import open_ledger

    with open_ledger(project.ledger.url) as ledger:
        yield ledger, ledger.find_route(contract.id)


def rows_of(project: Project, contract: TableContract, cell: str | None) -> "list[QuarantinedRow]":
    """Lists the quarantined rows of the table, or of one of its cells."""
    from bq_harper_assets.sync.ledger_facts import cell_key

    key = cell_key(_cell(contract, cell)) if cell else None
    with _known(project, contract) as (ledger, known):
        return list(ledger.quarantined(known, key, limit=MOST)) if known else []


def _cells_with(rows: "Sequence[QuarantinedRow]") -> "list[Cell]":
    """Returns the cells of these rows, each once."""
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.cells.window import Window

    keys = sorted({row.cell for row in rows})
    return [Cell(Window(key.window_start, key.window_end), key.slice) for key in keys]


def _cell(contract: TableContract, key: str) -> "Cell":
    from bq_harper_assets.sync.cells.cell import Cell

    try:
        return Cell.parse(key, contract.window)
    except ValueError as error:
        raise click.UsageError(f"--cell: {error}") from None


def _show_command(row: "tuple[TableContract, QuarantinedRow]") -> str:
    contract, quarantined = row
    return f"bqh quarantine show {contract.id} --cell '{quarantined.cell}'"


def _as_json(contract: TableContract, row: "QuarantinedRow") -> dict[str, Any]:
    return {
        "table": contract.id,
        "cell": str(row.cell),
        "row": row.number,
        "id": row.rejection.row_id,
        "reason": row.rejection.reason,
        "payload": row.rejection.payload,
        "at": row.at.isoformat(),
        "batch": row.batch,
    }

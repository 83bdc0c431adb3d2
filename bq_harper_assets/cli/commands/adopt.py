"""`bqh adopt` looks at a Harper table that others have made, and takes it over."""

import json
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from bq_harper_assets.cli.exit_codes import ExitCode, exit_codes
from bq_harper_assets.cli.options import OUTPUT, PROFILE
from bq_harper_assets.cli.runs.asked_table import AskedTable, contract_named, open_project
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.stores.bigquery.queries import Queries
    from bq_harper_assets.stores.bigquery.source import Pinned
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.validation.adopt.adoption_check import Beginning, Inspection
    from bq_harper_assets.validation.adopt.existing_table import WindowDiff

_LOOKED_AT = timedelta(days=1)  # of a source that is a query and has no row
_WORDS = {"fits": "", "added": "comes with the first row", "cannot": "cannot hold it"}
_SAMPLED = {
    "equal": "equal",
    "changed": "changed",
    "other_id": "under another id",
    "not_in_source": "not in BigQuery",
    "crowded": "not looked up",
}
_COUNTS = ("rows", "equal", "missing", "changed", "phantom")


@click.command(epilog=exit_codes(ExitCode.DIFFERS))
@click.argument("table")
@click.option("--yes", is_flag=True, help="Take it over, if it fits and says manage: adopt.")
@PROFILE
@OUTPUT
def adopt(table: str, yes: bool, profile: str | None, output: str) -> None:
    """Look whether the Harper table of TABLE, made and filled by others, can be taken over.

    Nothing is changed. With --yes the range that the BigQuery plugin says it has ingested is
    compared with BigQuery, row by row, and the ledger takes the table over; no row is moved before
    the next sync.
    """
    project = open_project(profile)
    contract = contract_named(project, table)
    if yes and not contract.target.is_adopted:
        raise click.UsageError(
            f"the contract {contract.id} says manage: create; write manage: adopt in"
            " config/tables.yaml, then type this again"
        )
    require_servers(project)
    # Here and not above: a command that only asks for help does not wait for SQLAlchemy.
    from bq_harper_assets.ledger.ledger import open_ledger

    with open_ledger(project.ledger.url) as ledger:
        asked = AskedTable(project, contract, ledger)
        with asked.queries("adopt") as queries, asked.harper() as harper:
            sys.exit(_adopt(asked, queries, harper, yes, output))


def _adopt(
    asked: AskedTable, queries: "Queries", harper: "HarperClient", yes: bool, output: str
) -> int:
    # Here and not above: google's libraries take seconds to import.
    from bq_harper_assets.stores.bigquery.source import pinned
    from bq_harper_assets.stores.harper.schema import harper_plan
    from bq_harper_assets.sync.ledger_facts import version_of
    from bq_harper_assets.validation.adopt.adoption_check import (
        adoption_json,
        find_beginning,
        inspect,
    )
    from bq_harper_assets.validation.adopt.existing_table import take_over

    contract, ledger = asked.contract, asked.ledger
    found = harper.describe_table(contract.target.table)
    if found is None:
        _tell_nothing(contract, output)
        return ExitCode.DIFFERS
    beginning = find_beginning(ledger, queries, harper, contract, found)
    now = ledger.now()
    known = ledger.find_route(contract.id)
    before = version_of(ledger.newest_schema(known)) if known else None
    start = beginning.start or now - _LOOKED_AT
    with pinned(queries, harper_plan, contract, start, now, before) as pin:
        inspection = inspect(queries, harper, contract, pin, found, beginning)
        if output == "text":
            _tell(contract, inspection)
        diffs: list[WindowDiff] = []
        if yes and inspection.fits:
            if inspection.is_searchable:
                diffs = list(_compared(asked, queries, harper, pin, beginning, output))
            take_over(ledger, asked.project.bigquery, contract, beginning.start, diffs)
    if output == "json":
        told = {"table": contract.id, "target": contract.target.table, **adoption_json(inspection)}
        told |= {"adopted": yes and inspection.fits, "windows": [_of_window(d) for d in diffs]}
        click.echo(json.dumps(told, indent=2))
    else:
        _tell_verdict(contract, inspection, yes=yes)
    return ExitCode.DONE if inspection.fits else ExitCode.DIFFERS


def _compared(
    asked: AskedTable,
    queries: "Queries",
    harper: "HarperClient",
    pin: "Pinned",
    beginning: "Beginning",
    output: str,
) -> "Iterator[WindowDiff]":
    """Compares the range that the plugin has ingested with BigQuery, window by window."""
    from bq_harper_assets.defs.resources import build_resources
    from bq_harper_assets.stores.harper.target import HarperTarget
    from bq_harper_assets.sync.cells.cut import TimeCut
    from bq_harper_assets.sync.turn_context import TurnSource
    from bq_harper_assets.validation.adopt.existing_table import compare_range

    project, start = asked.project, beginning.start
    until = beginning.plugin.covered_until if beginning.plugin else None
    if start is None or until is None or min(until, pin.t) <= start:
        return
    resources = build_resources(project)
    target = HarperTarget(asked.contract, harper)
    source = TurnSource(
        contract=asked.contract,
        cut=TimeCut(asked.contract.window),
        spark=resources["spark"].spark_session,
        pin=pin,
        target=target,
        tasks=target.tasks,
    )
    if output == "text":
        click.echo(" ".join(("window".ljust(16), *(count.rjust(12) for count in _COUNTS))))
    for diff in compare_range(source, start, min(until, pin.t)):
        if output == "text":
            counts = (f"{getattr(diff, count):,}".rjust(12) for count in _COUNTS)
            click.echo(" ".join((diff.window.key, *counts)))
        yield diff


def _of_window(diff: "WindowDiff") -> dict[str, Any]:
    return {"window": diff.window.key, **{count: getattr(diff, count) for count in _COUNTS}}


def _tell_nothing(contract: TableContract, output: str) -> None:
    text = (
        f"Harper has no table {contract.target.table}: there is nothing to adopt. Deploy the"
        f" component that declares it, or write manage: create and type: bqh sync {contract.id}"
    )
    if output == "json":
        told = {"table": contract.id, "target": contract.target.table, "fits": False}
        click.echo(json.dumps(told | {"problems": [text]}, indent=2))
    else:
        click.echo(text)


def _tell(contract: TableContract, inspection: "Inspection") -> None:
    found, sample = inspection.table, inspection.sample
    about = "" if found.is_count_exact else "about "
    click.echo(
        f"Harper's table {contract.target.table}: {about}{found.record_count:,} rows, "
        f"primary key {found.primary_key}"
    )
    shown = Table("attribute", "rows hold", "there", "index", "")
    for each in inspection.attributes:
        index = "key" if each.name == found.primary_key else "yes" if each.indexed else "-"
        shown.add_row(each.name, each.planned, each.there or "-", index, _WORDS[each.holding.value])
    Console(soft_wrap=True).print(shown)
    counts = ", ".join(
        f"{getattr(sample, name)} {word}"
        for name, word in _SAMPLED.items()
        if getattr(sample, name)
    )
    click.echo(f"{sample.rows} rows looked at: {counts or 'none compared'}")
    if inspection.beginning.start:
        click.echo(f"windows begin {_when(inspection.beginning.start)}")
    if plugin := inspection.beginning.plugin:
        until = _when(plugin.covered_until) if plugin.covered_until else "an unknown time"
        click.echo(
            f"the plugin's checkpoints: {plugin.nodes} nodes, all up to {until}, "
            f"{plugin.ingested:,} rows by its own count"
        )
    for note in inspection.notes:
        click.echo(f"note: {note}")
    for problem in inspection.problems:
        click.echo(f"problem: {problem}")


def _tell_verdict(contract: TableContract, inspection: "Inspection", *, yes: bool) -> None:
    name = contract.id
    if not inspection.fits:
        click.echo(
            f"{name} does not fit; nothing was changed. Change the table where it is declared, or"
            f" name another targetTable, then type: bqh adopt {name}"
        )
    elif yes:
        click.echo(f"{name} is adopted; no row was moved. Next: bqh sync {name}")
    elif contract.target.is_adopted:
        click.echo(f"{name} fits; nothing was changed. Next: bqh adopt {name} --yes")
    else:
        click.echo(
            f"{name} fits; nothing was changed. Next: write manage: adopt in config/tables.yaml,"
            f" then type: bqh adopt {name} --yes"
        )


def _when(moment: datetime) -> str:
    return f"{moment:%F %T} UTC"

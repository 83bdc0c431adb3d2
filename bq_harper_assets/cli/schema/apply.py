"""`bqh schema apply` and `rollback`: shown first, and done when asked with --yes."""

import getpass
import json
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.schema.table_schema import OUTPUT, PROFILE, Asking, asking

if TYPE_CHECKING:
    from bq_harper_assets.sync.schema_sync.requested_version import Deciding, Decision
    from bq_harper_assets.sync.schema_sync.target_evolution import Evolved

_YES = click.option("--yes", is_flag=True, help="Do it.  [default: only show what would be done]")


@click.command()
@click.argument("table")
@_YES
@PROFILE
@OUTPUT
def apply(table: str, yes: bool, profile: str | None, output: str) -> None:
    """Sync what waits in TABLE from now on, but for what its policy freezes."""
    with asking(table, profile) as asked, asked.queries() as queries:
        decision = _deciding(asked, queries).apply(record=yes)
        evolved = _evolved(asked) if yes else None
    command = f"bqh schema apply {asked.contract.id} --yes"
    _tell(asked, decision, evolved, command, output, ())


@click.command()
@click.argument("table")
@click.option("--to", type=click.IntRange(1), required=True, help="The version to go back to.")
@_YES
@PROFILE
@OUTPUT
def rollback(table: str, to: int, yes: bool, profile: str | None, output: str) -> None:
    """Sync the columns that a version of TABLE had; what came since waits, and nothing is dropped.

    It is recorded as a new version; a later number rolls forward again.
    """
    from bq_harper_assets.schema.version import TableVersion
    from bq_harper_assets.sync.schema_sync.version_history import version_named

    with asking(table, profile) as asked, asked.queries() as queries:
        decision = _deciding(asked, queries).roll_back(to, record=yes)
        evolved = _evolved(asked) if yes else None
        _, earlier = version_named(asked.ledger, asked.contract, to)
    wanted = TableVersion.parse(earlier.body)
    notes = [
        f"{column.source} stays as it is: BigQuery has no {column.type_text} of that name any more"
        for column in wanted.live
        if column.name not in decision.schema.live_names
    ]
    for column in decision.schema.live:
        was = wanted.find(column.name)
        if new := sorted(column.paths - was.paths) if was and was.is_live else []:
            notes.append(f"{', '.join(new)} goes on being synced: a rollback goes by whole columns")
    command = f"bqh schema rollback {asked.contract.id} --to {to} --yes"
    _tell(asked, decision, evolved, command, output, notes)


def _deciding(asked: Asking, queries: Any) -> "Deciding":
    from bq_harper_assets.sync.schema_sync.requested_version import Deciding

    require_servers(asked.project)  # what is decided is put on record before Harper hears of it
    return Deciding(asked.ledger, queries, asked.contract, getpass.getuser())


def _evolved(asked: Asking) -> "Evolved":
    """Harper has what the newest version needs."""
    from bq_harper_assets.sync.schema_sync.target_evolution import evolve_table

    with asked.harper() as harper:
        return evolve_table(asked.ledger, harper, asked.contract)


def _tell(
    asked: Asking,
    decision: "Decision",
    evolved: "Evolved | None",
    command: str,
    output: str,
    notes: "list[str] | tuple[str, ...]",
) -> None:
    from bq_harper_assets.cli.schema.schema_text import change_lines

    name = asked.contract.id
    if output == "json":
        click.echo(json.dumps(_as_json(name, decision, evolved, notes), indent=2))
        return
    if not decision.changes:
        click.echo(f"{name} stays as schema version {decision.version} has it: nothing to change")
    elif decision.is_recorded:
        click.echo(f"{name}: schema version {decision.version} is recorded")
    else:
        click.echo(f"{name}: schema version {decision.version} would be followed by another")
    for line in change_lines(decision.changes):
        click.echo(line)
    for note in notes:
        click.echo(f"  ! {note}")
    for change in decision.waiting:
        click.echo(f"  . {change.column} ({change.after}) {change.action}")
    if evolved:
        _tell_evolved(evolved)
    if decision.is_recorded:
        click.echo(f"the next sync writes rows of this version: bqh sync {name}")
    elif decision.changes:
        click.echo(f"nothing was changed; to do it, type: {command}")


def _tell_evolved(evolved: "Evolved") -> None:
    ensured = evolved.ensured
    if ensured.added:
        click.echo(f"Harper has an index now on: {', '.join(ensured.added)}")
    if ensured.unindexed:
        names = ", ".join(ensured.unindexed)
        click.echo(f"warning: Harper cannot add an index to: {names}", err=True)
    if evolved.warning:
        click.echo(f"warning: {evolved.warning}", err=True)


def _as_json(
    table: str,
    decision: "Decision",
    evolved: "Evolved | None",
    notes: "list[str] | tuple[str, ...]",
) -> dict[str, Any]:
    from bq_harper_assets.cli.schema.schema_text import diff_lists

    ensured = evolved.ensured if evolved else None
    return {
        "table": table,
        "version": decision.version,
        "recorded": decision.is_recorded,
        **diff_lists(decision.changes),
        "waiting": [change.body() for change in decision.waiting],
        "notes": list(notes),
        "harper": ensured
        and {
            "action": ensured.action.value,
            "added": list(ensured.added),
            "unindexed": list(ensured.unindexed),
        },
        "warning": evolved.warning if evolved else None,
    }

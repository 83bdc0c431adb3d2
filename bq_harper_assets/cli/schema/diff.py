"""`bqh schema diff`: what differs between two versions, or between the newest and BigQuery."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bq_harper_assets.cli.schema.table_schema import OUTPUT, PROFILE, Asking, asking, tell

if TYPE_CHECKING:
    from bq_harper_assets.schema.change import Change
    from bq_harper_assets.schema.version import TableVersion


@click.command()
@click.argument("table")
@click.option("--from", "from_", type=click.IntRange(1), help="[default: the newest version]")
@click.option("--to", type=click.IntRange(1), help="[default: what BigQuery has now]")
@PROFILE
@OUTPUT
def diff(table: str, from_: int | None, to: int | None, profile: str | None, output: str) -> None:
    """Show what differs between two schema versions of TABLE, and what is done about it.

    Without numbers: between the newest and what BigQuery has now. With --to alone: between that
    version and the one before. Nothing is recorded. That something differs is no failure; that
    a change cannot be followed is.
    """
    if to is not None:
        from_ = from_ or to - 1
        if not 0 < from_ < to:
            raise click.UsageError(f"--to {to}: --from must be an earlier version")
    with asking(table, profile) as asked:
        sys.exit(_diff(asked, from_, to, output))


def _diff(asked: Asking, from_: int | None, to: int | None, output: str) -> int:
    from bq_harper_assets.cli.schema.schema_text import change_lines
    from bq_harper_assets.schema.changes import changes_between, waiting_changes
    from bq_harper_assets.schema.errors import SchemaMismatch, SchemaRefused
    from bq_harper_assets.schema.version import TableVersion
    from bq_harper_assets.sync.schema_sync.version_history import version_named

    contract = asked.contract
    _, recorded = version_named(asked.ledger, contract, from_)
    before = TableVersion.parse(recorded.body)
    try:
        after = _to(asked, to)
    except (SchemaMismatch, SchemaRefused) as error:
        if output == "json":
            _tell_programs(asked, recorded.version, None, problem=str(error))
        else:
            click.echo(f"{contract.id} cannot follow what BigQuery has now:")
            for problem in error.problems:
                click.echo(f"  ! {problem}")
            click.echo("Harper keeps all rows as they are, and no sync changes them until then")
        return error.exit_code
    changes = changes_between(before, after, contract)
    waiting = waiting_changes(after, contract)
    equal = before == after
    if output == "json":
        _tell_programs(asked, recorded.version, to, changes, waiting, equal=equal)
        return 0
    first = f"schema version {recorded.version}"
    second = f"version {to}" if to else "what BigQuery has now"
    if equal:
        click.echo(f"{contract.id}: {first} and {second} are equal")
    else:
        click.echo(f"{contract.id}: from {first} to {second}")
        lines = (
            change_lines(changes)
            if changes
            else ["  ~ nothing that rows depend on: descriptions, order or clustering"]
        )
        click.echo("\n".join(lines))
    if waiting and to is None:
        names = ", ".join(change.column for change in waiting)
        click.echo(f"not synced yet: {names}; see: bqh schema apply {contract.id}")
    elif not equal and to is None:
        click.echo(f"recorded by the next look or sync: bqh sync {contract.id}")
    return 0


def _tell_programs(
    asked: Asking,
    from_: int,
    to: int | None,
    changes: "Sequence[Change]" = (),
    waiting: "Sequence[Change]" = (),
    *,
    equal: bool = False,
    problem: str | None = None,
) -> None:
    from bq_harper_assets.cli.schema.schema_text import diff_lists

    tell(
        asked.contract.id,
        fromVersion=from_,
        toVersion=to,
        equal=equal,
        **diff_lists(changes),
        waiting=[change.body() for change in waiting],
        problem=problem,
    )


def _to(asked: Asking, number: int | None) -> "TableVersion":
    """That version, or what a look at BigQuery would record after the newest."""
    from bq_harper_assets.schema.version import TableVersion
    from bq_harper_assets.sync.schema_sync.version_history import version_named

    _, recorded = version_named(asked.ledger, asked.contract, number)
    version = TableVersion.parse(recorded.body)
    return version if number is not None else asked.planned(version).version

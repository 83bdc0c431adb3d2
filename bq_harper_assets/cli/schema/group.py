"""`bqh schema`: the versions of a table's columns, what differs, and what is to be done."""

import click

from bq_harper_assets.cli.output.aligned_columns import aligned
from bq_harper_assets.cli.schema.accept import accept
from bq_harper_assets.cli.schema.apply import apply, rollback
from bq_harper_assets.cli.schema.cleanup import cleanup
from bq_harper_assets.cli.schema.diff import diff
from bq_harper_assets.cli.schema.table_schema import OUTPUT, PROFILE, asking, tell

_VERSION = click.option(
    "--version", "number", type=click.IntRange(1), help="Which.  [default: the newest]"
)


@click.group()
def schema() -> None:
    """See how the columns of a table changed, and decide on what waits."""


for command in (diff, accept, apply, rollback, cleanup):
    schema.add_command(command)


@schema.command()
@click.argument("table")
@_VERSION
@PROFILE
@OUTPUT
def show(table: str, number: int | None, profile: str | None, output: str) -> None:
    """Show the columns of TABLE in a schema version, in BigQuery's and in Harper's words.

    Of a table that was never synced, those that its first sync would record.
    """
    from bq_harper_assets.cli.schema.schema_text import (
        COLUMN_HEADER,
        column_row,
        layout_lines,
        recorded_json,
        title,
        with_fields,
    )

    with asking(table, profile) as asked:
        recorded, version = asked.version(number)
    contract = asked.contract
    if output == "json":
        tell(contract.id, target=contract.target_table, **recorded_json(recorded), **version.body())
        return
    click.echo(title(contract, recorded))
    for line in layout_lines(version):
        click.echo(line)
    rows = [column_row(path, column) for path, column in with_fields(version.columns)]
    click.echo("\n".join(aligned(COLUMN_HEADER, rows)))
    if version.waiting:
        click.echo(f"what waits is synced after: bqh schema apply {contract.id}")


@schema.command()
@click.argument("table")
@PROFILE
@OUTPUT
def history(table: str, profile: str | None, output: str) -> None:
    """List all schema versions of TABLE: when, by whom, why, and what changed."""
    from bq_harper_assets.cli.schema.schema_text import (
        change_lines,
        diff_lists,
        origin,
        recorded_json,
    )
    from bq_harper_assets.sync.schema_sync.version_history import version_steps

    with asking(table, profile) as asked:
        contract = asked.contract
        steps = version_steps(asked.ledger, contract)
    if output == "json":
        told = [recorded_json(step.recorded) | diff_lists(step.changes) for step in steps]
        tell(contract.id, versions=told)
        return
    for step in steps:
        live = len(step.version.live)
        click.echo(f"version {step.recorded.version}: {live} columns, {origin(step.recorded)}")
        for line in change_lines(step.changes):
            click.echo(line)
    if not steps:
        click.echo(f"{contract.id} has no schema version yet; the first: bqh sync {contract.id}")


@schema.command()
@click.argument("table")
@PROFILE
@OUTPUT
def indexes(table: str, profile: str | None, output: str) -> None:
    """Show which columns of TABLE Harper indexes, and why."""
    from bq_harper_assets.schema.version import TableVersion

    with asking(table, profile) as asked:
        newest = asked.history[-1:]
        plan = asked.planned(TableVersion.parse(newest[0].body) if newest else None)
    contract = asked.contract
    with asked.harper() as harper:
        described = harper.describe_table(contract.target_table)
    there = {each.name: each.indexed for each in described.attributes} if described else {}
    sources = {column.name: column.source for column in plan.version.columns}
    if output == "json":
        told = [
            {
                "column": sources[each.column],
                "attribute": each.column,
                "indexed": each.indexed,
                "reason": each.reason,
                "in_harper": there.get(each.column),
            }
            for each in plan.indexes
        ]
        tell(contract.id, target=contract.target_table, indexes=told)
        return
    words = {True: "yes", False: "no", None: "-"}
    rows = [
        (sources[d.column], d.column, words[d.indexed], words[there.get(d.column)], d.reason)
        for d in plan.indexes
    ]
    click.echo("\n".join(aligned(("column", "attribute", "index", "in Harper", "reason"), rows)))
    click.echo("to index a column, or not to: schemaOverrides: {<column>: {indexed: true}}")


@schema.command()
@click.argument("table")
@PROFILE
@OUTPUT
def types(table: str, profile: str | None, output: str) -> None:
    """Show how each column and field of TABLE is stored in Harper."""
    from bq_harper_assets.cli.schema.schema_text import storage_note, title, with_fields

    with asking(table, profile) as asked:
        recorded, version = asked.version(None)
    contract = asked.contract
    columns = list(with_fields(version.live))
    if output == "json":
        told = [
            {
                "column": path,
                "bigquery": column.type_text,
                "kind": column.kind.value,
                "mode": column.mode,
                "harper": column.stored.type.value,
                "values": column.form.value,
                "note": storage_note(column),
            }
            for path, column in columns
        ]
        tell(contract.id, version=recorded.version if recorded else None, types=told)
        return
    click.echo(title(contract, recorded))
    rows = [
        (
            path,
            column.type_text,
            "" if "." in path else column.stored.type.value,
            f"array of {column.form}" if column.repeated else column.form.value,
            storage_note(column),
        )
        for path, column in columns
    ]
    click.echo("\n".join(aligned(("column", "BigQuery", "Harper", "values are", ""), rows)))

"""`bqh schema` shows the versions of a table's columns, what differs, and what is to be done."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from bq_harper_assets.cli.options import OUTPUT, PROFILE
from bq_harper_assets.cli.output.aligned_columns import aligned
from bq_harper_assets.cli.runs.asked_table import asked_table
from bq_harper_assets.cli.schema.cleanup import cleanup
from bq_harper_assets.cli.schema.decisions import accept, apply, diff, rollback
from bq_harper_assets.cli.schema.version_text import (
    change_lines,
    diff_lists,
    origin,
    recorded_json,
    tell,
)
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn

if TYPE_CHECKING:
    from bq_harper_assets.ledger.records import SchemaVersion

_COLUMNS = ("column", "type", "mode", "attribute", "Harper", "index", "state", "description")
_VERSION = click.option(
    "--version", "number", type=click.IntRange(1), help="The schema version.  [default: the newest]"
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

    For a table that was never synced it shows those that its first sync would record.
    """
    with asked_table(table, profile) as asked:
        recorded, version = asked.version(number)
    contract = asked.contract
    if output == "json":
        tell(contract.id, target=contract.target.table, **recorded_json(recorded), **version.body())
        return
    click.echo(_title(contract, recorded))
    for line in _layout_lines(version):
        click.echo(line)
    click.echo("\n".join(aligned(_COLUMNS, [*column_rows(version)])))
    if version.waiting:
        click.echo(f"what waits is synced after: bqh schema apply {contract.id}")


@schema.command()
@click.argument("table")
@PROFILE
@OUTPUT
def history(table: str, profile: str | None, output: str) -> None:
    """List all schema versions of TABLE: when, by whom, why, and what changed."""
    from bq_harper_assets.sync.schema_sync.version_history import version_steps

    with asked_table(table, profile) as asked:
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
    with asked_table(table, profile) as asked:
        newest = asked.history[-1:]
        plan = asked.planned(TableVersion.parse(newest[0].body) if newest else None)
    contract = asked.contract
    with asked.harper() as harper:
        described = harper.describe_table(contract.target.table)
    there = {each.name: each.indexed for each in described.attributes} if described else {}
    sources = {column.name: column.source.name for column in plan.version.columns}
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
        tell(contract.id, target=contract.target.table, indexes=told)
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
    with asked_table(table, profile) as asked:
        recorded, version = asked.version(None)
    # Here and not above: it imports pyarrow.
    from bq_harper_assets.stores.harper.types import storage_note

    contract = asked.contract
    columns = list(_with_fields(version.live))
    if output == "json":
        told = [
            {
                "column": path,
                "bigquery": column.type_text,
                "kind": column.kind.value,
                "mode": column.mode,
                "harper": column.target.type,
                "values": column.target.form,
                "note": storage_note(column),
            }
            for path, column in columns
        ]
        tell(contract.id, version=recorded.version if recorded else None, types=told)
        return
    click.echo(_title(contract, recorded))
    rows = [
        (
            path,
            column.type_text,
            "" if "." in path else column.target.type,
            f"array of {column.target.form}" if column.repeated else column.target.form,
            storage_note(column),
        )
        for path, column in columns
    ]
    click.echo("\n".join(aligned(("column", "BigQuery", "Harper", "values are", ""), rows)))


def _title(contract: TableContract, recorded: "SchemaVersion | None") -> str:
    """Writes the line that says which version a text is about."""
    if recorded is None:
        return f"{contract.id} was never synced; its first sync records this as schema version 1"
    return f"{contract.id}, schema version {recorded.version}, recorded {origin(recorded)}"


def _layout_lines(version: TableVersion) -> Iterator[str]:
    """Writes the lines about the table as a whole."""
    key = ", ".join(version.key) or "none: the whole row identifies itself"
    yield f"key: {key}; Harper's primary key: {version.primary_key}"
    layout = version.layout
    if layout.partition_field:
        yield f"partitioned by {layout.partition_field}"
    if layout.clustering:
        yield f"clustered by {', '.join(layout.clustering)}"
    if version.not_selected:
        names = ", ".join(version.not_selected)
        yield f"not synced, as the contract's columns do not name them: {names}"


def _with_fields(
    columns: Sequence[VersionColumn], above: str = ""
) -> Iterator[tuple[str, VersionColumn]]:
    """Lists columns and their fields, each with its path in the source: trip, trip.from."""
    for column in columns:
        path = f"{above}{column.source.name}"
        yield path, column
        yield from _with_fields(column.fields, f"{path}.")


def column_rows(version: TableVersion) -> Iterator[tuple[str, ...]]:
    """Yields a row for each column and field, with fields that wait inside a synced column too."""
    for column in version.columns:
        known = {path for path, _ in _with_fields((column,))}
        yield _column_row(column.source.name, column, "new fields wait" if column.offered else "")
        for path, field in _with_fields(column.in_source.fields, f"{column.source.name}."):
            waits = column.is_live and path not in known
            yield _column_row(path, field, State.WAITING.value if waits else "")


def _column_row(path: str, column: VersionColumn, live: str) -> tuple[str, ...]:
    """Writes a column under the header _COLUMNS; `live` is what is shown if it is live."""
    is_field = "." in path
    return (
        path,
        column.type_text,
        column.mode,
        "" if is_field else column.name,
        "" if is_field else column.target.type,
        "yes" if column.indexed else "",
        live if column.is_live else column.state.value,
        column.description,
    )

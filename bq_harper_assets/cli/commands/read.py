"""`bqh read` shows rows of a table as Harper holds them, under any version of its schema."""

import json
from datetime import UTC, datetime
from typing import Any

import click

from bq_harper_assets.cli.options import OUTPUT, PROFILE, moments
from bq_harper_assets.cli.output.aligned_columns import aligned
from bq_harper_assets.cli.runs.asked_table import asked_table

_WIDEST = 40  # characters of a value in a table


@click.command()
@click.argument("table")
@click.option(
    "--schema-version",
    "number",
    type=click.IntRange(1),
    help="The version whose names and types the rows get.  [default: the newest]",
)
@moments("The first instant", "The end, itself left out", first_default="any", last_default="any")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Most rows.")
@PROFILE
@OUTPUT
def read(
    table: str,
    number: int | None,
    from_: datetime | None,
    to: datetime | None,
    limit: int,
    profile: str | None,
    output: str,
) -> None:
    """Read rows of TABLE from Harper, in the order of time, as a schema version has them.

    A row written under another version gets the names, types and nulls of the version asked for: a
    column that it was written without is null, and so is a value that its type cannot hold.
    """
    # Here and not above: a command that only asks for help does not wait for them.
    from bq_harper_assets.schema.version import TableVersion
    from bq_harper_assets.stores.harper.reading.rows_as_version import read_rows_as
    from bq_harper_assets.sync.schema_sync.version_history import version_named

    start, end = (moment.replace(tzinfo=UTC) if moment else None for moment in (from_, to))
    with asked_table(table, profile) as asked, asked.harper() as harper:
        _, recorded = version_named(asked.ledger, asked.contract, number)
        found = read_rows_as(
            harper, asked.ledger, asked.contract, recorded.version, start, end, limit
        )
        rows = [json_value(row) for row in found]
    if output == "json":
        told = {"table": asked.contract.id, "schema_version": recorded.version, "rows": rows}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    names = [column.source.name for column in TableVersion.parse(recorded.body).live]
    shown = [tuple(_short(row[name]) for name in names) for row in rows]
    click.echo("\n".join(aligned(names, shown)))
    more = "; there may be more: --limit" if len(rows) == limit else ""
    name, version = asked.contract.id, recorded.version
    click.echo(f"{len(rows):,} rows of {name} as schema version {version}{more}")


def json_value(value: Any) -> Any:
    """Writes a value as JSON has it: what is none of its types is a text, as in Harper."""
    from bq_harper_assets.stores.harper.encoding.text_forms import stored_text

    match value:
        case dict():
            return {name: json_value(each) for name, each in value.items()}
        case list():
            return [json_value(each) for each in value]
        case None | bool() | int() | float():
            return value
    return stored_text(value)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."

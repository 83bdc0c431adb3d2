"""`bqh schema cleanup` shows what Harper still keeps of columns that are no longer synced."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.options import OUTPUT, PROFILE
from bq_harper_assets.cli.output.aligned_columns import aligned
from bq_harper_assets.cli.runs.asked_table import asked_table
from bq_harper_assets.cli.schema.version_text import when
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.version import State, TableVersion, VersionColumn

if TYPE_CHECKING:
    from bq_harper_assets.ledger.records import SchemaVersion


@dataclass(frozen=True)
class Retired:
    """No sync writes this attribute any more."""

    column: "VersionColumn"
    since: "SchemaVersion"
    successor: str | None  # the attribute that has the values of the same column now


@click.command()
@click.argument("table")
@PROFILE
@OUTPUT
def cleanup(table: str, profile: str | None, output: str) -> None:
    """List attributes of TABLE in Harper that are no longer synced; nothing is dropped.

    It says what to check, and what to send to Harper by hand once nobody needs one of them.
    """
    with asked_table(table, profile) as asked:
        found = retired(asked.history)
    contract = asked.contract
    if output == "json":
        told = [_as_json(contract, each) for each in found]
        click.echo(json.dumps({"table": contract.id, "retired": told}, indent=2))
    elif not found:
        click.echo(f"{contract.id}: every attribute that was written is still synced")
    else:
        _tell(contract, found)


def retired(history: "Sequence[SchemaVersion]") -> list[Retired]:
    """Lists the retired attributes of the newest version in the order of their retirement."""

    versions = [(each, TableVersion.parse(each.body)) for each in history]
    found = []
    for column in versions[-1][1].columns if versions else ():
        if column.state is not State.RETIRED:
            continue
        since = versions[-1][0]
        for recorded, version in reversed(versions):
            known = version.find(column.name)
            if known is None or known.state is not State.RETIRED:
                break
            since = recorded
        heirs = (c.name for c in versions[-1][1].live if c.source.name == column.source.name)
        found.append(Retired(column, since, next(heirs, None)))
    return sorted(found, key=lambda each: (each.since.version, each.column.name))


def _tell(contract: TableContract, found: Sequence[Retired]) -> None:

    name, first = contract.id, found[0]
    click.echo(f"Harper keeps values of {name} that no sync writes any more:")
    rows = [
        (
            each.column.name,
            f"{each.column.source.name} {each.column.type_text}",
            each.column.target.type,
            f"version {each.since.version}, {when(each.since.recorded_at)}",
            each.successor or "-",
        )
        for each in found
    ]
    click.echo("\n".join(aligned(("attribute", "was", "Harper", "since", "now in"), rows)))
    earlier = max(first.since.version - 1, 1)
    click.echo(
        "They cost space and nothing else; bqh drops nothing. Before you drop one by hand, check\n"
        f"  - that nobody reads it: bqh read {name} --schema-version {earlier} shows rows with it\n"
        "  - that you will not roll back to it: its values cannot be brought back\n"
        "  - its name: Harper also drops a primary key if told to, and the table is lost with it\n"
        "Then send to Harper's Operations API, for one attribute at a time:"
    )
    for each in found:
        click.echo(f"  {json.dumps(_operation(contract, each))}")


def _operation(contract: TableContract, each: Retired) -> dict[str, str]:
    from bq_harper_assets.stores.harper.client import DATABASE

    return {
        "operation": "drop_attribute",
        "database": DATABASE,
        "table": contract.target.table,
        "attribute": each.column.name,
    }


def _as_json(contract: TableContract, each: Retired) -> dict[str, Any]:
    return {
        "attribute": each.column.name,
        "column": each.column.source.name,
        "type": each.column.type_text,
        "harper": each.column.target.type,
        "since_version": each.since.version,
        "since": each.since.recorded_at.isoformat(),
        "now_in": each.successor,
        "operation": _operation(contract, each),
    }

"""What the `bqh schema` commands ask of the ledger and of BigQuery, and the words they share."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.commands.sync import contract_named
from bq_harper_assets.cli.runs.ranged_runs import open_project
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.change import Change, ChangeKind
from bq_harper_assets.schema.version import TableVersion

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.ledger.records import LogicalTable, SchemaVersion
    from bq_harper_assets.schema.table_plan import TablePlan
    from bq_harper_assets.stores.bigquery.queries import Queries
    from bq_harper_assets.stores.harper.client import HarperClient

PROFILE = click.option(
    "--profile", help="The profile of config/profiles.  [default: BQH_PROFILE, else local]"
)
OUTPUT = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
LISTS = {
    "addedColumns": (ChangeKind.ADDED, ChangeKind.RETURNED, ChangeKind.APPLIED),
    "typeChanges": (ChangeKind.RETYPED, ChangeKind.WIDENED),
    "indexChanges": (ChangeKind.INDEX,),
    "removedColumns": (ChangeKind.REMOVED, ChangeKind.SET_ASIDE),
    "renamed": (ChangeKind.RENAMED,),
    "other": (
        ChangeKind.MODE,
        ChangeKind.NOT_SELECTED,
        ChangeKind.PARTITIONING,
        ChangeKind.PRIMARY_KEY,
    ),
}
_SIGNS = {"addedColumns": "+", "removedColumns": "-"}  # all others: ~


@dataclass(frozen=True)
class Asking:
    """One table that a command asks about, with the ledger open."""

    project: Project
    contract: TableContract
    ledger: "Ledger"

    @property
    def history(self) -> "tuple[SchemaVersion, ...]":
        """All versions, oldest first; empty if the table was never synced."""
        table = self.ledger.find_table(self.contract.id)
        return self.ledger.schema_history(table) if table else ()

    @contextmanager
    def queries(self) -> "Iterator[Queries]":
        """A client of BigQuery, if the servers answer."""
        # Here and not above: google's libraries take seconds to import.
        from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
        from bq_harper_assets.stores.bigquery.queries import Queries

        require_servers(self.project, harper=False)
        queries = Queries(BigQueryCalls(self.project.bigquery), labels={"bqh": "schema"})
        with queries.client:
            yield queries

    @contextmanager
    def harper(self) -> "Iterator[HarperClient]":
        """A client of Harper, if it answers."""
        from bq_harper_assets.stores.harper.client import HarperClient

        require_servers(self.project, bigquery=False)
        with HarperClient(self.project.harper) as client:
            yield client

    def planned(self, before: TableVersion | None) -> "TablePlan":
        """What a look at BigQuery would lead to now; nothing is recorded."""
        from bq_harper_assets.schema.table_plan import plan_table
        from bq_harper_assets.sync.source.pinned import source_schema

        with self.queries() as queries:
            return plan_table(self.contract, source_schema(queries, self.contract), before)

    def recorded(self, number: int | None = None) -> "tuple[LogicalTable, SchemaVersion]":
        """That version, or the newest; NoSuchVersion if there is none."""
        # Here and not above: it imports pyarrow.
        from bq_harper_assets.sync.schema_sync.version_history import version_named

        return version_named(self.ledger, self.contract, number)

    def version(self, number: int | None) -> "tuple[SchemaVersion | None, TableVersion]":
        """The same; of a table that was never synced, what its first version would be."""
        if number is None and not self.history:
            return None, self.planned(None).version
        _, recorded = self.recorded(number)
        return recorded, TableVersion.parse(recorded.body)


@contextmanager
def asking(table: str, profile: str | None) -> Iterator[Asking]:
    """The table of that name in the project of this folder."""
    # Here and not above: a command that only asks for help does not wait for SQLAlchemy.
    from bq_harper_assets.ledger.ledger import open_ledger

    project = open_project(profile)
    contract = contract_named(project, table)
    with open_ledger(project.ledger.url) as ledger:
        yield Asking(project, contract, ledger)


def tell(table: str, **told: Any) -> None:
    """Prints JSON for programs."""
    click.echo(json.dumps({"table": table, **told}, indent=2))


def diff_lists(changes: Sequence[Change]) -> dict[str, list[dict[str, Any]]]:
    """Each change in the one list that it belongs to; all lists are there, if empty."""
    return {
        name: [change.body() for change in changes if change.kind in kinds]
        for name, kinds in LISTS.items()
    }


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Each change as a line of a diff."""
    for change in changes:
        name = next(name for name, kinds in LISTS.items() if change.kind in kinds)
        yield f"  {_SIGNS.get(name, '~')} {change}"


def origin(recorded: "SchemaVersion") -> str:
    """When, by whom and why a version was recorded."""
    by = f" by {recorded.by}" if recorded.by else ""
    cause = f": {recorded.cause}" if recorded.cause else ""
    return f"{when(recorded.recorded_at)}{by}{cause}"


def when(moment: datetime) -> str:
    return f"{moment:%F %T} UTC"


def recorded_json(recorded: "SchemaVersion | None") -> dict[str, Any]:
    """A recorded version without its columns, as JSON."""
    return {
        "version": recorded.version if recorded else None,
        "recorded_at": recorded.recorded_at.isoformat() if recorded else None,
        "by": recorded.by if recorded else None,
        "cause": recorded.cause if recorded else None,
        "source_fingerprint": recorded.source_fingerprint if recorded else None,
    }

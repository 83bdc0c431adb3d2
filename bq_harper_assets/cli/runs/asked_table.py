"""Opens the project, the table and the ledger that a command asks about."""

import difflib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.version import TableVersion

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.ledger.records import LedgerRoute, SchemaVersion
    from bq_harper_assets.schema.table_plan import TablePlan
    from bq_harper_assets.stores.bigquery.queries import Queries
    from bq_harper_assets.stores.harper.client import HarperClient


def open_project(profile: str | None) -> Project:
    """Loads the project of this folder under a profile; None is the one that BQH_PROFILE names."""
    return load_project(find_project_root(os.environ, Path.cwd()), profile=profile or None)


def contract_named(project: Project, name: str) -> TableContract:
    """Returns the contract with that id or target; a usage error offers the nearest name."""
    for contract in project.tables:
        if name.lower() in (contract.id.lower(), contract.target.table.lower()):
            return contract
    known = [contract.id for contract in project.tables]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    raise click.UsageError(f"config/tables.yaml declares no table {name!r}; {hint}")


@dataclass(frozen=True)
class AskedTable:
    """A command asks about this one table, with the ledger open."""

    project: Project
    contract: TableContract
    ledger: "Ledger"

    @property
    def history(self) -> "tuple[SchemaVersion, ...]":
        """Returns all versions, oldest first; none if the table was never synced."""
        table = self.ledger.find_route(self.contract.id)
        return self.ledger.schema_history(table) if table else ()

    @contextmanager
    def queries(self, command: str = "schema") -> "Iterator[Queries]":
        """Opens a client of BigQuery, if its server answers; bills name the command."""
        # Here and not above: google's libraries take seconds to import.
        from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
        from bq_harper_assets.stores.bigquery.queries import Queries

        require_servers(self.project, harper=False)
        queries = Queries(BigQueryCalls(self.project.bigquery), labels={"bqh": command})
        with queries.client:
            yield queries

    @contextmanager
    def harper(self) -> "Iterator[HarperClient]":
        """Opens a client of Harper, if it answers."""
        from bq_harper_assets.stores.harper.client import HarperClient

        require_servers(self.project, bigquery=False)
        with HarperClient(self.project.harper) as client:
            yield client

    def planned(self, before: TableVersion | None) -> "TablePlan":
        """Plans what a look at BigQuery would lead to now; nothing is recorded."""
        from bq_harper_assets.stores.bigquery.source import source_schema
        from bq_harper_assets.stores.harper.schema import harper_plan

        with self.queries() as queries:
            return harper_plan(self.contract, source_schema(queries, self.contract), before)

    def recorded(self, number: int | None = None) -> "tuple[LedgerRoute, SchemaVersion]":
        """Returns that version, or the newest; NoSuchVersion if there is none."""
        # Here and not above: it imports pyarrow.
        from bq_harper_assets.sync.schema_sync.version_history import version_named

        return version_named(self.ledger, self.contract, number)

    def version(self, number: int | None) -> "tuple[SchemaVersion | None, TableVersion]":
        """Returns the same; of a table never synced, what its first version would be."""
        if number is None and not self.history:
            return None, self.planned(None).version
        _, recorded = self.recorded(number)
        return recorded, TableVersion.parse(recorded.body)


@contextmanager
def asked_table(table: str, profile: str | None) -> Iterator[AskedTable]:
    """Opens the table of that name in the project of this folder."""
    # Here and not above: a command that only asks for help does not wait for SQLAlchemy.
    from bq_harper_assets.ledger.ledger import open_ledger

    project = open_project(profile)
    contract = contract_named(project, table)
    with open_ledger(project.ledger.url) as ledger:
        yield AskedTable(project, contract, ledger)

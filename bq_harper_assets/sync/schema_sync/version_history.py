"""The ledger's schema versions of a table are read one by number, or all with their changes."""

from dataclasses import dataclass

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute, SchemaVersion
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.errors import NoSuchVersion
from bq_harper_assets.sync.ledger_facts import changes_of


@dataclass(frozen=True)
class VersionStep:
    """A step is one version of a schema, with what it has changed."""

    recorded: SchemaVersion
    version: TableVersion
    changes: tuple[Change, ...]  # against the version before


def version_steps(ledger: Ledger, contract: TableContract) -> tuple[VersionStep, ...]:
    """Returns all versions, oldest first; there is none before the first sync."""
    table = ledger.find_route(contract.id)
    steps: list[VersionStep] = []
    for recorded in ledger.schema_history(table) if table else ():
        before = steps[-1].recorded if steps else None
        version = TableVersion.parse(recorded.body)
        steps.append(VersionStep(recorded, version, changes_of(recorded, before, contract)))
    return tuple(steps)


def version_named(
    ledger: Ledger, contract: TableContract, number: int | None = None
) -> tuple[LedgerRoute, SchemaVersion]:
    """Returns the version of that number, or the newest; raises NoSuchVersion if there is none."""
    table = ledger.find_route(contract.id)
    newest = ledger.newest_schema(table) if table else None
    if table is None or newest is None:
        raise NoSuchVersion(
            f"table {contract.id} has no schema version yet: its first sync records one."
            f" Nothing was changed; type: bqh sync {contract.id}"
        )
    found = newest if number is None else ledger.schema_version(table, number)
    if found is None:
        raise NoSuchVersion(
            f"table {contract.id} has no schema version {number}; the newest is {newest.version}."
            f" Nothing was changed. See all of them with: bqh schema history {contract.id}"
        )
    return table, found

"""The versions of a table's schema one by one, each with what it has changed."""

from dataclasses import dataclass

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import SchemaVersion
from bq_harper_assets.schema.change import Change
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import changes_of


@dataclass(frozen=True)
class VersionStep:
    """A recorded schema version, with what it changed."""

    recorded: SchemaVersion
    version: TableVersion
    changes: tuple[Change, ...]  # against the version before


def version_steps(ledger: Ledger, contract: TableContract) -> tuple[VersionStep, ...]:
    """Oldest first; none before the first sync."""
    table = ledger.find_table(contract.id)
    steps: list[VersionStep] = []
    for recorded in ledger.schema_history(table) if table else ():
        before = steps[-1].recorded if steps else None
        version = TableVersion.parse(recorded.body)
        steps.append(VersionStep(recorded, version, changes_of(recorded, before, contract)))
    return tuple(steps)

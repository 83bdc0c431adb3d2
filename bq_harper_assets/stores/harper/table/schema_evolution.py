"""The newest recorded schema takes effect in Harper: what it needs is made, nothing is dropped."""

from dataclasses import dataclass, replace

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.schema.logical import TableSchema
from bq_harper_assets.schema.version import State, TableVersion
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.lease.ledger_agreement import require_in_step
from bq_harper_assets.stores.harper.mirror.schemas import mirror_schemas
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.table.ensure_table import ensure_table
from bq_harper_assets.sync.errors import NeverSynced
from bq_harper_assets.sync.protocols import Ensured
from bq_harper_assets.sync.schema_sync.version_history import VersionStep, version_steps

_KIND, _APPLIED = "schema", "applied"
_NOTES = 50  # the newest audit entries, which are searched for a version


@dataclass(frozen=True)
class Evolved:
    """This is what was done in Harper for the newest version."""

    steps: tuple[VersionStep, ...]  # from the first version to the newest
    ensured: Ensured
    warning: str | None  # set if Harper has no copy of the versions


def evolve_table(ledger: Ledger, harper: HarperClient, contract: TableContract) -> Evolved:
    """Makes what the newest version needs in Harper, and mirrors the versions there."""
    table = ledger.find_route(contract.id)
    steps = version_steps(ledger, contract)
    if table is None or not steps:
        raise NeverSynced(contract.id)
    number, version = steps[-1].recorded.version, steps[-1].version
    plan = harper_plan(contract, _source_of(version), version)
    adopted = contract.target.is_adopted
    require_in_step(ledger, harper, table, adopted=adopted)
    ensured = ensure_table(harper, plan, adopted=adopted, alone=lambda: ledger.alone(table))
    if not is_applied(ledger, table, number):
        detail = {"action": ensured.action.value, "added": list(ensured.added)}
        ledger.record_audit(table, Note(_KIND, f"version {number}", _APPLIED, detail))
    return Evolved(steps, ensured, mirror_schemas(ledger, harper, contract))


def is_applied(ledger: Ledger, table: LedgerRoute, version: int) -> bool:
    """Says whether Harper is ready for rows of that version.

    A turn that planned such rows has made it ready, or evolve_table() has.
    """
    if any((lease.schema_version or 0) >= version for lease in ledger.leases(table)):
        return True
    return any(
        (entry.subject, entry.outcome) == (f"version {version}", _APPLIED)
        for entry in ledger.audit(table, _NOTES, kind=_KIND)
    )


def _source_of(version: TableVersion) -> TableSchema:
    """Returns the source's schema as of the version; later changes belong to the next version."""
    layout = version.layout
    return TableSchema(
        columns=tuple(
            replace(column.logical, name=column.source.name, source_name="")
            for column in version.columns
            if column.state is not State.RETIRED
        ),
        partition_field=layout.partition_field,
        clustering=layout.clustering,
        primary_key=layout.primary_key,
    )

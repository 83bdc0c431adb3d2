"""The next schema version follows the one of the rows; without rows, it may still choose ids."""

from dataclasses import replace

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute, SchemaVersion
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.ledger_facts import version_of
from bq_harper_assets.sync.protocols import Target


def version_of_rows(
    ledger: Ledger,
    target: Target,
    table: LedgerRoute,
    seen: SchemaVersion | None,
    owner: str,  # who has the leases: earlier owners can no longer write
) -> TableVersion | None:
    """Returns the newest version; without its `id_paths` if a keyless table has no row yet.

    Until a row is written, the columns that ids are made of may still change.
    """
    version = version_of(seen)
    if version is None or version.key or ledger.newest(table).has_commits:
        return version
    if any(lease.is_live and lease.owner != owner for lease in ledger.leases(table)):
        return version  # a lease of other slices is live, whose rows may be on their way
    return version if target.holds_a_row() else replace(version, id_paths=())

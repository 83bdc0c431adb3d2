"""The schema version that rows were written under: what no row has yet is not fixed by it."""

from dataclasses import replace

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LogicalTable, SchemaVersion
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.lease.ledger_agreement import holds_a_row
from bq_harper_assets.sync.ledger_facts import version_of


def version_of_rows(
    ledger: Ledger,
    harper: HarperClient,
    table: LogicalTable,
    seen: SchemaVersion | None,
    owner: str,  # whose leases are held: nobody who held them before can still write
) -> TableVersion | None:
    """The newest version; of a keyless table without any row, with ids that are still free."""
    version = version_of(seen)
    if version is None or version.key or ledger.newest(table).has_commits:
        return version
    if any(lease.is_live and lease.owner != owner for lease in ledger.leases(table)):
        return version  # of other slices, whose rows may be on their way
    found = harper.describe_table(table.facts.target)
    has_rows = found is not None and holds_a_row(harper, found)
    return version if has_rows else replace(version, id_paths=())

"""A version of a table's schema, as somebody asks for it by its number."""

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LogicalTable, SchemaVersion
from bq_harper_assets.sync.errors import NoSuchVersion


def version_named(
    ledger: Ledger, contract: TableContract, number: int | None = None
) -> tuple[LogicalTable, SchemaVersion]:
    """That version, or the newest; NoSuchVersion if there is none."""
    table = ledger.find_table(contract.id)
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

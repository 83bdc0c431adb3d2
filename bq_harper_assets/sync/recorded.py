"""What the ledger keeps of a contract, a schema and a cell."""

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import CellKey, SchemaVersion, TableFacts
from bq_harper_assets.schema.version import TableVersion
from bq_harper_assets.sync.cells import Cell


def version_of(recorded: SchemaVersion | None) -> TableVersion | None:
    """A version as the ledger has it, with columns that can be worked with."""
    return None if recorded is None else TableVersion.parse(recorded.body)


def table_facts(contract: TableContract, bigquery: BigQueryConnection) -> TableFacts:
    """What must not change once the table is synced."""
    source = f"{bigquery.project}.{contract.dataset}.{contract.table}"
    return TableFacts(
        name=contract.id,
        source="query" if contract.custom_query else source,
        target=contract.target_table,
        timestamp_column=contract.timestamp_column,
        key=contract.key or (),
        window=contract.window,
        slices=contract.slices,
    )


def cell_key(cell: Cell) -> CellKey:
    """The ledger knows cells without knowing how they are cut."""
    return CellKey(cell.window.start, cell.window.end, cell.slice)

"""What the ledger keeps of a contract, a schema and a cell."""

from typing import Any

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import CellKey, TableFacts
from bq_harper_assets.schema.logical import Column
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.sync.cells import Cell


def schema_body(plan: TablePlan) -> dict[str, Any]:
    """What a schema version records."""
    return {
        "columns": [_column(column) for column in plan.selection.columns],
        "key": list(plan.selection.key),
        "primary_key": plan.primary_key,
        "indexed": list(plan.indexed),
    }


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind.value,
        "repeated": column.repeated,
        "required": column.required,
        "fields": [_column(each) for each in column.fields],
    }


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

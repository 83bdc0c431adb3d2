"""Source and target of a sync side by side: nothing lost, nothing invented, nothing bent."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.questions.status import QuarantinedRow
from bq_harper_assets.schema.table_plan import TablePlan
from bq_harper_assets.stores.bigquery.schema import read_schema
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.reading.from_harper import from_harper
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.types import harper_columns
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync

METADATA = {"_syncedAt", "_batch", "_hash"}


def land(
    sync: Sync, source: TableRef, start: datetime, end: datetime, **declared: Any
) -> tuple[TableContract, TurnReport]:
    """One run of every cell from start to end, into a table of its own."""
    contract = sync.contract(source, **declared)
    return contract, sync.run(contract, sync.cells(contract, start, end))


def plan_of(tables: SmallTables, contract: TableContract) -> TablePlan:
    """What the contract and its source table decide about the Harper table."""
    queries = tables.queries
    schema = read_schema(
        queries.client,
        queries.connection.project,
        contract.source.dataset or "",
        contract.source.table or "",
        calls=queries.calls,
    )
    return harper_plan(contract, schema)


def source_rows(tables: SmallTables, source: TableRef, where: str = "TRUE") -> list[dict[str, Any]]:
    """As BigQuery itself gives them in answer to a query, by the column n."""
    answer = tables.queries.run(f"SELECT * FROM {source.sql} WHERE {where}", doing="comparing")
    return sorted((dict(row) for row in answer.rows), key=lambda row: row["n"])


def stored_rows(sync: Sync, tables: SmallTables, contract: TableContract) -> list[dict[str, Any]]:
    """As Harper gives them, turned back into BigQuery's types, by the column n."""
    columns = harper_columns(plan_of(tables, contract).columns)
    rows = [
        {column.name: from_harper(row.get(column.name), column) for column in columns}
        for row in sync.rows(contract)
    ]
    return sorted(rows, key=lambda row: row["n"])


def assert_counts_agree(sync: Sync, contract: TableContract, report: TurnReport, rows: int) -> None:
    """The run, the ledger and Harper all speak of so many rows; one run made all of the cells."""
    table = sync.stores.ledger.find_route(contract.id)
    assert table is not None
    start = min(cell.cell.window.start for cell in report.cells)
    end = max(cell.cell.window.end for cell in report.cells)
    commits = [cell.commit for cell in sync.stores.ledger.cells(table, start, end)]
    assert report.rows == rows
    assert sum(commit.rows for commit in commits if commit) == rows
    assert len(sync.rows(contract)) == rows


def quarantined(sync: Sync, contract: TableContract) -> tuple[QuarantinedRow, ...]:
    """What the ledger keeps of rows that could not be stored."""
    table = sync.stores.ledger.find_route(contract.id)
    assert table is not None
    return sync.stores.ledger.quarantined(table)


def without_metadata(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ids and source columns, in the order of ids."""
    return [{k: v for k, v in row.items() if k not in METADATA} for row in rows]

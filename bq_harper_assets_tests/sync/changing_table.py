"""A source that changes after it was synced, and what Harper holds of it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc

if TYPE_CHECKING:
    from bq_harper_assets_tests.sync.conftest import Sync

DAY = utc(2026, 1, 5)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
ONE, TWO, THREE = (utc(2026, 1, 5, hour) for hour in (1, 2, 3))
ROWS = (
    "SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n SECOND) AS ts,"
    " CONCAT('name ', CAST(n AS STRING)) AS name"
    " FROM UNNEST(GENERATE_ARRAY(0, {last}, {step})) AS n"
)
KEYED: dict[str, Any] = {"key": ("number",)}
OF_QUERY, LATEST = KEYED | {"custom_query": "all"}, KEYED | {"latest": True}


@dataclass(kw_only=True)
class Table:
    """A source that changes and its contract."""

    sync: "Sync"
    tables: SmallTables
    source: TableRef
    contract: TableContract
    reports: list[TurnReport] = field(default_factory=list)

    def change(self, statement: str) -> None:
        """With T for the table's name."""
        self.tables.run(statement.replace(" T ", f" {self.source.sql} "))

    def run(self, start: datetime = DAY, end: datetime = THREE, **settings: Any) -> TurnReport:
        """All cells of these windows."""
        cells = self.sync.cells(self.contract, start, end)
        return self.sync.run(self.contract, cells, **settings)

    @property
    def held(self) -> dict[int, tuple[str, str]]:
        """Time and name by number; every number once."""
        rows = self.sync.rows(self.contract)
        found = {row["number"]: (row["ts"], row["name"]) for row in rows}
        assert len(found) == len(rows)
        return found

    @property
    def wanted(self) -> dict[int, tuple[str, str]]:
        """The same of the source."""
        rows = self.tables.queries.run(f"SELECT * FROM {self.source.sql}", doing="reading").rows
        return {row["number"]: (row["ts"] and time_text(row["ts"]), row["name"]) for row in rows}

    def states(self) -> dict[str, CellState]:
        """By cell."""
        return {str(record.cell): record.state for record in self._records()}

    def dirty(self) -> set[str]:
        """Cells with a mark."""
        return {str(record.cell) for record in self._records() if record.marks}

    def _records(self) -> Any:
        table = self.sync.stores.ledger.find_route(self.contract.id)
        assert table is not None
        return self.sync.stores.ledger.cells(table, DAY, utc(2027, 1, 1))


def time_text(ts: datetime) -> str:
    """As Harper has it."""
    return ts.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def made(
    sync: "Sync", tables: SmallTables, last: int = 10_799, step: int = 60, **declared: Any
) -> Table:
    """Synced once: three hours of rows."""
    source = tables.make_from(ROWS.format(last=last, step=step))
    if declared.get("custom_query") == "all":
        declared |= {"custom_query": f"SELECT * FROM {source.sql}", "dataset": None, "table": None}
    table = Table(
        sync=sync, tables=tables, source=source, contract=sync.contract(source, **declared)
    )
    table.reports.append(table.run())
    return table


def total(report: TurnReport, count: str) -> int:
    return sum(getattr(cell.result, count) for cell in report.cells)

"""A table under validation: its contract, where it lives, and what the ledger knows of it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LogicalTable
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.window import floor_to_window


@dataclass(frozen=True)
class Subject:
    """What a check looks at; it changes nothing in any of it."""

    contract: TableContract
    queries: Queries
    harper: HarperClient
    ledger: Ledger

    def table(self) -> LogicalTable | None:
        """None if it was never synced."""
        return self.ledger.find_table(self.contract.id)

    def start(self) -> datetime | None:
        """Where its first window begins; None while that was never decided."""
        start = self.contract.sync.start_timestamp or self.ledger.start_of(self.contract.id)
        return floor_to_window(start, self.contract.window) if start else None

    def time_column(self) -> Column:
        """As the newest schema version has it."""
        name = self.contract.timestamp_column
        table = self.table()
        version = self.ledger.newest_schema(table) if table else None
        for column in version.body["columns"] if version else ():
            if column["name"] == name:
                return Column(name=name, kind=Kind(column["kind"]))
        return Column(name=name, kind=Kind.TIMESTAMP)


def instant_of(kind: Kind, text: str) -> datetime:
    """The instant of a stored text; ValueError if it is none."""
    if kind is Kind.DATE:
        day = date.fromisoformat(text)
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

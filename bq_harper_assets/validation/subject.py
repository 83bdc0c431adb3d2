"""A subject is a table under validation: its contract, its stores, and the ledger."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.client import HarperClient


@dataclass(frozen=True)
class Subject:
    """A subject is the table that a check reads; the check changes nothing in it."""

    contract: TableContract
    queries: Queries
    harper: HarperClient
    ledger: Ledger

    def table(self) -> LedgerRoute | None:
        """Finds the table in the ledger; None if it was never synced."""
        return self.ledger.find_route(self.contract.id)

    def start(self) -> datetime | None:
        """Says where the table's first window begins; None if that was never decided."""
        start = self.contract.sync.start_timestamp or self.ledger.start_of(self.contract.id)
        return floor_to_window(start, self.contract.window) if start else None

    def time_column(self) -> Column:
        """Gives the timestamp column as the newest schema version has it."""
        name = self.contract.timestamp_column
        table = self.table()
        version = self.ledger.newest_schema(table) if table else None
        for column in version.body["columns"] if version else ():
            if column["name"] == name:
                return Column(name=name, kind=Kind(column["kind"]))
        return Column(name=name, kind=Kind.TIMESTAMP)


def instant_of(kind: Kind, text: str) -> datetime:
    """Reads the instant of a stored text; raises ValueError if the text is no time."""
    if kind is Kind.DATE:
        day = date.fromisoformat(text)
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def stored_instant(kind: Kind, stored: object) -> datetime | None:
    """Reads the instant of what Harper has as a time; None if that is no time."""
    try:
        return instant_of(kind, stored) if isinstance(stored, str) else None
    except ValueError:
        return None

"""Small tables in the emulator, each under a name of its own; its every write copies the table."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.table_ref import TableRef

DATASET = "small_tables"


@dataclass(frozen=True)
class SmallTables:
    """Makes tables and changes them."""

    queries: Queries

    @classmethod
    def at(cls, connection: BigQueryConnection) -> "SmallTables":
        """Few retries: what the emulator cannot do fails soon."""
        quick = connection.model_copy(update={"max_retries": 1, "initial_retry_delay_ms": 10})
        tables = cls(Queries(BigQueryCalls(quick)))
        tables.queries.client.create_dataset(DATASET, exists_ok=True)
        return tables

    def make(self, columns: str) -> TableRef:
        """An empty table, its columns as in CREATE TABLE."""
        table = self.new_name()
        self.run(f"CREATE TABLE {table.sql} ({columns})")
        return table

    def make_from(self, select: str) -> TableRef:
        """A table of the query's rows."""
        table = self.new_name()
        self.run(f"CREATE TABLE {table.sql} AS {select}")
        return table

    def new_name(self) -> TableRef:
        """A name that no table has."""
        return TableRef(self.queries.connection.project, DATASET, f"t_{uuid.uuid4().hex[:12]}")

    def run(self, sql: str) -> None:
        """Any statement."""
        self.queries.run(sql, doing="preparing a test")


def utc(*parts: int) -> datetime:
    """A time in UTC."""
    year, month, day, *rest = parts
    hour, minute, second, microsecond = (*rest, 0, 0, 0, 0)[:4]
    return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=UTC)

"""What a table of SQLite stores: it has other types than Harper, and takes other names."""

from collections.abc import Collection, Sequence

from bq_harper_assets.contract.table import ColumnOverride, TableContract
from bq_harper_assets.schema.logical import Column, Kind, Spelling, TableSchema
from bq_harper_assets.schema.table_plan import TablePlan, plan_table
from bq_harper_assets.schema.version import TableVersion

TYPES = {Kind.INT64: "INTEGER", Kind.FLOAT64: "REAL", Kind.BOOL: "INTEGER"}


class SqlTypes:
    """It stores all that is no number as text."""

    own_names: Collection[str] = ("micros", "hash", "batch", "body")
    longest_indexed = 10_000

    def spelling(self, column: Column, path: str) -> Spelling:
        return Spelling(column.name, "TEXT" if column.repeated else TYPES.get(column.kind, "TEXT"))

    def impossible_override(self, column: Column, override: ColumnOverride) -> str | None:
        return None if override.type is None else "has the type that SQLite gives it"

    def refusal_of_column(self, name: str) -> str | None:
        return f"{name} is the table's own" if name in self.own_names else None

    def refusal_of_field(self, name: str) -> str | None:
        return None

    def is_id(self, column: Column) -> bool:
        return True

    def is_stored_as_id(self, column: Column) -> bool:
        return True

    def unindexable(self, column: Column) -> str | None:
        return None

    def warnings(self, columns: Sequence[Column]) -> Sequence[str]:
        return ()


def sql_plan(
    contract: TableContract, schema: TableSchema, before: TableVersion | None = None
) -> TablePlan:
    """Plans the version that follows `before`."""
    return plan_table(contract, schema, SqlTypes(), before)

"""A source whose columns change, with rows in closed, open and not yet synced windows of a day."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud.bigquery import SchemaField

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper
from bq_harper_assets.stores.bigquery.queries import Answer, Queries
from bq_harper_assets.stores.bigquery.source import BigQuerySource
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.revisit.changed_windows import look
from bq_harper_assets.sync.schema_sync.drift import Drift, look_for_drift
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.spot.spot_check import check_spot
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import ProofStatus, SpotStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync

DAY = timedelta(days=1)
OLD, OLDER, NEXT, OPEN = -2, -3, -1, 0  # days from today: two synced, one not, and today
PER_DAY = 3


class NotedQueries(Queries):
    """Keeps the text of each query."""

    said: list[str]

    def run(self, sql: str, *args: Any, **settings: Any) -> Answer:
        """As ever."""
        self.said.append(sql)
        return super().run(sql, *args, **settings)


@dataclass(frozen=True, kw_only=True)
class Evolving:
    """A source and its contract; `T` in statements is the table."""

    sync: Sync
    tables: SmallTables
    source: TableRef
    contract: TableContract
    today: datetime

    @classmethod
    def made(cls, sync: Sync, tables: SmallTables, columns: str, **declared: Any) -> "Evolving":
        """Synced but for yesterday's rows."""
        source, today = source_of_days(tables, columns)
        fixed = {"window": "1d", "slices": 1, "safety_lag": "0s"} | declared
        made = cls(
            sync=sync,
            tables=tables,
            source=source,
            contract=sync.contract(source, **fixed),
            today=today,
        )
        made.run(OLDER, OLD, OPEN)
        return made

    def declared(self, **changes: Any) -> "Evolving":
        """Under a contract that says something else too."""
        fields = self.contract.model_dump() | changes
        return replace(self, contract=TableContract.model_validate(fields))

    def change(self, *statements: str) -> None:
        """Of the data."""
        for statement in statements:
            self.tables.run(statement.replace(" T ", f" {self.source.sql} "))

    def add(self, **columns: str) -> None:
        """ALTER changes what queries see in the emulator, and not what it says of the table."""
        for name, kind in columns.items():
            self.change(f"ALTER TABLE T ADD COLUMN {name} {kind}")
        self.describe(*self._fields(), *(_field(*each) for each in columns.items()))

    def drop(self, name: str) -> None:
        """A column is gone."""
        self.change(f"ALTER TABLE T DROP COLUMN {name}")
        self.describe(*(field for field in self._fields() if field.name != name))

    def rename(self, old: str, new: str) -> None:
        """In its place."""
        self.change(f"ALTER TABLE T RENAME COLUMN {old} TO {new}")
        fields = (field.to_api_repr() for field in self._fields())
        renamed = ({**f, "name": new} if f["name"] == old else f for f in fields)
        self.describe(*map(SchemaField.from_api_repr, renamed))

    def remake(self, select: str) -> None:
        """The table out of itself, so that columns have other types and their places."""
        self.change(f"CREATE OR REPLACE TABLE T AS SELECT {select} FROM T ")

    def describe(self, *fields: SchemaField, **more: Any) -> None:
        """What the table is said to be."""
        described = self.tables.queries.client.get_table(str(self.source))
        names = [*more]
        if fields:
            described.schema = list(fields)
            names.append("schema")
        for name, value in more.items():
            setattr(described, name, value)
        self.tables.queries.client.update_table(described, names)

    def mode(self, name: str, mode: str, kind: str | None = None) -> None:
        """Said of a column."""
        fields = [field.to_api_repr() for field in self._fields()]
        change = {"mode": mode} | ({"type": kind} if kind else {})
        changed = [f | change if f["name"] == name else f for f in fields]
        self.describe(*map(SchemaField.from_api_repr, changed))

    def _fields(self) -> list[SchemaField]:
        return list(self.tables.queries.client.get_table(str(self.source)).schema)

    def drift(self) -> Drift:
        """A look at the columns."""
        ledger, source = self.sync.stores.ledger, BigQuerySource(self.tables.queries, harper_plan)
        return look_for_drift(ledger, source, self.contract, "a test")

    def run(self, *days: int, **settings: Any) -> TurnReport:
        """All cells of these days."""
        return self.sync.run(self.contract, self.cells(*days), **settings)

    def cells(self, *days: int) -> list[Cell]:
        """Of these days."""
        starts = [self.today + day * DAY for day in days]
        return [cell for at in starts for cell in self.sync.cells(self.contract, at, at + DAY)]

    def look(self, queries: Queries | None = None) -> set[int]:
        """The days before today that are not what was synced."""
        ranges = [(self.today + OLDER * DAY, self.today)]
        ledger = self.sync.stores.ledger
        source = BigQuerySource(queries or self.tables.queries, harper_plan)
        found = look(ledger, source, self.contract, ranges)
        return {(start - self.today) // DAY for start in found.changed}

    def noted(self) -> NotedQueries:
        """Queries whose texts can be read."""
        queries = NotedQueries(self.tables.queries.calls)
        queries.said = []
        return queries

    def proofs(self, *days: int) -> dict[int, CellProof]:
        """By day."""
        prover = Prover(
            BigQueryToHarper(self.sync.stores, self.contract), self.sync.spark, self.sync.retry
        )
        found = prover.prove(self.cells(*days))
        return {(proof.cell.window.start - self.today) // DAY: proof for proof in found}

    def assert_proved(
        self, *days: int, without: Mapping[int, tuple[str, ...]] | None = None
    ) -> None:
        """Each equals its source; `without` says what is newer than a day's sync."""
        for day, proof in self.proofs(*days).items():
            wanted = ProofStatus.OPEN if day == OPEN else ProofStatus.PROVED
            assert proof.status is wanted, proof
            assert (proof.missing, proof.changed, proof.phantom) == (0, 0, 0)
            assert proof.left_out == (without or {}).get(day, ()), proof
            if proof.left_out:
                told = f"compared without {', '.join(proof.left_out)}, newer than its sync"
                assert proof.message.endswith(told)

    def assert_spot_is_healthy(self) -> None:
        """Rows of all days are what they were at their sync."""
        stores = self.sync.stores
        subject = Subject(self.contract, self.tables.queries, self.sync.harper, stores.ledger)
        verdict = check_spot(subject, self.cells(*range(OLDER, OPEN + 1)), seed=1)
        assert verdict.status is SpotStatus.HEALTHY, verdict.message

    def held(self) -> dict[int, dict[str, Any]]:
        """Harper's records, by number."""
        rows = self.sync.rows(self.contract)
        found = {row["number"]: row for row in rows}
        assert len(found) == len(rows)
        return found

    def values(self, *names: str) -> dict[int, tuple[Any, ...]]:
        """Of some attributes, by number; NO where a record has no such attribute."""
        return {
            number: tuple(row.get(name, NO) for name in names)
            for number, row in self.held().items()
        }


def source_of_days(tables: SmallTables, columns: str) -> tuple[TableRef, datetime]:
    """Three rows a day, of a number and these columns; and the last of the days, today."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = f"TIMESTAMP '{today + OLDER * DAY:%F}'"
    source = tables.make_from(
        f"SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP_ADD({first}, INTERVAL DIV(n, 10) DAY),"
        f" INTERVAL MOD(n, 10) MILLISECOND) AS ts, {columns}"
        " FROM UNNEST(GENERATE_ARRAY(0, 32)) AS n WHERE MOD(n, 10) < 3"
    )
    return source, today


class _No:
    def __repr__(self) -> str:
        return "NO"


NO = _No()


def numbers(*days: int) -> list[int]:
    """Of the rows that a day has from the first."""
    return [10 * (day - OLDER) + n for day in days for n in range(PER_DAY)]


def _field(name: str, kind: str) -> SchemaField:
    if kind.startswith("ARRAY<"):
        return SchemaField(name, kind.removeprefix("ARRAY<").removesuffix(">"), mode="REPEATED")
    return SchemaField(name, kind)


def fingerprinted(queries: NotedQueries) -> list[str]:
    """The queries that compare windows."""
    return [sql for sql in queries.said if "BIT_XOR" in sql]

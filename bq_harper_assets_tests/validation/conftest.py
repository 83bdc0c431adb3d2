"""Tables under validation: synced for real, or put into both stores and the ledger by hand."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    Batch,
    CellKey,
    CellResult,
    Leases,
    LedgerRoute,
    Mode,
    Wanted,
)
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.source import source_schema
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.answers import Attribute
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.ledger_facts import table_facts, version_of
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import ledger, spark, sync, tables
from bq_harper_assets_tests.sync.test_shapes_values import edges

__all__ = ["edges", "ledger", "spark", "sync", "tables"]
MINUTE = timedelta(minutes=1)
SLICES = 2


@dataclass(frozen=True)
class Bench:
    """Both stores and a ledger, without Spark between them."""

    tables: SmallTables
    harper: HarperClient
    ledger: Ledger

    def contract(self, source: TableRef, start: datetime, **declared: Any) -> TableContract:
        """Of five-minute windows and two slices."""
        name = f"V{uuid.uuid4().hex[:12]}"
        known = {
            "id": name.lower(),
            "dataset": source.dataset,
            "table": source.table,
            "timestampColumn": "ts",
            "targetTable": name,
            "window": "5m",
            "slices": SLICES,
            "sync": {"startTimestamp": f"{start:%FT%TZ}"},
        }
        return TableContract.model_validate(known | declared)

    def subject(self, contract: TableContract, harper: HarperClient | None = None) -> Subject:
        """What a check is given."""
        return Subject(contract, self.tables.queries, harper or self.harper, self.ledger)

    def source(self, *moments: datetime | None) -> TableRef:
        """A table with a row at each moment, numbered from 0."""
        rows = " UNION ALL ".join(
            f"SELECT {_literal(moment)} AS ts, {n} AS number" for n, moment in enumerate(moments)
        )
        return self.tables.make_from(rows)

    def add(self, source: TableRef, moment: datetime | None) -> None:
        """One row more."""
        self.tables.run(f"INSERT INTO {source.sql} VALUES ({_literal(moment)}, 99)")

    def store(self, contract: TableContract, *moments: datetime) -> None:
        """The Harper table, made if need be, with a row at each moment."""
        types = {"id": "String", "ts": "String", "number": "Long"}
        declared = [
            Attribute(name=name, type=type_, indexed=name == "ts") for name, type_ in types.items()
        ]
        self.harper.create_table(contract.target.table, "id", declared)
        rows = [{"id": f"{m:%Y%m%d%H%M%S%f}", "ts": stored_text(m)} for m in moments]
        self.harper.upsert(contract.target.table, rows)

    def commit(
        self,
        contract: TableContract,
        start: datetime,
        end: datetime,
        slices: Sequence[int] = range(SLICES),
        *,
        rows: int = 1,
    ) -> LedgerRoute:
        """The ledger calls every window of [start, end) synced, as after a run."""
        leases, batches = self.begin(contract, start, end, slices)
        result = CellResult(read=rows, written=rows, unchanged=0, quarantined=0, digest="digest")
        self.ledger.commit_cells(leases, [(batch, result) for batch in batches])
        self.ledger.release(leases)
        return leases.route

    def begin(
        self,
        contract: TableContract,
        start: datetime,
        end: datetime,
        slices: Sequence[int] = range(SLICES),
    ) -> tuple[Leases, tuple[Batch, ...]]:
        """As far as a run gets that is killed while it writes."""
        facts = table_facts(contract, self.tables.queries.connection.project)
        table = self.ledger.register_route(facts)
        seen = self.ledger.newest_schema(table)
        schema = source_schema(self.tables.queries, contract)
        body = harper_plan(contract, schema, version_of(seen)).version.body()
        version = self.ledger.record_schema(table, body, seen.version if seen else 0).version
        leases = self.ledger.acquire(table, slices, "test", 3 * MINUTE)
        wanted = [
            Wanted(
                cell=CellKey.of_window(window.start, window.end, part),
                mode=Mode.COPY,
                fingerprint="fingerprint",
            )
            for window in windows_between(start, end, contract.window)
            for part in slices
        ]
        return leases, self.ledger.plan(leases, self.ledger.now(), version, wanted, "test")


@pytest.fixture
def bench(
    harper_connection: HarperConnection, tables: SmallTables, ledger: Ledger
) -> Iterator[Bench]:
    """On both real servers."""
    with HarperClient(
        harper_connection, retry=RetryPolicy(max_retries=2, initial_delay_s=0.05)
    ) as harper:
        yield Bench(tables, harper, ledger)


def just_now() -> datetime:
    """The start of the window that is open now."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    return now - timedelta(minutes=now.minute % 5)


def _literal(moment: datetime | None) -> str:
    return f"TIMESTAMP '{moment:%F %T.%f}+00'" if moment else "CAST(NULL AS TIMESTAMP)"

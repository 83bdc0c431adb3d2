"""Whole syncs against real servers: one Spark for all of them, a ledger for each test."""

import os
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.local.java import java_home
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.cut import TimeCut
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, memory_harper
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import HOUR, ROWS
from bq_harper_assets_tests.sync.memory_source import Small, small_table
from bq_harper_assets_tests.sync.second_route import BOUNDS, SecondRoute
from bq_harper_assets_tests.sync.sql_target import BigQueryToSql


@pytest.fixture(scope="session")
def spark(project_root: Path) -> Iterator[SparkSession]:
    """Two cores, and tasks that are tried again as they are in real use."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = str(java_home(project_root, os.environ))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    session = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Empty, in a file of its own."""
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[MemoryHarper]:
    """An empty Harper in memory."""
    with memory_harper() as harper:
        yield harper


@pytest.fixture
def small(ledger: Ledger, memory: MemoryHarper) -> Iterator[Small]:
    """A table that is synced in memory."""
    with small_table(ledger, memory) as table:
        yield table


@pytest.fixture(scope="session")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    """Makes source tables."""
    return SmallTables.at(bigquery_connection)


@dataclass(frozen=True)
class Sync:
    """Declares contracts, runs them, and reads back what Harper holds."""

    stores: Stores
    spark: SparkSession
    harper: HarperClient
    retry: RetryPolicy = field(
        default_factory=lambda: RetryPolicy(max_retries=2, initial_delay_s=0.05)
    )

    def contract(self, source: TableRef, **declared: Any) -> TableContract:
        """Of one hour windows and two slices, into a table of its own."""
        name = f"T{uuid.uuid4().hex[:12]}"
        known = {
            "id": name.lower(),
            "dataset": source.dataset,
            "table": source.table,
            "timestamp_column": "ts",
            "target_table": name,
            "slices": 2,
        }
        return TableContract.model_validate(known | declared)

    def cells(self, contract: TableContract, start: datetime, end: datetime) -> list[Cell]:
        """Every cell from start to end."""
        return [
            Cell(window, number)
            for window in windows_between(start, end, contract.window)
            for number in range(contract.slices)
        ]

    def run(self, contract: TableContract, cells: Sequence[Cell], **settings: Any) -> TurnReport:
        """One run in this process."""
        return Turn(
            route=BigQueryToHarper(self.stores, contract),
            spark=self.spark,
            run_id=f"test-{uuid.uuid4()}",
            retry=self.retry,
            **settings,
        ).sync(cells)

    def prover(self, contract: TableContract) -> Prover:
        """What proves its cells."""
        return Prover(BigQueryToHarper(self.stores, contract), self.spark, self.retry)

    def rows(self, contract: TableContract) -> list[dict[str, Any]]:
        """All that Harper holds of the contract, by id."""
        found = self.harper.search_by_value(
            contract.target.table, contract.timestamp_column, "*", ("*",)
        )
        return sorted(found, key=lambda row: str(row.get("_id", row["id"])))


@pytest.fixture
def sync(
    bigquery_connection: BigQueryConnection,
    harper_connection: HarperConnection,
    ledger: Ledger,
    spark: SparkSession,
) -> Iterator[Sync]:
    """On both real servers."""
    with HarperClient(harper_connection) as harper:
        yield Sync(Stores(bigquery_connection, harper_connection, ledger), spark, harper)


@pytest.fixture(params=("time", "key"))
def second(
    request: pytest.FixtureRequest, sync: Sync, tables: SmallTables, tmp_path: Path
) -> SecondRoute:
    """Three hours of rows, in two slices, that nothing was moved of yet."""
    cut = TimeCut(HOUR) if request.param == "time" else KeyCut(BOUNDS, KeyOrder.NUMBERS)
    source = tables.make_from(ROWS.format(last=10_799, step=60))
    contract = sync.contract(source, key=("number",))
    bigquery, ledger = sync.stores.bigquery, sync.stores.ledger
    route = BigQueryToSql(bigquery, tmp_path / "target.db", ledger, contract, cut)
    return SecondRoute(
        sync=sync,
        tables=tables,
        source=source,
        route=route,
        ledger_url=f"sqlite:///{tmp_path / 'ledger.db'}",
    )

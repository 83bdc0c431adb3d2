"""Before the first row: the source's columns are looked at, and the Harper table is made fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from google.cloud.bigquery import SchemaField

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.schema.errors import SchemaMismatch
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 1)
CHANGES_A_TABLE = {"create_table", "create_attribute"}


@dataclass(frozen=True)
class Watched:
    """Runs whose requests to both servers are seen."""

    sync: Sync
    harper: FaultProxy
    bigquery: FaultProxy

    def run(self, contract: TableContract) -> TurnReport:
        """The hour of the rows."""
        return self.sync.run(contract, self.sync.cells(contract, START, END))

    def of_table(self, contract: TableContract) -> list[str]:
        """The operations that made, changed or filled the target, in order."""
        seen = self.harper.seen(table=contract.target.table)
        return [s.operation for s in seen if s.operation in CHANGES_A_TABLE | {"upsert"}]


@pytest.fixture
def watched(sync: Sync) -> Iterator[Watched]:
    stores = sync.stores
    assert stores.bigquery.endpoint is not None
    with FaultProxy(stores.harper.url) as harper, FaultProxy(stores.bigquery.endpoint) as bigquery:
        seen = replace(
            stores,
            harper=stores.harper.model_copy(update={"url": harper.url}),
            bigquery=stores.bigquery.model_copy(update={"endpoint": bigquery.url}),
        )
        yield Watched(replace(sync, stores=seen), harper, bigquery)


@pytest.mark.promise("A2", "A15")
def test_a_run_says_whether_it_made_the_table_found_it_fit_or_added_to_it(
    watched: Watched, tables: SmallTables
) -> None:
    source = tables.make("ts TIMESTAMP, n INT64")
    insert = f"INSERT INTO {source.sql}"
    tables.run(f"{insert} (ts, n) VALUES (TIMESTAMP '2026-01-05 00:10:00', 1)")
    contract = watched.sync.contract(source)
    seen: list[str] = []
    for action, changes in (
        (TableAction.CREATED, ["create_table"]),
        (TableAction.UP_TO_DATE, []),
        (TableAction.MIGRATED, ["create_attribute"]),
    ):
        if action is TableAction.MIGRATED:
            _add_column(tables, source)
            values = "(TIMESTAMP '2026-01-05 00:20:00', 2, 'rotterdam')"
            tables.run(f"{insert} (ts, n, port_id) VALUES {values}")
        assert watched.run(contract).table_action is action
        of_run = watched.of_table(contract)[len(seen) :]
        seen += of_run
        assert of_run[: len(changes)] == changes
        assert set(of_run[len(changes) :]) <= {"upsert"}
    rows = {row["n"]: row.get("port_id") for row in watched.sync.rows(contract)}
    assert rows == {1: None, 2: "rotterdam"}


@pytest.mark.promise("E2")
@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("tss", r"the source has no column tss; candidates are seen, day"),
        ("ts", r"ts is STRING, not TIMESTAMP, DATETIME or DATE; candidates are seen, day"),
    ],
    ids=["missing", "of the wrong type"],
)
def test_a_timestamp_column_that_cannot_be_one_is_refused_before_anything_is_read(
    watched: Watched, tables: SmallTables, named: str, why: str
) -> None:
    source = tables.make("ts STRING, seen TIMESTAMP, day DATE, seens ARRAY<TIMESTAMP>")
    contract = watched.sync.contract(source, timestamp_column=named)
    with pytest.raises(SchemaMismatch, match=why):
        watched.run(contract)
    assert {seen.method for seen in watched.bigquery.seen()} == {"GET"}  # no query was sent
    assert watched.of_table(contract) == []
    table = watched.sync.stores.ledger.find_route(contract.id)
    assert table is not None
    assert watched.sync.stores.ledger.history(table) == ()


def _add_column(tables: SmallTables, source: TableRef) -> None:
    tables.run(f"ALTER TABLE {source.sql} ADD COLUMN port_id STRING")
    # And by the API: after ALTER TABLE the emulator still describes the old columns.
    client = tables.queries.client
    table = client.get_table(str(source))
    table.schema = [*table.schema, SchemaField("port_id", "STRING")]
    client.update_table(table, ["schema"])

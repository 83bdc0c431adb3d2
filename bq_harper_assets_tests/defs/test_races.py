"""Races for a table and a changed type, in real runs: neither is an error, and the rows arrive."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from dagster import AssetCheckSeverity

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses, write_addresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.defs.runs.launch import Launched, launch
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.bigquery.source import source_schema
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.stores.harper.table.ensure_table import ensure_table
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.drifting import Drifting, LedgerClock
from bq_harper_assets_tests.fault_proxy import Delay, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
RACERS = 9


@pytest.mark.promise("A3", "A4", "E5")
def test_a_run_that_loses_a_race_for_its_table_succeeds_and_a_changed_type_is_a_warning(
    dagster: Dagster,
    project: TemporaryProject,
    ledger: Ledger,
    tables: SmallTables,
    clock: LedgerClock,
    stack: StackAddresses,
    harper_connection: HarperConnection,
) -> None:
    start = hours_ago(3)
    source = tables.make_from(
        f"SELECT *, CAST(number AS STRING) AS speed FROM ({numbered_rows(start)})"
    )
    declared = table(source, start, live=False, key="number")
    with FaultProxy(stack.harper_url) as proxy:
        addresses = stack.model_copy(update={"harper_url": proxy.url})
        write_addresses(local_folder(project.root), addresses)
        [contract] = project.declare(declared).tables
        target = contract.target.table
        sensor = Drifting(dagster=dagster, clock=clock)
        definitions = sensor.definitions
        first, second = windows_between(start, start + 2 * HOUR, contract.window)
        plan = harper_plan(contract, source_schema(tables.queries, contract))

        def run(window: Window) -> Launched:
            cells = [Cell(window, number) for number in range(contract.slices)]
            return launch(definitions, dagster.instance, contract, cells)

        def race(_: int) -> TableAction:
            with HarperClient(harper_connection) as own:
                return ensure_table(own, plan).action

        made_elsewhere = threading.Event()
        proxy.on(Delay(made_elsewhere), operation="create_table", table=target)
        with ThreadPoolExecutor(RACERS + 1) as pool:
            running = pool.submit(run, first)
            _wait_for(lambda: proxy.seen(operation="create_table", table=target))
            actions = {*pool.map(race, range(RACERS))}
            made_elsewhere.set()
            launched = running.result()
        assert actions <= {TableAction.CREATED, TableAction.UP_TO_DATE}
        assert (launched.error, len(launched.done)) == (None, contract.slices)
        [created] = proxy.seen(operation="create_table", table=target)
        assert created.status == 400  # it exists already
        assert sorted(dagster.rows(contract)) == [*range(20)]
        known = ledger.find_route(contract.id)
        assert known
        assert [each.version for each in ledger.schema_history(known)] == [1]
        assert sensor.tick() == []

        tables.run(
            f"CREATE OR REPLACE TABLE {source.sql} AS SELECT * REPLACE"
            f" (CAST(speed AS INT64) AS speed) FROM {source.sql}"
        )
        launched = run(second)
        assert (launched.error, len(launched.done)) == (None, contract.slices)
        assert sensor.tick() == []
    told = sensor.shown(contract)
    assert told is not None
    assert (told.passed, told.severity) == (False, AssetCheckSeverity.WARN)
    assert (
        "speed retyped (STRING -> INT64): synced into speed_v2 from now on; speed keeps the values"
        f" it has, and is listed by bqh schema cleanup {contract.id}"
    ) in (told.description or "")
    rows = dagster.rows(contract)
    assert [(rows[n].get("speed"), rows[n].get("speed_v2")) for n in (0, 20)] == [
        *(("0", None), (None, 20))
    ]


def _wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)

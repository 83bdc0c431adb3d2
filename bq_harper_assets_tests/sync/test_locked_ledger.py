"""A ledger that somebody else has locked for a while, such as a backup: the run waits for it."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import DAY, KEYED, ONE, ROWS, Table
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
LOCKED_S = 6.0


@pytest.fixture
def proxy(harper_connection: HarperConnection) -> Iterator[FaultProxy]:
    with FaultProxy(harper_connection.url) as proxy:
        yield proxy


@pytest.mark.promise("H9")
def test_a_run_whose_ledger_is_locked_while_it_writes_waits_and_commits_every_cell(
    sync: Sync, tables: SmallTables, proxy: FaultProxy, tmp_path: Path
) -> None:
    source = tables.make_from(ROWS.format(last=3_599, step=60))
    harper = sync.stores.harper.model_copy(update={"url": proxy.url})
    through = replace(sync, stores=replace(sync.stores, harper=harper))
    table = Table(
        sync=through, tables=tables, source=source, contract=sync.contract(source, **KEYED)
    )
    freed: list[bool] = []

    def lock_once_it_writes() -> None:
        other = sqlite3.connect(tmp_path / "ledger.db", timeout=30, isolation_level=None)
        while not proxy.seen(operation="upsert", table=table.contract.target.table):
            time.sleep(0.01)
        other.execute("BEGIN EXCLUSIVE")
        time.sleep(LOCKED_S)
        freed.append(True)
        other.execute("ROLLBACK")
        other.close()

    locking = threading.Thread(target=lock_once_it_writes, daemon=True)
    locking.start()
    table.run(DAY, ONE)
    assert freed  # nothing could be committed before
    assert set(table.states().values()) == {CellState.SYNCED}
    assert table.held == table.wanted
    locking.join()

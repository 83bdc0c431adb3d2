"""Whatever happens during a run: no row is lost, doubled or stale, no checkpoint ahead of data."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.records import CellState
from bq_harper_assets.local.stack import LocalStack
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.sync.lease.keeper import LeaseTimes
from bq_harper_assets_tests.conftest import environ_without_settings
from bq_harper_assets_tests.fault_proxy import FaultProxy
from bq_harper_assets_tests.long.held.conftest import Sizes, emulator_of, harper_of
from bq_harper_assets_tests.long.held.disasters import DISASTERS, World
from bq_harper_assets_tests.long.held.plain_http import PlainHarper, differences
from bq_harper_assets_tests.long.held.ships import HOUR, START, Ships, values
from bq_harper_assets_tests.stores.small_tables import TableRef
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
HOURS = 4
SHORT = LeaseTimes(timedelta(seconds=15), timedelta(seconds=0.5))
PATIENCE_S = 240  # until a run ends well: leases expire, breakers close


@dataclass(frozen=True)
class Scene:
    """Servers that may be killed, what is read of them directly, and syncs through the proxies."""

    world: World
    sync: Sync
    harper: PlainHarper
    ships: Ships


@pytest.fixture
def scene(sync: Sync, tmp_path: Path, project_root: Path, sizes: Sizes) -> Iterator[Scene]:
    servers = LocalStack(
        project_root, tmp_path / "stack", preferred={}, environ=environ_without_settings()
    )
    addresses = servers.up(print)
    try:
        with (
            FaultProxy(addresses.harper_url) as harper,
            FaultProxy(addresses.bigquery_url) as bigquery,
        ):
            pause_s = sizes.of("PAUSE_SECONDS", short=5, full=70)
            world = World(
                stack=servers,
                harper=harper,
                bigquery=bigquery,
                ledger=tmp_path / "ledger.db",
                pause_s=pause_s,
            )
            plain = harper_of(addresses)
            secret = type(sync.stores.harper.password)(plain.password)
            stores = replace(
                sync.stores,
                harper=sync.stores.harper.model_copy(
                    update={"url": harper.url, "password": secret}
                ),
                bigquery=BigQueryConnection(
                    project=addresses.bigquery_project,
                    endpoint=bigquery.url,
                    storage_endpoint=addresses.bigquery_storage,
                ),
            )
            through = replace(
                sync, stores=stores, retry=RetryPolicy(max_retries=5, initial_delay_s=0.2)
            )
            yield Scene(world, through, plain, Ships.made(emulator_of(addresses)))
    finally:
        servers.purge(print)


@pytest.mark.promise("H9", "E4")
def test_after_each_disaster_the_next_runs_make_harper_equal_and_no_checkpoint_was_ahead(
    scene: Scene, sizes: Sizes
) -> None:
    chance = random.Random(7)
    wanted = list(DISASTERS)[: sizes.of("DISASTERS", short=3, full=len(DISASTERS))]
    for name in sizes.in_time(wanted, "DISASTER_SECONDS", full_s=2_700):
        print(f"{name}")
        ships = Ships.made(scene.ships.emulator)
        rows = [values(n, START + n * HOUR * HOURS / 400, chance) for n in range(400)]
        ships.insert(rows)
        source = TableRef(ships.emulator.project, "held", ships.name)
        contract = scene.sync.contract(
            source, key=["number"], sync={"initialBatchSize": 10, "giveUpAfter": "1m"}, slices=2
        )
        _play(replace(scene, ships=ships), contract, name)


def _play(scene: Scene, contract: TableContract, name: str) -> None:
    cells = scene.sync.cells(contract, START, START + HOURS * HOUR)
    proxy = scene.world.harper
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(scene.sync.run, contract, cells, times=SHORT)
        limit = time.monotonic() + 60
        while not running.done() and time.monotonic() < limit:
            if proxy.seen(operation="upsert", table=contract.target.table):
                break
            time.sleep(0.01)
        DISASTERS[name](replace(scene.world, table=contract.target.table))
        failed = running.exception(300)
    assert failed is None or isinstance(failed, BqhError), failed
    proxy.heal()
    scene.world.bigquery.heal()
    print(f"  the run {'succeeded' if failed is None else f'failed: {failed}'}"[:300])
    _assert_no_checkpoint_is_ahead(scene, contract)
    limit = time.monotonic() + PATIENCE_S
    while failed is not None:
        assert time.monotonic() < limit, failed
        time.sleep(1)
        try:
            scene.sync.run(contract, cells, times=SHORT)
            failed = None
        except BqhError as error:
            failed = error
    stored = scene.harper.rows(contract.target.table)
    found = differences(scene.ships.emulator.rows(scene.ships.sql), stored, "number")
    assert not found, "\n".join(found)


def _assert_no_checkpoint_is_ahead(scene: Scene, contract: TableContract) -> None:
    """Each window whose every cell the ledger calls synced is in Harper, whole and as it is."""
    table = scene.sync.stores.ledger.find_route(contract.id)
    if table is None:
        return
    records = scene.sync.stores.ledger.cells(table, START, START + HOURS * HOUR)
    synced: dict[object, int] = {}
    for record in records:
        if record.state is CellState.SYNCED:
            start = record.cell.window_start
            synced[start] = synced.get(start, 0) + 1
    if not synced:
        return
    stored = {row["number"]: row for row in scene.harper.rows(contract.target.table)}
    for start, count in synced.items():
        if count == contract.slices:
            wanted = scene.ships.rows(start, start + HOUR)
            held = [stored[row["number"]] for row in wanted if row["number"] in stored]
            assert differences(wanted, held, "number") == []

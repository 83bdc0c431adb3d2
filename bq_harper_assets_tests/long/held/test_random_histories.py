"""Random histories: whatever happens to the source, what was synced is equal to it.

A history that fails prints its seed; TEST_LONG_SEED=<seed> plays that one alone.
"""

import os

import pytest

from bq_harper_assets_tests.long.held.conftest import Sizes
from bq_harper_assets_tests.long.held.history import Player, steps_of
from bq_harper_assets_tests.long.held.plain_http import Emulator, PlainHarper
from bq_harper_assets_tests.long.held.ships import Ships
from bq_harper_assets_tests.stores.small_tables import TableRef
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("N12", "H8")
def test_every_random_history_ends_with_harper_equal_to_its_source(
    sync: Sync, emulator: Emulator, plain_harper: PlainHarper, sizes: Sizes
) -> None:
    asked = os.environ.get("TEST_LONG_SEED")
    histories = sizes.of("HISTORIES", short=2, full=40)
    length = sizes.of("HISTORY_LENGTH", short=3, full=8)
    seeds = [int(asked)] if asked else list(range(histories))
    for seed in sizes.in_time(seeds, "HISTORY_SECONDS", full_s=3_600):
        steps = steps_of(seed, length)
        print(f"TEST_LONG_SEED={seed} TEST_LONG_HISTORY_LENGTH={length}", *steps, sep="\n  ")
        ships = Ships.made(emulator)
        source = TableRef(emulator.project, "held", ships.name)
        declared = {"key": ["number"]} if seed % 2 == 0 else {}
        contract = sync.contract(source, slices=1 + seed % 3, **declared)
        player = Player(sync=sync, harper=plain_harper, ships=ships, contract=contract)
        player.play(steps)
        print(f"  equal at its end; {player.windows_compared} windows were compared")

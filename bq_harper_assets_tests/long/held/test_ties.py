"""Rows that share one timestamp, more of them than any request or page holds."""

import pytest

from bq_harper_assets_tests.long.held.conftest import Sizes
from bq_harper_assets_tests.long.held.plain_http import Emulator, PlainHarper, differences
from bq_harper_assets_tests.long.held.ships import HOUR, START, Ships
from bq_harper_assets_tests.stores.small_tables import TableRef
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("H8")
@pytest.mark.parametrize("key", [None, "number"], ids=["keyless", "keyed"])
def test_every_row_of_one_microsecond_arrives_and_later_ones_too(
    sync: Sync, emulator: Emulator, plain_harper: PlainHarper, sizes: Sizes, key: str | None
) -> None:
    ties = sizes.of("TIES", short=5_000, full=50_000)
    ships = Ships.made(emulator)
    fill = (
        f"INSERT INTO {ships.sql} (number, ts, name)"
        " SELECT n, TIMESTAMP '2026-01-05 00:59:59.999999+00', CONCAT('ship ', CAST(n AS STRING))"
        " FROM UNNEST(GENERATE_ARRAY({}, {})) AS n"
    )
    source = TableRef(emulator.project, "held", ships.name)
    contract = sync.contract(source, **({"key": [key]} if key else {}))
    cells = sync.cells(contract, START, START + 2 * HOUR)
    for first, last in ((0, 0), (1, 4_999), (5_000, ties + 4_999)):
        emulator.run(fill.format(first, last))
        sync.run(contract, cells)
        stored = plain_harper.rows(contract.target.table)
        assert len(stored) == last + 1
        assert differences(emulator.rows(ships.sql), stored, key) == []

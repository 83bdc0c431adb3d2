"""A row that moved is written where it is now, whether or not that window is run."""

from typing import Any

import pytest

from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import (
    DAY,
    HOUR,
    KEYED,
    LATEST,
    OF_QUERY,
    ONE,
    THREE,
    TWO,
    made,
    total,
)
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.moved.test_gone_or_moved import open_cells

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [KEYED, OF_QUERY, LATEST], ids=["table", "query", "latest"])
def test_a_row_that_moved_to_a_window_that_is_not_run_is_written_there_and_never_absent(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number = 60")
    report = table.run(DAY, ONE)
    assert table.held == table.wanted
    assert (total(report, "moved"), total(report, "deleted")) == (1, 0)
    assert {cell.split("|")[0] for cell in table.dirty()} == {"2026-01-05T02:00"}
    table.run(TWO, THREE)
    assert table.dirty() == set()
    assert table.held == table.wanted


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [KEYED, OF_QUERY, LATEST], ids=["table", "query", "latest"])
def test_a_row_that_moved_to_where_an_open_window_is_not_synced_yet_leaves_no_old_version(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, safety_lag=HOUR, **declared)
    cells, last = open_cells(table)
    table.change(f"UPDATE T SET ts = TIMESTAMP '{last:%F %T}+00' WHERE number = 60")
    report = sync.run(table.contract, [*sync.cells(table.contract, DAY, ONE), *cells])
    assert table.held == table.wanted
    assert (total(report, "moved"), total(report, "deleted")) == (1, 0)

"""The cells that lose a row to another are known before it is written."""

from typing import Any

import pytest

from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import (
    DAY,
    KEYED,
    LATEST,
    OF_QUERY,
    ONE,
    THREE,
    TWO,
    made,
)
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [KEYED, OF_QUERY, LATEST], ids=["table", "query", "latest"])
def test_a_write_that_takes_a_row_out_of_another_window_marks_that_window_first(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    table.change("UPDATE T SET ts = TIMESTAMP '2026-01-05 02:30:30' WHERE number = 60")
    table.run(TWO, THREE)
    assert table.held == table.wanted
    assert {cell.split("|")[0] for cell in table.dirty()} == {"2026-01-05T00:00"}
    table.run(DAY, ONE)
    assert table.dirty() == set()

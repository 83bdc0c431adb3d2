"""The first promise: a materialised cell equals its source at one instant."""

import pytest

from bq_harper_assets.ledger.records import CellState, Mode
from bq_harper_assets.sync.turn.turn import is_on
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
DAY = utc(2026, 1, 5)
HOURS = utc(2026, 1, 5, 3)
SELECT = (
    "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n * 7 SECOND) AS ts,"
    " n AS number, CONCAT('name ', CAST(n AS STRING)) AS name, n / 7 AS ratio"
    " FROM UNNEST(GENERATE_ARRAY(0, 1499)) AS n"
)


@pytest.mark.promise("O6")
def test_the_new_cells_of_a_run_are_moved_in_one_pass_of_spark_however_many_they_are(
    sync: Sync, tables: SmallTables
) -> None:
    source, tracker = tables.make_from(SELECT), sync.spark.sparkContext.statusTracker()
    jobs = []
    for window in ("60m", "15m"):  # 6 and 24 cells
        contract = sync.contract(source, window=window)
        before = {*tracker.getJobIdsForGroup()}
        report = sync.run(contract, sync.cells(contract, DAY, HOURS))
        assert report.rows == 1500
        jobs.append(len({*tracker.getJobIdsForGroup()} - before))
    assert jobs[0] == jobs[1] > 0


def test_a_row_of_every_window_and_slice_arrives_as_it_is(sync: Sync, tables: SmallTables) -> None:
    contract = sync.contract(tables.make_from(SELECT))
    report = sync.run(contract, sync.cells(contract, DAY, HOURS))
    rows = sync.rows(contract)
    assert sorted(row["number"] for row in rows) == list(range(1500))
    for row in rows:
        assert row["name"] == f"name {row['number']}"
        assert row["ratio"] == row["number"] / 7
        seconds = row["number"] * 7
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        assert row["ts"] == f"2026-01-05T{clock}.000000Z"
    assert {cell.mode for cell in report.cells} == {Mode.COPY}
    assert sum(cell.result.written for cell in report.cells) == 1500
    table = sync.stores.ledger.find_route(contract.id)
    assert table is not None
    cells = sync.stores.ledger.cells(table, DAY, HOURS)
    assert {cell.state for cell in cells} == {CellState.SYNCED}
    assert sum(cell.commit.rows for cell in cells if cell.commit) == 1500


@pytest.mark.parametrize(
    ("setting", "on"),
    [("true", True), ("True ", True), ("TRUE", True), ("false", False), ("", False), ("1", False)],
)
def test_a_setting_of_spark_is_on_however_its_letters_are_written(setting: str, on: bool) -> None:
    assert is_on(setting) is on

"""Which rows of the source are picked."""

import pytest

from bq_harper_assets.validation.spot import source_sample
from bq_harper_assets.validation.spot.spot_check import check_spot
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import SpotStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.validation.conftest import MINUTE
from bq_harper_assets_tests.validation.spot.test_spot_check import (
    EVERY_FIVE_MINUTES,
    FROM_NOON,
    NOON,
    land_two_hours,
    spot,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def test_without_cells_rows_of_the_whole_table_are_picked(sync: Sync, tables: SmallTables) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES))
    subject = Subject(contract, tables.queries, sync.harper, sync.stores.ledger)
    found = check_spot(subject, size=3, seed=7)
    assert (found.metadata["rows_from_bigquery"], found.passed) == (3, True)
    assert found.metadata["rows_from_harper"] == 3
    sync.harper.delete(contract.target.table, [row["id"] for row in rows])
    assert len(check_spot(subject, size=3, seed=7).rows) == 3


def test_many_rows_of_one_time_keep_no_other_window_from_being_looked_at(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tables.make_from(
        f"SELECT n AS number, TIMESTAMP_ADD(TIMESTAMP '{NOON:%F %T}+00', INTERVAL DIV(n, 30) HOUR)"
        " AS ts FROM UNNEST(GENERATE_ARRAY(0, 149)) AS n"
    )
    contract = sync.contract(source, **FROM_NOON)
    end = NOON + 300 * MINUTE
    sync.run(contract, sync.cells(contract, NOON, end))
    # Of a hundred thousand each, it would be the same; here windows have sixty rows at most.
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 40)
    found = spot(sync, tables, contract, end=end, size=150)
    assert found.status is SpotStatus.HEALTHY
    assert found.metadata["rows_from_bigquery"] == 150
    assert found.metadata["crowded_times_left_out"] == 0
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 20)
    found = spot(sync, tables, contract, end=end, size=150)
    assert not found.passed
    assert found.metadata["crowded_times_left_out"] == 5
    assert "rows share are left out" in found.message

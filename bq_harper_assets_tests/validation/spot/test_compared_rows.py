"""Rows of both stores side by side: those at work, those in quarantine, and all types."""

from typing import Any

import pytest

from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.validation.spot import spot_check as spot_module
from bq_harper_assets.validation.verdict import SpotStatus
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import land, quarantined
from bq_harper_assets_tests.validation.spot.test_spot_check import (
    EVERY_FIVE_MINUTES,
    NOON,
    TWO,
    land_two_hours,
    named,
    spot,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def test_rows_that_a_run_takes_while_they_are_looked_at_are_not_called_the_same(
    sync: Sync, tables: SmallTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract, rows = land_two_hours(sync, tables.make_from(EVERY_FIVE_MINUTES))
    # A row that is in no cell stays: of an emptied table a run would ask for a reconcile first.
    sync.harper.upsert(contract.target.table, [rows[0] | {"id": "STAYS", "ts": None}])
    sync.harper.delete(contract.target.table, [row["id"] for row in rows])
    settle = spot_module._settled

    def after_a_run(*args: Any) -> Any:
        monkeypatch.undo()
        sync.run(contract, sync.cells(contract, NOON, TWO))
        return settle(*args)

    monkeypatch.setattr(spot_module, "_settled", after_a_run)
    found = spot(sync, tables, contract)
    assert (found.status, found.passed) == (SpotStatus.NO_DATA, False)
    assert found.metadata["rows_moved_meanwhile"] == len(rows)
    assert "a run was at work there" in found.message
    assert spot(sync, tables, contract).passed


def test_equal_rows_rows_in_quarantine_and_one_slice_are_understood(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        f"SELECT IF(n = 5, 9007199254740993, DIV(n, 3)) AS number, TIMESTAMP_ADD(TIMESTAMP"
        f" '{NOON:%F %T}+00', INTERVAL DIV(n, 3) * 5 MINUTE) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 35)) AS n"
    )
    contract, rows = land_two_hours(sync, source)
    assert len(quarantined(sync, contract)) == 1
    assert len(rows) == 35
    verdict = spot(sync, tables, contract)
    assert verdict.status is SpotStatus.HEALTHY
    equal = [row["id"] for row in rows if row["number"] == 4]
    assert sorted(row_id[23:] for row_id in equal) == ["", "-1", "-2"]
    sync.harper.delete(contract.target.table, equal)
    found = named(spot(sync, tables, contract))
    assert set(found) <= set(equal)
    assert {kind for kind, _ in found.values()} == {"missing"}
    one, other = (spot(sync, tables, contract, slices=[part]) for part in range(2))
    assert bool(one.rows) is not bool(other.rows)
    assert one.metadata["rows_from_bigquery"] > 0 < other.metadata["rows_from_bigquery"]


@pytest.mark.promise("M3")
def test_rows_of_every_type_are_the_same_in_both_stores(
    sync: Sync, tables: SmallTables, edges: TableRef
) -> None:
    start, end = utc(2026, 1, 5), utc(2026, 1, 5, 1)
    contract, _ = land(sync, edges, start, end)
    verdict = spot(sync, tables, contract, start=start, end=end)
    assert verdict.status is SpotStatus.HEALTHY, verdict.message
    assert verdict.metadata["rows_from_bigquery"] > 3
    assert verdict.metadata["rows_quarantined"] > 3
    pair = next(row for row in sync.rows(contract) if row["n"] == 1)
    nested = {"a": 1, "b": {"c": "\0", "d": [5e-324, -1.25]}}
    sync.harper.upsert(contract.target.table, [{"id": pair["id"], "pair": nested, "tags": None}])
    ((kind, columns),) = named(spot(sync, tables, contract, start=start, end=end)).values()
    assert (kind, set(columns)) == ("changed", {"pair", "tags"})

"""A cell that was synced before: whatever happened to its source, it equals it again."""

from typing import Any

import pytest

from bq_harper_assets.ledger.records import CellState, Mode
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.plan.delete_guard import MOST_UNGUARDED_ROWS
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import KEYED, Table, made, total
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("J1")
@pytest.mark.parametrize("declared", [{}, KEYED], ids=["keyless", "keyed"])
def test_a_cell_that_did_not_change_is_compared_and_nothing_is_written(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    before = sync.rows(table.contract)
    report = table.run()
    assert {cell.mode for cell in report.cells} == {Mode.RECONCILE}
    assert (report.requests, total(report, "unchanged"), total(report, "written")) == (0, 180, 0)
    assert sync.rows(table.contract) == before


@pytest.mark.promise("N12")
@pytest.mark.parametrize("declared", [{}, KEYED], ids=["keyless", "keyed"])
def test_late_changed_and_deleted_rows_are_put_right_and_no_other_row_is_written(
    sync: Sync, tables: SmallTables, declared: dict[str, Any]
) -> None:
    table = made(sync, tables, **declared)
    batches = {row["number"]: row["_batch"] for row in sync.rows(table.contract)}
    table.change(
        "INSERT INTO T (number, ts, name) VALUES (7, TIMESTAMP '2026-01-05 00:10:01', 'late')"
    )
    table.change("UPDATE T SET name = 'changed' WHERE number IN (60, 7200)")
    table.change("DELETE FROM T WHERE number IN (120, 3600, 7260)")
    report = table.run()
    assert table.held == table.wanted
    assert (total(report, "written"), total(report, "unchanged")) == (3, 175)
    assert total(report, "deleted") == (3 if declared else 5)  # without a key, a change is two rows
    moved = {
        row["number"]
        for row in sync.rows(table.contract)
        if batches.get(row["number"]) != row["_batch"]
    }
    assert moved == {7, 60, 7200}


@pytest.mark.promise("N12")
def test_a_window_that_lost_most_of_its_rows_is_refused_until_it_is_allowed(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, last=10_799, step=1, slices=1)
    before = table.held
    table.change(
        "DELETE FROM T WHERE ts >= TIMESTAMP '2026-01-05 01:00:00'"
        " AND ts < TIMESTAMP '2026-01-05 02:00:00'"
    )
    table.change("DELETE FROM T WHERE number = 5")
    with pytest.raises(TurnFailed) as failed:
        table.run()
    assert str(failed.value) == (
        f"{table.contract.id}: 1 of 3 cells are not done: the delete guard refused 1. The other 2 "
        "are committed. The first is 2026-01-05T01:00|s00: would lose 3,600 of the 3,600 rows that "
        "the target holds of it. Nothing of it was written. If these rows are really gone from "
        f"the source: bqh sync {table.contract.id} --from 2026-01-05T01:00 --to 2026-01-05T02:00 "
        "--allow-deletes"
    )
    assert not failed.value.report.is_transient
    assert set(before) - set(table.held) == {5}
    assert table.states()["2026-01-05T01:00|s00"] is CellState.REFUSED
    table.run(allow_deletes=True)
    assert table.held == table.wanted
    assert set(table.states().values()) == {CellState.SYNCED}


def test_an_emptied_table_of_small_cells_is_refused_as_a_whole(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, last=10_799, step=9, slices=2)
    assert len(table.held) == 1200 > MOST_UNGUARDED_ROWS
    table.change("DELETE FROM T WHERE TRUE")
    with pytest.raises(TurnFailed, match="the run would lose 1,200 of the 1,200 rows"):
        table.run()
    assert len(table.held) == 1200


def test_a_small_cell_that_honestly_became_empty_is_not_refused(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables)
    table.change("DELETE FROM T WHERE ts < TIMESTAMP '2026-01-05 01:00:00'")
    table.run()
    assert table.held == table.wanted
    assert len(table.held) == 120


def test_rows_that_somebody_put_or_changed_or_deleted_in_harper_are_put_right(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, **KEYED)
    target = table.contract.target.table
    row = next(row for row in sync.rows(table.contract) if row["number"] == 60)
    sync.harper.delete(target, [3600])
    sync.harper.upsert(target, [{**row, "id": 61, "number": 61}])
    sync.harper.upsert(target, [{"id": 120, "name": "bent", "_hash": "0" * 13}])
    report = table.run()
    assert table.held == table.wanted
    assert (total(report, "written"), total(report, "deleted")) == (2, 1)


def test_equal_rows_of_a_keyless_table_come_and_go_one_by_one(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        "SELECT TIMESTAMP '2026-01-05 00:00:01' AS ts, 'same' AS name"
        " FROM UNNEST(GENERATE_ARRAY(1, 5)) AS n"
    )
    table = Table(sync=sync, tables=tables, source=source, contract=sync.contract(source))
    table.run()
    assert len(sync.rows(table.contract)) == 5
    table.change("INSERT INTO T (ts, name) SELECT ts, name FROM T LIMIT 2")
    assert total(table.run(), "written") == 2
    assert len(sync.rows(table.contract)) == 7
    table.change("DELETE FROM T WHERE TRUE")
    table.change("INSERT INTO T (ts, name) VALUES (TIMESTAMP '2026-01-05 00:00:01', 'same')")
    report = table.run()
    assert len(sync.rows(table.contract)) == 1
    assert (total(report, "deleted"), total(report, "written")) == (6, 0)

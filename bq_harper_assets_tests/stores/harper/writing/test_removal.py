"""Rows that are gone from the source: kept or marked, as the contract says."""

import pytest

from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.changing_table import KEYED, made, time_text, total
from bq_harper_assets_tests.sync.conftest import Sync

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("N12")
def test_rows_gone_from_the_source_are_kept_where_the_contract_says_so(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, deletes="keep", **KEYED)
    table.change("DELETE FROM T WHERE number IN (60, 120)")
    report = table.run()
    assert set(table.held) - set(table.wanted) == {60, 120}
    assert (total(report, "kept"), total(report, "deleted")) == (2, 0)


@pytest.mark.promise("N12")
def test_rows_gone_from_the_source_are_marked_and_the_mark_goes_when_they_return(
    sync: Sync, tables: SmallTables
) -> None:
    table = made(sync, tables, deletes="flag", **KEYED)
    table.change("DELETE FROM T WHERE number IN (60, 120)")
    report = table.run()
    marks = {row["number"]: row["_deletedAt"] for row in sync.rows(table.contract)}
    assert {number for number, mark in marks.items() if mark} == {60, 120}
    assert marks[60] == time_text(report.t)
    assert total(report, "flagged") == 2
    assert total(table.run(), "flagged") == 0
    table.change(
        "INSERT INTO T (number, ts, name) VALUES (60, TIMESTAMP '2026-01-05 00:01:00', 'name 60')"
    )
    table.run()
    marks = {row["number"]: row["_deletedAt"] for row in sync.rows(table.contract)}
    assert {number for number, mark in marks.items() if mark} == {120}

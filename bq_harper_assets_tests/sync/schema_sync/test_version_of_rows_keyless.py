"""Rows without a key keep their ids when a field comes inside one of their columns."""

import pytest

from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.evolving import NEXT, OLD, OLDER, Evolving

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


@pytest.mark.promise("D1")
def test_a_field_that_is_added_leaves_every_row_its_id_and_no_row_is_written_twice(
    sync: Sync, tables: SmallTables
) -> None:
    table = Evolving.made(sync, tables, "STRUCT(CAST(n AS STRING) AS zip) AS address")
    before = {row["id"] for row in sync.rows(table.contract)}
    city = "CONCAT('city ', CAST(number AS STRING)) AS city"
    table.remake(f"* REPLACE (STRUCT(address.zip AS zip, {city}) AS address)")
    twin = "number, ts, STRUCT(address.zip AS zip, 'other' AS city)"
    table.change(
        f"INSERT INTO T (number, ts, address) SELECT {twin} FROM T WHERE number IN (10, 20)"
    )
    table.run(NEXT)
    added = dict.fromkeys((OLDER, OLD), ("address.city",))
    table.assert_proved(OLDER, NEXT, without=added)
    filling = table.declared(backfill=True)
    assert filling.look() == {OLDER, OLD}
    report = filling.run(OLDER, OLD)
    assert [(c.result.written, c.result.deleted) for c in report.cells] == [(3, 0), (4, 0)]
    rows = sync.rows(table.contract)
    assert before < {row["id"] for row in rows}
    assert len(rows) == len(before) + 3 + 2
    assert {row["id"].split("-")[0] for row in rows if row["number"] == 10} < before
    assert {row["address"].get("city") for row in rows if row["number"] == 10} == {
        "city 10",
        "other",
    }

    again = filling.run(OLDER, OLD, NEXT)
    assert [cell.result.unchanged for cell in again.cells] == [3, 4, 4]
    assert sync.rows(table.contract) == rows
    filling.assert_proved(OLDER, OLD, NEXT)
    assert filling.look() == set()

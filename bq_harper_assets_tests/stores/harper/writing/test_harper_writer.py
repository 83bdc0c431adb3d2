"""Rows that Harper does not take are singled out, and every other row is written."""

import json

import pytest
from google.cloud.bigquery import SchemaField as Field

from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import (
    assert_counts_agree,
    land,
    quarantined,
)
from bq_harper_assets_tests.sync.test_shapes_values import END, START, make

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
DOCUMENTS = ("n INT64", "ts TIMESTAMP", "ratio FLOAT64", "doc JSON")
POISON = '{"__proto__": {"a": 1}}'  # Harper refuses a request that holds this name


@pytest.mark.promise("B2", "B3")
@pytest.mark.parametrize(
    ("ratio", "doc", "reason"),
    [
        ("IF(n = 2499, CAST('NaN' AS FLOAT64), n / 3)", "'{}'", "ratio: NaN"),
        ("n / 3", f"IF(n = 2499, '{POISON}', '{{}}')", "proto"),
    ],
    ids=["refused by us", "refused by Harper"],
)
def test_of_5_000_rows_exactly_the_bad_one_is_quarantined(
    sync: Sync, tables: SmallTables, ratio: str, doc: str, reason: str
) -> None:
    source = make(tables, [Field(*each.split()) for each in DOCUMENTS])
    tables.run(
        f"INSERT INTO {source.sql} (n, ts, ratio, doc)"
        " SELECT n, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MILLISECOND),"
        f" {ratio}, PARSE_JSON({doc}) FROM UNNEST(GENERATE_ARRAY(0, 4999)) AS n"
    )
    contract, report = land(sync, source, START, END)
    assert_counts_agree(sync, contract, report, 4_999)
    rows = sync.rows(contract)
    assert sorted(row["n"] for row in rows) == [n for n in range(5_000) if n != 2499]
    assert all(row["ratio"] == row["n"] / 3 for row in rows)
    [bad] = quarantined(sync, contract)
    assert reason in bad.rejection.reason
    assert json.loads(bad.rejection.payload)["n"] == 2499
    assert sum(cell.result.quarantined for cell in report.cells) == 1


@pytest.mark.promise("B3")
def test_of_a_row_that_became_bad_no_old_version_stays(sync: Sync, tables: SmallTables) -> None:
    source = make(tables, [Field(*each.split()) for each in DOCUMENTS])
    tables.run(
        f"INSERT INTO {source.sql} (n, ts, ratio, doc)"
        " SELECT n, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE), n / 1,"
        " PARSE_JSON('{}') FROM UNNEST(GENERATE_ARRAY(0, 19)) AS n"
    )
    contract, report = land(sync, source, START, END, key=["n"])
    assert_counts_agree(sync, contract, report, 20)
    tables.run(f"UPDATE {source.sql} SET doc = PARSE_JSON('{POISON}') WHERE n = 7")
    tables.run(f"UPDATE {source.sql} SET ratio = CAST('Infinity' AS FLOAT64) WHERE n = 8")
    sync.run(contract, sync.cells(contract, START, END))
    assert sorted(row["n"] for row in sync.rows(contract)) == [*range(7), *range(9, 20)]
    assert sorted(row.rejection.row_id or "" for row in quarantined(sync, contract)) == ["7", "8"]

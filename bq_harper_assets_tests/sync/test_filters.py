"""Records as users ask for them: columns at the top level, each usable in a filter by its name."""

import pytest

from bq_harper_assets_tests.stores.harper_clients import selected
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import land

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
SELECT = (
    "SELECT n, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n * 10 MINUTE) AS ts,"
    " n / 4 AS ratio, CAST(n AS NUMERIC) / 8 AS price, MOD(n, 3) = 0 AS flag,"
    " CONCAT('ship ', CAST(n AS STRING)) AS name, DATE_ADD(DATE '2026-01-01', INTERVAL n DAY)"
    " AS day, TIME(n, 30, 0) AS clock, DATETIME(2026, 1, n + 1, 0, 0, 0) AS local"
    " FROM UNNEST(GENERATE_ARRAY(0, 11)) AS n"
)
# The same question to both; where their spelling of a value differs, first BigQuery's.
FILTERS = {
    "n": ("n >= 4 AND n < 7",) * 2,
    "ratio": ("ratio > 1.5",) * 2,
    "price": ("price = 0.25",) * 2,
    "flag": ("flag = true",) * 2,
    "name": ("name = 'ship 5'",) * 2,
    "day": ("day >= '2026-01-09'",) * 2,
    "ts": (
        "ts >= TIMESTAMP '2026-01-05 00:30:00' AND ts < TIMESTAMP '2026-01-05 01:10:00'",
        "ts >= '2026-01-05T00:30:00.000000Z' AND ts < '2026-01-05T01:10:00.000000Z'",
    ),
    "clock": ("clock < TIME '03:30:00'", "clock < '03:30:00.000000'"),
    "local": ("local > DATETIME '2026-01-08'", "local > '2026-01-08T00:00:00.000000'"),
}


@pytest.mark.promise("J1", "J2", "M9")
def test_a_filter_on_any_scalar_column_gives_the_rows_that_bigquery_gives(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(SELECT)
    contract, _ = land(sync, source, utc(2026, 1, 5), utc(2026, 1, 5, 2))
    own = {"id", "_syncedAt", "_batch", "_hash"}
    assert {frozenset(row) for row in sync.rows(contract)} == {frozenset({*FILTERS, *own})}
    for name, (here, there) in FILTERS.items():
        asked = tables.queries.run(f"SELECT n FROM {source.sql} WHERE {here}", doing="comparing")
        expected = sorted(row["n"] for row in asked.rows)
        assert 0 < len(expected) < 12
        found = selected(
            sync.stores.harper, f"SELECT n FROM data.{contract.target.table} WHERE {there}"
        )
        assert sorted(row["n"] for row in found) == expected, name
    # In order of time and cut off, as somebody asks who looks for the newest.
    here, there = (f"{where} ORDER BY ts DESC LIMIT 3" for where in FILTERS["ts"])
    asked = tables.queries.run(f"SELECT n FROM {source.sql} WHERE {here}", doing="comparing")
    found = selected(
        sync.stores.harper, f"SELECT n, ts FROM data.{contract.target.table} WHERE {there}"
    )
    assert [row["n"] for row in found] == [row["n"] for row in asked.rows] == [6, 5, 4]

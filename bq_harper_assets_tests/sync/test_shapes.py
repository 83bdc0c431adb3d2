"""Shapes of data that make syncs lose rows, invent rows or stop: each arrives as it is."""

import json
from datetime import datetime, timedelta

import pytest

from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.sync.errors import KeyNotUnique, WindowStillOpen
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.side_by_side import (
    assert_counts_agree,
    land,
    quarantined,
    source_rows,
    stored_rows,
    without_metadata,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 2)
MINUTES = "TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE) AS ts"
HUNDRED = "UNNEST(GENERATE_ARRAY(0, 99)) AS n"


@pytest.mark.promise("H8")
@pytest.mark.parametrize("moment", ["00:30:00.123", "00:30:00.123456"], ids=["ms", "us"])
def test_25_000_rows_on_one_timestamp_are_all_kept(
    sync: Sync, tables: SmallTables, moment: str
) -> None:
    source = tables.make_from(
        "SELECT n, CASE WHEN n < 5000 THEN TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n"
        f" MILLISECOND) WHEN n < 30000 THEN TIMESTAMP '2026-01-05 {moment}' ELSE TIMESTAMP_ADD("
        "TIMESTAMP '2026-01-05 01:00:00', INTERVAL n MILLISECOND) END AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 34999)) AS n"
    )
    contract, report = land(sync, source, START, END)
    assert_counts_agree(sync, contract, report, 35_000)
    rows = sync.rows(contract)
    assert sorted(row["n"] for row in rows) == list(range(35_000))
    tied = f"2026-01-05T{moment:0<15}Z"
    assert sorted(row["n"] for row in rows if row["ts"] == tied) == list(range(5_000, 30_000))


def test_23_rows_in_each_whole_second_are_all_kept(sync: Sync, tables: SmallTables) -> None:
    source = tables.make_from(
        "SELECT n, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL DIV(n, 23) SECOND) AS ts"
        " FROM UNNEST(GENERATE_ARRAY(0, 19999)) AS n"
    )
    contract, report = land(sync, source, START, END)
    assert_counts_agree(sync, contract, report, 20_000)
    for row in sync.rows(contract):
        second = row["n"] // 23
        assert row["ts"] == f"2026-01-05T00:{second // 60:02}:{second % 60:02}.000000Z"


def test_a_row_of_2099_is_not_written_yet_and_holds_up_no_other(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        f"SELECT n, {MINUTES} FROM UNNEST(GENERATE_ARRAY(0, 59)) AS n"
        " UNION ALL SELECT 2099, TIMESTAMP '2099-06-01 12:30:00'"
    )
    contract, report = land(sync, source, START, utc(2026, 1, 5, 1))
    assert_counts_agree(sync, contract, report, 60)
    tables.run(
        f"INSERT INTO {source.sql} (n, ts) SELECT n, {MINUTES}"
        " FROM UNNEST(GENERATE_ARRAY(60, 119)) AS n"
    )
    sync.run(contract, sync.cells(contract, utc(2026, 1, 5, 1), END))
    assert sorted(row["n"] for row in sync.rows(contract)) == list(range(120))
    of_2099 = sync.cells(contract, utc(2099, 6, 1, 12), utc(2099, 6, 1, 13))
    with pytest.raises(WindowStillOpen, match="2099-06-01"):
        sync.run(contract, of_2099)
    assert len(sync.rows(contract)) == 120


@pytest.mark.promise("A1", "A2", "J2")
def test_a_target_that_is_not_there_is_made_with_the_columns_of_the_source(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(f"SELECT n, {MINUTES}, 'x' AS name FROM {HUNDRED}")
    contract = sync.contract(source)
    assert sync.harper.describe_table(contract.target.table) is None
    report = sync.run(contract, sync.cells(contract, START, END))
    assert report.table_action is TableAction.CREATED
    described = sync.harper.describe_table(contract.target.table)
    assert described is not None
    names = {attribute.name for attribute in described.attributes}
    assert names >= {"id", "n", "ts", "name", "_syncedAt", "_batch", "_hash"}
    assert_counts_agree(sync, contract, report, 100)


@pytest.mark.promise("A8", "A9")
@pytest.mark.parametrize("id_sql", ["CONCAT('k', CAST(n AS STRING))", "n"], ids=["text", "number"])
def test_a_source_column_id_that_is_the_key_is_the_id_in_harper(
    sync: Sync, tables: SmallTables, id_sql: str
) -> None:
    source = tables.make_from(f"SELECT {id_sql} AS id, n, {MINUTES} FROM {HUNDRED}")
    contract, report = land(sync, source, START, END, key=["id"])
    assert_counts_agree(sync, contract, report, 100)
    assert stored_rows(sync, tables, contract) == source_rows(tables, source)


@pytest.mark.promise("A8", "A9")
@pytest.mark.parametrize(
    "id_sql",
    ["CONCAT('k', CAST(DIV(n, 2) AS STRING))", "DIV(n, 2)", "IF(MOD(n, 10) = 0, NULL, n)"],
    ids=["text", "number", "some NULL"],
)
def test_a_source_column_id_that_is_not_the_key_stays_a_column(
    sync: Sync, tables: SmallTables, id_sql: str
) -> None:
    source = tables.make_from(f"SELECT {id_sql} AS id, n, {MINUTES} FROM {HUNDRED}")
    contract, report = land(sync, source, START, END)
    assert_counts_agree(sync, contract, report, 100)
    assert len({row["_id"] for row in sync.rows(contract)}) == 100
    assert stored_rows(sync, tables, contract) == source_rows(tables, source)


def test_rows_whose_key_is_null_are_quarantined_and_no_other(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        f"SELECT IF(MOD(n, 10) = 0, NULL, n) AS id, n, {MINUTES} FROM {HUNDRED}"
    )
    contract, report = land(sync, source, START, END, key=["id"])
    assert_counts_agree(sync, contract, report, 90)
    assert stored_rows(sync, tables, contract) == source_rows(tables, source, "id IS NOT NULL")
    refused = [row.rejection for row in quarantined(sync, contract)]
    assert sorted(json.loads(each.payload)["n"] for each in refused) == list(range(0, 100, 10))
    assert {each.reason for each in refused} == {"key id: NULL"}
    # Each has a name of its own, by which it can be shown.
    assert len({each.row_id for each in refused}) == 10
    assert all(str(each.row_id).startswith("no-id:") for each in refused)


@pytest.mark.parametrize("origin", ["table", "view", "query"])
def test_a_key_that_is_not_unique_is_told_with_examples_and_nothing_is_written(
    sync: Sync, tables: SmallTables, origin: str
) -> None:
    # The two rows of key 3 are in different windows, of which one is synced.
    source = tables.make_from(f"SELECT IF(n = 90, 3, n) AS k, n, {MINUTES} FROM {HUNDRED}")
    declared: dict[str, object] = {"key": ["k"]}
    if origin == "view":
        view = tables.new_name()
        tables.run(f"CREATE VIEW {view.sql} AS SELECT * FROM {source.sql}")
        source = view
    elif origin == "query":
        declared["custom_query"] = f"SELECT * FROM {source.sql}"
    contract = sync.contract(source, **declared)
    with pytest.raises(KeyNotUnique) as told:
        sync.run(contract, sync.cells(contract, START, utc(2026, 1, 5, 1)))
    for part in ("k = 3 (2 rows)", "Take key out", "latest: true", "Nothing was written"):
        assert part in str(told.value)
    assert sync.harper.describe_table(contract.target.table) is None
    table = sync.stores.ledger.find_route(contract.id)
    assert table is not None
    assert sync.stores.ledger.history(table) == ()


@pytest.mark.promise("A9")
def test_500_identical_rows_are_500_rows_each_time_they_are_synced(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        "SELECT TIMESTAMP '2026-01-05 00:30:00.123456' AS ts, 'same' AS name, 1.5 AS ratio,"
        " CAST(NULL AS INT64) AS nothing FROM UNNEST(GENERATE_ARRAY(1, 500))"
        f" UNION ALL SELECT {MINUTES}, CAST(n AS STRING), n / 3, n FROM {HUNDRED}"
    )
    contract, report = land(sync, source, START, END)
    assert_counts_agree(sync, contract, report, 600)
    modes = {(cell.cell.window.start.hour, cell.mode) for cell in report.cells}
    assert modes == {(0, Mode.NUMBER), (1, Mode.COPY)}
    rows = sync.rows(contract)
    assert [row["name"] for row in rows].count("same") == 500
    sync.run(contract, sync.cells(contract, START, END))
    assert without_metadata(sync.rows(contract)) == without_metadata(rows)


@pytest.mark.promise("A9", "B4")
def test_500_rows_one_microsecond_apart_are_500_rows(sync: Sync, tables: SmallTables) -> None:
    source = tables.make_from(
        "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-01-05 00:59:59.999750', INTERVAL n MICROSECOND)"
        " AS ts, 'same' AS name FROM UNNEST(GENERATE_ARRAY(0, 499)) AS n"
    )
    contract, report = land(sync, source, START, END)
    assert_counts_agree(sync, contract, report, 500)
    assert {cell.mode for cell in report.cells} == {Mode.COPY}
    first = utc(2026, 1, 5, 0, 59, 59, 999_750)
    moments = [first + timedelta(microseconds=n) for n in range(500)]
    assert sorted(row["ts"] for row in sync.rows(contract)) == [
        moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for moment in moments
    ]


def test_rows_of_1969_are_synced_and_rows_without_a_time_belong_to_no_window(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(
        "SELECT n, TIMESTAMP_ADD(TIMESTAMP '1969-12-31 23:00:00.000001', INTERVAL n MINUTE) AS ts"
        f" FROM {HUNDRED} UNION ALL SELECT 100 + n, CAST(NULL AS TIMESTAMP) FROM {HUNDRED}"
    )
    contract, report = land(sync, source, utc(1969, 12, 31, 23), utc(1970, 1, 1, 1))
    assert_counts_agree(sync, contract, report, 100)
    hours = [(cell.cell.window.start.year, cell.result.written) for cell in report.cells]
    assert sum(written for year, written in hours if year == 1969) == 60
    assert stored_rows(sync, tables, contract) == source_rows(tables, source, "n < 100")
    assert quarantined(sync, contract) == ()


@pytest.mark.promise("A9")
@pytest.mark.parametrize("key", [["a", "b"], ["f"]], ids=["composite", "FLOAT64"])
def test_a_key_that_harper_cannot_take_is_an_id_that_a_changed_row_keeps(
    sync: Sync, tables: SmallTables, key: list[str]
) -> None:
    source = tables.make_from(
        "SELECT n, CONCAT('a', CAST(DIV(n, 10) AS STRING)) AS a, MOD(n, 10) AS b, n / 7 AS f,"
        f" 'old' AS state, {MINUTES} FROM {HUNDRED}"
    )
    contract, report = land(sync, source, START, END, key=key)
    assert_counts_agree(sync, contract, report, 100)
    before = {row["n"]: row["id"] for row in sync.rows(contract)}
    assert len(set(before.values())) == 100
    tables.run(f"UPDATE {source.sql} SET state = 'new' WHERE MOD(n, 2) = 0")
    sync.run(contract, sync.cells(contract, START, END))
    assert {row["n"]: row["id"] for row in sync.rows(contract)} == before
    assert stored_rows(sync, tables, contract) == source_rows(tables, source)


@pytest.mark.promise("B4", "G3")
@pytest.mark.parametrize(
    ("time_sql", "declared", "end"),
    [
        ("DATETIME_ADD(DATETIME '2026-01-05 00:00:00.000001', INTERVAL n MINUTE)", {}, END),
        ("DATE_ADD(DATE '2026-01-05', INTERVAL MOD(n, 3) DAY)", {"window": "1d"}, utc(2026, 1, 8)),
    ],
    ids=["DATETIME", "DATE"],
)
@pytest.mark.parametrize("origin", ["table", "query"])
def test_the_timestamp_column_may_have_no_zone_or_no_time(
    sync: Sync,
    tables: SmallTables,
    time_sql: str,
    declared: dict[str, object],
    end: datetime,
    origin: str,
) -> None:
    source = tables.make_from(f"SELECT n, {time_sql} AS ts FROM {HUNDRED}")
    if origin == "query":
        declared = {**declared, "custom_query": f"SELECT * FROM {source.sql}"}
    contract, report = land(sync, source, START, end, **declared)
    assert_counts_agree(sync, contract, report, 100)
    assert stored_rows(sync, tables, contract) == source_rows(tables, source)
    assert len({cell.cell.window for cell in report.cells if cell.result.written}) == (
        3 if declared.get("window") else 2
    )


@pytest.mark.promise("G4", "G5")
def test_only_the_rows_and_columns_that_the_contract_names_arrive(
    sync: Sync, tables: SmallTables
) -> None:
    source = tables.make_from(f"SELECT n, {MINUTES}, 'x' AS name, 'y' AS other FROM {HUNDRED}")
    contract, report = land(
        sync, source, START, END, columns=["ts", "n", "name"], row_filter="n < 30 OR n >= 90"
    )
    assert_counts_agree(sync, contract, report, 40)
    rows = sync.rows(contract)
    assert sorted(row["n"] for row in rows) == [*range(30), *range(90, 100)]
    own = {"id", "_syncedAt", "_batch", "_hash"}
    assert {name for row in rows for name in row} - own == {"ts", "n", "name"}

"""Fingerprints are asked for in one query, and every window has one."""

from datetime import datetime, timedelta

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.fingerprint import (
    Outside,
    SourceAtInstant,
    count_outside,
    fingerprint_sql,
    fingerprints,
    micros_sql,
    outside_sql,
)
from bq_harper_assets.stores.bigquery.row_text import row_hash
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.protocols import Fingerprint
from bq_harper_assets_tests.stores.bigquery.by_hand import BigQueryByHand
from bq_harper_assets_tests.stores.small_tables import utc

HOUR = timedelta(hours=1)
DAY = utc(2026, 3, 1)
TS, K = Column(name="ts", kind=Kind.TIMESTAMP), Column(name="k", kind=Kind.INT64)
V = Column(name="v", kind=Kind.STRING)
TABLE = TableRef("p", "d", "t")
NEVER_CHANGES = SourceAtInstant(table=TABLE, columns=(TS, K, V), time_column=TS)


def micros(at: datetime) -> int:
    return (at - utc(1970, 1, 1)) // timedelta(microseconds=1)


def test_each_window_has_its_own_fingerprint_and_one_without_rows_has_an_empty_one() -> None:
    told = [
        {"w": micros(DAY + 2 * HOUR), "n": 5, "d": 4, "x": 3, "low": 2, "high": 1},
        {"w": micros(DAY), "n": 10, "d": 9, "x": -8, "low": 7, "high": 6},
    ]
    with BigQueryByHand(lambda asked: told) as service, service.queries() as queries:
        found = fingerprints(queries, NEVER_CHANGES, DAY, DAY + 2.5 * HOUR, HOUR)
    assert found == {
        DAY: Fingerprint(rows=10, distinct=9, xor=-8, low=7, high=6),
        DAY + HOUR: Fingerprint(),
        DAY + 2 * HOUR: Fingerprint(rows=5, distinct=4, xor=3, low=2, high=1),
    }
    assert list(found) == sorted(found)
    [asked] = service.asked
    assert asked.sql == fingerprint_sql(NEVER_CHANGES, DAY, DAY + 2.5 * HOUR, HOUR)


def test_the_first_window_is_the_one_in_which_the_range_begins() -> None:
    with BigQueryByHand() as service, service.queries() as queries:
        found = fingerprints(queries, NEVER_CHANGES, DAY + HOUR / 2, DAY + 2 * HOUR, HOUR)
    assert list(found) == [DAY, DAY + HOUR]


def test_the_rows_of_a_window_are_told_by_count_contents_and_three_sums_of_their_hashes() -> None:
    start = "UNIX_MICROS(`ts`) - MOD(MOD(UNIX_MICROS(`ts`), 3600000000) + 3600000000, 3600000000)"
    assert fingerprint_sql(NEVER_CHANGES, DAY, DAY + HOUR, HOUR) == (
        "SELECT w, COUNT(*) AS n, COUNT(DISTINCT h) AS d, BIT_XOR(h) AS x,"
        " SUM(h & 4294967295) AS low, SUM((h >> 32) & 4294967295) AS high"
        f" FROM (SELECT {start} AS w, {row_hash([TS, K, V])} AS h FROM `p`.`d`.`t`"
        " WHERE (`ts` >= TIMESTAMP '2026-03-01 00:00:00.000000+00:00'"
        " AND `ts` < TIMESTAMP '2026-03-01 01:00:00.000000+00:00')) GROUP BY w"
    )


def test_rows_without_a_key_are_distinct_by_the_columns_of_their_ids() -> None:
    def sql(*id_columns: Column) -> str:
        source = SourceAtInstant(
            table=TABLE, columns=(TS, K, V), time_column=TS, id_columns=id_columns, row_filter="k"
        )
        return fingerprint_sql(source, DAY, DAY + HOUR, HOUR)

    assert "COUNT(DISTINCT i) AS d" in sql(TS, K)
    assert f"{row_hash([TS, K, V])} AS h, {row_hash([TS, K])} AS i FROM" in sql(TS, K)
    assert "COUNT(DISTINCT h) AS d" in sql(V, K, TS)
    assert sql(V, K, TS) == sql()
    assert sql().endswith(" AND (k)) GROUP BY w")


def test_a_table_is_read_as_of_its_instant_and_a_kept_result_as_it_is() -> None:
    at = SourceAtInstant(table=TABLE, columns=(), time_column=TS, at=DAY)
    assert at.sql == (
        "`p`.`d`.`t` FOR SYSTEM_TIME AS OF TIMESTAMP '2026-03-01 00:00:00.000000+00:00'"
    )
    assert NEVER_CHANGES.sql == "`p`.`d`.`t`"


def test_rows_outside_every_window_are_counted_by_the_reason() -> None:
    told = [{"without_time": 1, "before_start": 2, "in_future": 3}]
    now = DAY + HOUR
    with BigQueryByHand(lambda asked: told) as service, service.queries() as queries:
        found = count_outside(queries, NEVER_CHANGES, DAY, now)
    assert found == Outside(without_time=1, before_start=2, in_future=3)
    [asked] = service.asked
    assert asked.sql == outside_sql(NEVER_CHANGES, DAY, now)
    begin = "TIMESTAMP '2026-03-01 00:00:00.000000+00:00'"
    end = "TIMESTAMP '2026-03-01 01:00:00.000000+00:00'"
    assert asked.sql == (
        f"SELECT COUNTIF(`ts` IS NULL) AS without_time, COUNTIF(`ts` < {begin}) AS before_start,"
        f" COUNTIF(`ts` >= {end}) AS in_future FROM `p`.`d`.`t`"
        f" WHERE (`ts` IS NULL OR `ts` < {begin} OR `ts` >= {end})"
    )


def test_times_without_a_zone_are_taken_as_utc() -> None:
    assert micros_sql(TS) == "UNIX_MICROS(`ts`)"
    for kind in (Kind.DATETIME, Kind.DATE):
        assert micros_sql(Column(name="d", kind=kind)) == "UNIX_MICROS(TIMESTAMP(`d`))"

"""Fingerprints on the real emulator: equal contents, equal fingerprint; any change, another one."""

import io
import json
import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.dataset import Dataset
from bq_harper_assets.stores.bigquery.fingerprint import (
    Outside,
    SourceAtInstant,
    count_outside,
    fingerprints,
)
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.protocols import Fingerprint
from bq_harper_assets_tests.stores.small_tables import DATASET, SmallTables, utc

pytestmark = pytest.mark.bigquery
HOUR = timedelta(hours=1)
DAY = utc(2026, 3, 1)
TS = Column(name="ts", kind=Kind.TIMESTAMP)


@pytest.fixture(scope="module")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    return SmallTables.at(bigquery_connection)


def struct(name: str, *fields: Column, repeated: bool = False) -> Column:
    return Column(name=name, kind=Kind.STRUCT, repeated=repeated, fields=fields)


def many(name: str, kind: Kind) -> Column:
    return Column(name=name, kind=kind, repeated=True)


# Each column: its type in SQL, a value, and values that differ from it and from each other.
EVERY_TYPE: list[tuple[Column, str, list[str]]] = [
    (
        Column(name="i", kind=Kind.INT64),
        "INT64",
        ["1", "-1", "9007199254740993", "9007199254740992", "NULL"],
    ),
    (
        Column(name="f", kind=Kind.FLOAT64),
        "FLOAT64",
        [
            "0.0",
            "0.1",
            "-0.1",
            "1e300",
            "CAST('NaN' AS FLOAT64)",
            "CAST('inf' AS FLOAT64)",
            "CAST('-inf' AS FLOAT64)",
            "NULL",
        ],
    ),
    (
        Column(name="n", kind=Kind.NUMERIC),
        "NUMERIC",
        ["NUMERIC '1.5'", "NUMERIC '1.501'", "NUMERIC '-1.5'", "NULL"],
    ),
    (Column(name="b", kind=Kind.BOOL), "BOOL", ["TRUE", "FALSE", "NULL"]),
    (
        Column(name="s", kind=Kind.STRING),
        "STRING",
        ["'a'", "'A'", "''", "'a '", "'null'", "'é'", "'e\u0301'", "'\"a'", "NULL"],
    ),
    (
        Column(name="y", kind=Kind.BYTES),
        "BYTES",
        ["FROM_HEX('00ff')", "FROM_HEX('00')", "FROM_HEX('ff00')", "FROM_HEX('')", "NULL"],
    ),
    (
        Column(name="t", kind=Kind.TIMESTAMP),
        "TIMESTAMP",
        [
            "TIMESTAMP '2026-01-01 00:00:00+00'",
            "TIMESTAMP '2026-01-01 00:00:00.000001+00'",
            "TIMESTAMP '0001-01-01 00:00:00+00'",
            "NULL",
        ],
    ),
    (
        Column(name="dt", kind=Kind.DATETIME),
        "DATETIME",
        ["DATETIME '2026-01-01 00:00:00'", "DATETIME '2026-01-01 00:00:00.000001'", "NULL"],
    ),
    (Column(name="d", kind=Kind.DATE), "DATE", ["DATE '2026-01-01'", "DATE '9999-12-31'", "NULL"]),
    (
        Column(name="tm", kind=Kind.TIME),
        "TIME",
        ["TIME '00:00:00'", "TIME '00:00:00.000001'", "NULL"],
    ),
    (
        Column(name="j", kind=Kind.JSON),
        "JSON",
        ["JSON '{\"a\":1}'", 'JSON \'{"a":"1"}\'', "JSON '[]'", "JSON 'null'", "NULL"],
    ),
    (
        Column(name="g", kind=Kind.GEOGRAPHY),
        "GEOGRAPHY",
        ["ST_GEOGPOINT(1, 2)", "ST_GEOGPOINT(2, 1)", "NULL"],
    ),
    (
        Column(name="iv", kind=Kind.INTERVAL),
        "INTERVAL",
        ["INTERVAL 1 MONTH", "INTERVAL 30 DAY", "INTERVAL 1 SECOND", "NULL"],
    ),
    (
        Column(name="r", kind=Kind.RANGE, spelling="RANGE<DATE>"),
        "RANGE<DATE>",
        [
            "RANGE(DATE '2026-01-01', DATE '2026-02-01')",
            "RANGE(DATE '2026-01-01', NULL)",
            "RANGE(CAST(NULL AS DATE), DATE '2026-02-01')",
            "NULL",
        ],
    ),
    (many("ai", Kind.INT64), "ARRAY<INT64>", ["[1, 2]", "[2, 1]", "[12]", "[1, 2, 2]", "[]"]),
    (many("af", Kind.FLOAT64), "ARRAY<FLOAT64>", ["[0.5]", "[0.5, 0.5]", "[0.0]", "[]"]),
    (many("asx", Kind.STRING), "ARRAY<STRING>", ["['a', 'b']", "['a,b']", "['a\",\"b']", "[]"]),
    (many("ay", Kind.BYTES), "ARRAY<BYTES>", ["[FROM_HEX('00')]", "[FROM_HEX('0000')]", "[]"]),
    (
        struct(
            "st", Column(name="x", kind=Kind.INT64), struct("q", Column(name="z", kind=Kind.BYTES))
        ),
        "STRUCT<x INT64, q STRUCT<z BYTES>>",
        [
            "STRUCT(1 AS x, STRUCT(FROM_HEX('01') AS z) AS q)",
            "STRUCT(2 AS x, STRUCT(FROM_HEX('01') AS z) AS q)",
            "STRUCT(1 AS x, STRUCT(FROM_HEX('02') AS z) AS q)",
            "STRUCT(1 AS x, STRUCT(CAST(NULL AS BYTES) AS z) AS q)",
            "STRUCT(CAST(NULL AS INT64) AS x, CAST(NULL AS STRUCT<z BYTES>) AS q)",
            "NULL",
        ],
    ),
    (
        struct(
            "ev",
            Column(name="a", kind=Kind.INT64),
            struct("c", many("w", Kind.FLOAT64), repeated=True),
            repeated=True,
        ),
        "ARRAY<STRUCT<a INT64, c ARRAY<STRUCT<w ARRAY<FLOAT64>>>>>",
        [
            "[STRUCT(1 AS a, [STRUCT([1.5, 2.5] AS w)] AS c)]",
            "[STRUCT(1 AS a, [STRUCT([2.5, 1.5] AS w)] AS c)]",
            "[STRUCT(1 AS a, [STRUCT([1.5] AS w), STRUCT([2.5] AS w)] AS c)]",
            "[STRUCT(1 AS a, [STRUCT([1.5, 2.5] AS w)] AS c),"
            " STRUCT(1 AS a, [STRUCT([1.5, 2.5] AS w)] AS c)]",
            "[]",
        ],
    ),
]
COLUMNS = tuple(column for column, _, _ in EVERY_TYPE)
NAMES = ", ".join(column.name for column in COLUMNS)


def test_every_single_change_of_every_type_changes_the_fingerprint(tables: SmallTables) -> None:
    labels = ["the row", "the row again"]
    expressions = []
    for column, _, (value, *others) in EVERY_TYPE:
        first = len(labels)
        labels += [f"{column.name} = {other}" for other in others]
        changes = " ".join(f"WHEN {first + n} THEN {other}" for n, other in enumerate(others))
        expressions.append(f"CASE w {changes} ELSE {value} END")
    table = tables.make(
        "ts TIMESTAMP, " + ", ".join(f"{column.name} {kind}" for column, kind, _ in EVERY_TYPE)
    )
    tables.run(
        f"INSERT INTO {table.sql} (ts, {NAMES})"
        f" SELECT TIMESTAMP_ADD({timestamp(DAY)}, INTERVAL w HOUR), {', '.join(expressions)}"
        f" FROM UNNEST(GENERATE_ARRAY(0, {len(labels) - 1})) AS w"
    )

    found = fingerprints(
        tables.queries,
        SourceAtInstant(table=table, columns=COLUMNS, time_column=TS),
        DAY,
        DAY + len(labels) * HOUR,
        HOUR,
    )

    same: dict[Fingerprint, list[str]] = {}
    for label, fingerprint in zip(labels, found.values(), strict=True):
        same.setdefault(fingerprint, []).append(label)
    assert [group for group in same.values() if len(group) > 1] == [labels[:2]]


def test_a_column_that_is_still_empty_changes_nothing(tables: SmallTables) -> None:
    table = tables.make(
        "ts TIMESTAMP, k INT64, st STRUCT<x INT64, y STRING, zs ARRAY<INT64>>,"
        " new STRING, news ARRAY<STRING>, newst STRUCT<q INT64>,"
        " ev ARRAY<STRUCT<a INT64, b INT64>>"
    )
    tables.run(
        f"INSERT INTO {table.sql} (ts, k, st, ev) VALUES ({timestamp(DAY)}, 1,"
        " STRUCT(1, CAST(NULL AS STRING), CAST([] AS ARRAY<INT64>)),"
        " [STRUCT(1, CAST(NULL AS INT64))])"
    )
    x, a = Column(name="x", kind=Kind.INT64), Column(name="a", kind=Kind.INT64)
    k = Column(name="k", kind=Kind.INT64)
    before = (k, struct("st", x), struct("ev", a, repeated=True))
    after = (
        Column(name="new", kind=Kind.STRING),
        many("news", Kind.STRING),
        struct("newst", Column(name="q", kind=Kind.INT64)),
        struct("ev", a, Column(name="b", kind=Kind.INT64), repeated=True),
        struct("st", Column(name="y", kind=Kind.STRING), x, many("zs", Kind.INT64)),
        k,
    )

    old, new = (
        fingerprints(
            tables.queries,
            SourceAtInstant(table=table, columns=columns, time_column=TS),
            DAY,
            DAY + HOUR,
            HOUR,
        )
        for columns in (before, after)
    )

    assert old == new
    assert old[DAY].rows == 1


@pytest.mark.parametrize("kind", [Kind.TIMESTAMP, Kind.DATETIME, Kind.DATE])
def test_rows_are_counted_in_their_windows_and_none_is_forgotten(
    tables: SmallTables, kind: Kind
) -> None:
    table = tables.make(f"ts {kind}, k INT64")
    times = ["1969-12-30", "1969-12-31", "1969-12-31", "1970-01-01", "1970-01-03", "2999-01-01"]
    rows = [f"({kind} '{time}', {k})" for k, time in enumerate([*times, "1970-01-01"])]
    tables.run(f"INSERT INTO {table.sql} (ts, k) VALUES {', '.join(rows)}, (NULL, 7), (NULL, 8)")
    source = SourceAtInstant(
        table=table,
        columns=(Column(name="k", kind=Kind.INT64),),
        time_column=Column(name="ts", kind=kind),
    )
    start, end, day = utc(1969, 12, 31), utc(1970, 1, 4), timedelta(days=1)

    found = fingerprints(tables.queries, source, start, end, day)
    outside = count_outside(tables.queries, source, start, utc(2026, 1, 1))

    counts = {window: fingerprint.rows for window, fingerprint in found.items()}
    assert counts == {start: 2, start + day: 2, start + 2 * day: 0, start + 3 * day: 1}
    assert outside == Outside(without_time=2, before_start=1, in_future=1)
    assert sum(counts.values()) + 4 == 9


def test_a_window_that_begins_before_1970_is_cut_like_the_others(tables: SmallTables) -> None:
    table = tables.make_from(
        "SELECT TIMESTAMP_MICROS(m) AS ts, m AS k FROM UNNEST([-3600000001, -3600000000, -1, 0]) m"
    )
    source = SourceAtInstant(
        table=table, columns=(Column(name="k", kind=Kind.INT64),), time_column=TS
    )

    found = fingerprints(tables.queries, source, utc(1969, 12, 31, 22), utc(1970, 1, 1, 1), HOUR)

    assert [fingerprint.rows for fingerprint in found.values()] == [1, 2, 1]


def test_the_filter_decides_and_the_end_of_an_open_window_may_lie_inside_it(
    tables: SmallTables,
) -> None:
    table = tables.make_from(
        "SELECT TIMESTAMP_ADD(TIMESTAMP '2026-03-01 00:00:00+00', INTERVAL m MINUTE) AS ts, m AS k"
        " FROM UNNEST(GENERATE_ARRAY(0, 119)) AS m"
    )
    source = SourceAtInstant(
        table=table,
        columns=(Column(name="k", kind=Kind.INT64),),
        time_column=TS,
        row_filter="k < 10 OR MOD(k, 2) = 0",
    )

    found = fingerprints(tables.queries, source, DAY, DAY + 1.5 * HOUR, HOUR)

    assert {window: f.rows for window, f in found.items()} == {DAY: 35, DAY + HOUR: 15}


def test_a_pinned_fingerprint_stays_when_the_table_moves_on(tables: SmallTables) -> None:
    table = tables.make("ts TIMESTAMP, k INT64")
    tables.run(f"INSERT INTO {table.sql} VALUES ({timestamp(DAY)}, 1), ({timestamp(DAY)}, 2)")
    columns = (Column(name="k", kind=Kind.INT64),)
    then = SourceAtInstant(
        table=table, columns=columns, time_column=TS, at=server_time(tables.queries)
    )
    before = fingerprints(tables.queries, then, DAY, DAY + HOUR, HOUR)
    tables.run(f"UPDATE {table.sql} SET k = 3 WHERE k = 2")

    after = fingerprints(tables.queries, then, DAY, DAY + HOUR, HOUR)
    now = SourceAtInstant(
        table=table, columns=columns, time_column=TS, at=server_time(tables.queries)
    )
    changed = fingerprints(tables.queries, now, DAY, DAY + HOUR, HOUR)

    assert after == before
    assert changed != before
    assert changed[DAY].rows == before[DAY].rows == 2


def test_equal_rows_are_seen_in_the_number_of_distinct_contents(tables: SmallTables) -> None:
    table = tables.make("ts TIMESTAMP, k INT64")
    tables.run(
        f"INSERT INTO {table.sql} VALUES "
        + ", ".join(f"({timestamp(DAY)}, {k})" for k in (1, 1, 1, 2))
    )
    source = SourceAtInstant(
        table=table, columns=(TS, Column(name="k", kind=Kind.INT64)), time_column=TS
    )

    found = fingerprints(tables.queries, source, DAY, DAY + HOUR, HOUR)

    assert (found[DAY].rows, found[DAY].distinct) == (4, 2)


ROW = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 1),
        "f": st.none() | st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5]),
        "s": st.none() | st.sampled_from(["", "a", '"', "\\", "a,b", '"s":"a"', "\n", "\u00e9"]),
        "y": st.none() | st.binary(max_size=2),
        "d": st.none() | st.dates(date(1, 1, 1), date(9999, 12, 31)),
        "fs": st.lists(st.sampled_from([0.0, -0.0, 2.5]), max_size=2),
        "ss": st.lists(st.sampled_from(["a", "b", "a,b", '"']), max_size=2),
        "st": st.none()
        | st.fixed_dictionaries(
            {
                "x": st.none() | st.integers(0, 1),
                "ys": st.lists(st.binary(max_size=1), max_size=2),
            }
        ),
        "ev": st.lists(st.fixed_dictionaries({"a": st.none() | st.integers(0, 1)}), max_size=2),
    }
)
ROW_COLUMNS = (
    Column(name="i", kind=Kind.INT64),
    Column(name="f", kind=Kind.FLOAT64),
    Column(name="s", kind=Kind.STRING),
    Column(name="y", kind=Kind.BYTES),
    Column(name="d", kind=Kind.DATE),
    many("fs", Kind.FLOAT64),
    many("ss", Kind.STRING),
    struct("st", Column(name="x", kind=Kind.INT64), many("ys", Kind.BYTES)),
    struct("ev", Column(name="a", kind=Kind.INT64), repeated=True),
)
ROW_ARROW = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("i", pa.int64()),
        pa.field("f", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("y", pa.binary()),
        pa.field("d", pa.date32()),
        pa.field("fs", pa.list_(pa.float64())),
        pa.field("ss", pa.list_(pa.string())),
        pa.field("st", pa.struct([("x", pa.int64()), ("ys", pa.list_(pa.binary()))])),
        pa.field("ev", pa.list_(pa.struct([("a", pa.int64())]))),
    ]
)
ROW_DDL = (
    "ts TIMESTAMP, i INT64, f FLOAT64, s STRING, y BYTES, d DATE, fs ARRAY<FLOAT64>,"
    " ss ARRAY<STRING>, st STRUCT<x INT64, ys ARRAY<BYTES>>, ev ARRAY<STRUCT<a INT64>>"
)


@settings(
    deadline=None,
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(windows=st.lists(st.lists(ROW, max_size=3), min_size=4, max_size=16), data=st.data())
def test_windows_have_equal_fingerprints_exactly_if_they_hold_equal_rows(
    tables: SmallTables, windows: list[list[dict[str, Any]]], data: st.DataObject
) -> None:
    windows = [*windows, data.draw(st.permutations(windows[0]))]
    placed = [
        {"ts": DAY + n * HOUR + k * timedelta(seconds=1), **row}
        for n, rows in enumerate(windows)
        for k, row in enumerate(rows)
    ]
    table = load(tables, data.draw(st.permutations(placed)))

    found = fingerprints(
        tables.queries,
        SourceAtInstant(table=table, columns=ROW_COLUMNS, time_column=TS),
        DAY,
        DAY + len(windows) * HOUR,
        HOUR,
    )

    contents = [sorted(content(row) for row in rows) for rows in windows]
    prints = list(found.values())
    for n, mine in enumerate(contents):
        assert (prints[n].rows, prints[n].distinct) == (len(mine), len(set(mine)))
        for m, other in enumerate(contents):
            assert (prints[n] == prints[m]) == (mine == other)
            assert (prints[n].text == prints[m].text) == (mine == other)


def content(row: dict[str, Any]) -> str:
    """What a row holds, told without any SQL."""

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: told(v) for k, v in sorted(value.items()) if v is not None and v != []}
        if isinstance(value, list):
            return [told(item) for item in value]
        if isinstance(value, float):
            return f"{value + 0.0!r}"
        return value.hex() if isinstance(value, bytes) else value

    return json.dumps(told(row), default=str)


def load(tables: SmallTables, rows: Sequence[dict[str, Any]]) -> TableRef:
    table = tables.make(ROW_DDL)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=ROW_ARROW), file)
    file.seek(0)
    Dataset(tables.queries.connection, DATASET).append_parquet(table.table, file)
    return table


def micros(at: datetime) -> int:
    return (at - utc(1970, 1, 1)) // timedelta(microseconds=1)


def timestamp(at: datetime) -> str:
    return f"TIMESTAMP_MICROS({micros(at)})"


def test_a_table_of_three_hundred_columns_has_a_fingerprint_that_its_last_column_changes(
    tables: SmallTables,
) -> None:
    names = [f"c{number:03}" for number in range(300)]
    columns = tuple(Column(name=name, kind=Kind.INT64) for name in names)
    values = ", ".join(f"{at} AS {name}" for at, name in enumerate(names))
    wide = tables.make_from(f"SELECT TIMESTAMP '2026-03-01 00:30:00+00' AS ts, {values}")
    source = SourceAtInstant(table=wide, columns=(TS, *columns), time_column=TS)
    before = fingerprints(tables.queries, source, DAY, DAY + HOUR, HOUR)[DAY]
    tables.run(f"UPDATE {wide.sql} SET c299 = 0 WHERE TRUE")
    after = fingerprints(tables.queries, source, DAY, DAY + HOUR, HOUR)[DAY]
    assert (before.rows, after.rows) == (1, 1)
    assert before.text != after.text

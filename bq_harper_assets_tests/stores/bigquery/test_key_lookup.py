"""Keys as Harper stores them find their rows again, whatever their type."""

import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant
from bq_harper_assets.stores.bigquery.key_lookup import times_of_keys
from bq_harper_assets.stores.bigquery.server_time import server_time
from bq_harper_assets_tests.stores.small_tables import SmallTables

pytestmark = pytest.mark.bigquery
TIME = Column(name="ts", kind=Kind.TIMESTAMP)
VALUES = [
    (Kind.STRING, "'a \"quoted\" ü, [name]'", 'a "quoted" ü, [name]'),
    (Kind.INT64, "9007199254740991", "9007199254740991"),
    (Kind.NUMERIC, "NUMERIC '12.5'", "12.5"),
    (Kind.BOOL, "TRUE", "true"),
    (Kind.DATE, "DATE '2026-01-05'", "2026-01-05"),
    (Kind.DATETIME, "DATETIME '2026-01-05 01:02:03.000004'", "2026-01-05T01:02:03.000004"),
    (Kind.TIMESTAMP, "TIMESTAMP '2026-01-05 01:02:03.000004+00'", "2026-01-05T01:02:03.000004Z"),
    (Kind.TIME, "TIME '01:02:03.000004'", "01:02:03.000004"),
    (Kind.BYTES, "FROM_BASE64('AP8=')", "AP8="),
]


@pytest.fixture(scope="module")
def tables(bigquery_connection: BigQueryConnection) -> SmallTables:
    return SmallTables.at(bigquery_connection)


@pytest.mark.parametrize(("kind", "literal", "text"), VALUES, ids=[kind for kind, *_ in VALUES])
def test_a_stored_key_finds_its_row(
    tables: SmallTables, kind: Kind, literal: str, text: str
) -> None:
    source = tables.make_from(
        f"SELECT {literal} AS k, 'x' AS other, TIMESTAMP '1970-01-01 00:00:01' AS ts"
    )
    key = [Column(name="k", kind=kind), Column(name="other", kind=Kind.STRING)]
    pinned = SourceAtInstant(
        table=source, columns=(), time_column=TIME, at=server_time(tables.queries)
    ).sql
    both = [[text, "y"], [text, "x"]]
    found = times_of_keys(tables.queries, pinned, None, key, TIME, both, table="t")
    assert found == {1: 1_000_000}
    one = times_of_keys(tables.queries, source.sql, None, key[:1], TIME, [[text]], table="t")
    assert one == {0: 1_000_000}
    if kind is not Kind.STRING:
        none = [["not of its kind!", "x"], [text, "x"]]
        found = times_of_keys(tables.queries, pinned, None, key, TIME, none, table="t")
        assert found == {1: 1_000_000}


def test_a_row_without_a_time_is_told_from_one_that_is_gone_or_filtered_out(
    tables: SmallTables,
) -> None:
    source = tables.make("k INT64, ts TIMESTAMP")
    tables.run(f"INSERT INTO {source.sql} (k, ts) VALUES (1, NULL), (2, NULL)")
    key = [Column(name="k", kind=Kind.INT64)]
    texts = [["1"], ["2"], ["3"]]
    found = times_of_keys(tables.queries, source.sql, "k <> 2", key, TIME, texts, table="t")
    assert found == {0: None}

"""Values at the edges of their types, rows that cannot be stored, and another time zone."""

import json
from pathlib import Path
from typing import Any

import pytest
from google.cloud.bigquery import SchemaField as Field
from google.cloud.bigquery import Table

from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets_tests.stores.small_tables import SmallTables, utc
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.run_elsewhere import Errand
from bq_harper_assets_tests.sync.side_by_side import (
    assert_counts_agree,
    land,
    quarantined,
    source_rows,
    stored_rows,
    without_metadata,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
START, END = utc(2026, 1, 5), utc(2026, 1, 5, 1)
# By the API: after CREATE TABLE the emulator calls a JSON column STRING.
COLUMNS = [
    *(
        Field(*each.split())
        for each in (
            "n INT64",
            "ts TIMESTAMP",
            "whole INT64",
            "part FLOAT64",
            "price NUMERIC",
            "flag BOOL",
            "name STRING",
            "raw BYTES",
            "day DATE",
            "clock TIME",
            "local DATETIME",
            "moment TIMESTAMP",
            "doc JSON",
            "tags STRING REPEATED",
            "wholes INT64 REPEATED",
        )
    ),
    Field(
        "pair",
        "RECORD",
        fields=[
            Field("a", "INT64"),
            Field("b", "RECORD", fields=[Field("c", "STRING"), Field("d", "FLOAT64", "REPEATED")]),
        ],
    ),
    Field("pairs", "RECORD", "REPEATED", fields=[Field("k", "STRING"), Field("seen", "TIMESTAMP")]),
]
ORDINARY: list[dict[str, Any]] = [
    {"tags": [], "wholes": [], "pairs": []},
    {
        "whole": str(2**53),
        "part": 5e-324,
        "price": "0.000000001",
        "flag": True,
        "name": 'NUL \0 ship 🚢 quote " backslash \\ line \n end',
        "raw": "AAECAwT/",
        "day": "0001-01-01",
        "clock": "00:00:00",
        "local": "0001-01-01T00:00:00",
        "moment": "0001-01-01T00:00:00Z",
        "doc": json.dumps({"a": [1, {"b": None}], "ü": "🚢", "big": 1e300, "t": True}),
        "tags": ["b", "", "a 🚢"],
        "wholes": [str(2**53), str(-(2**53)), "0"],
        "pair": {"a": "1", "b": {"c": "\0", "d": [5e-324, -1.5]}},
        "pairs": [{"k": "x", "seen": "9999-12-31T23:59:59.999999Z"}, {"k": None, "seen": None}],
    },
    {
        "whole": str(-(2**53)),
        "part": -1.7976931348623157e308,
        "price": "-99999.9999999",
        "flag": False,
        "name": "",
        "raw": "",
        "day": "9999-12-31",
        "clock": "23:59:59.999999",
        "local": "9999-12-31T23:59:59.999999",
        "moment": "9999-12-31T23:59:59.999999Z",
        "doc": "[]",
        "tags": [],
        "wholes": [],
        "pair": {"a": None, "b": {"c": None, "d": []}},
        "pairs": [],
    },
    {"part": 0.1, "price": "100000000000001", "doc": '"text"', "moment": "1969-12-31T23:59:59.9Z"},
    {"part": -0.0, "price": "0", "doc": "null", "pair": {"a": "0", "b": None}},
]
# Beyond what a JSON number holds: which column, so that the reason can be checked.
BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("whole", {"whole": str(2**63 - 1)}),
    ("whole", {"whole": str(-(2**63))}),
    ("whole", {"whole": str(2**53 + 1)}),
    ("wholes[]", {"wholes": [str(2**53 + 1)]}),
    ("pair.a", {"pair": {"a": str(-(2**53) - 1), "b": None}}),
    ("price", {"price": "99999999999999999999999999999.999999999"}),
    ("price", {"price": "1234567.123456789"}),
]


@pytest.fixture(scope="module")
def edges(tables: SmallTables) -> TableRef:
    """One row for each of ORDINARY, then of BEYOND, n counting them."""
    table = make(tables, COLUMNS)
    rows = [*ORDINARY, *(row for _, row in BEYOND)]
    empty = {"tags": [], "wholes": [], "pairs": []}
    records = [
        {"n": n, "ts": f"2026-01-05T00:{n:02}:00Z", **empty, **row} for n, row in enumerate(rows)
    ]
    assert tables.queries.client.insert_rows_json(str(table), records, retry=None) == []
    return table


@pytest.mark.promise("B1", "B2", "B3", "B4", "B5", "B6", "B8", "B10")
def test_every_type_is_read_back_as_it_is_and_what_a_number_cannot_hold_is_quarantined(
    sync: Sync, tables: SmallTables, edges: TableRef
) -> None:
    contract, report = land(sync, edges, START, END)
    assert_counts_agree(sync, contract, report, len(ORDINARY))
    ordinary = source_rows(tables, edges, f"n < {len(ORDINARY)}")
    assert stored_rows(sync, tables, contract) == ordinary
    refused = [row.rejection for row in quarantined(sync, contract)]
    told = {json.loads(each.payload)["n"]: each.reason.split(":")[0] for each in refused}
    assert told == {len(ORDINARY) + at: path for at, (path, _) in enumerate(BEYOND)}


@pytest.mark.promise("B1", "B2", "B10")
def test_every_type_is_read_back_as_it_is_with_large_numbers_as_text(
    sync: Sync, tables: SmallTables, edges: TableRef
) -> None:
    values = {"int64": "string", "numeric": "string"}
    contract, report = land(sync, edges, START, END, values=values)
    assert_counts_agree(sync, contract, report, len(ORDINARY) + len(BEYOND))
    assert stored_rows(sync, tables, contract) == source_rows(tables, edges)
    assert quarantined(sync, contract) == ()


@pytest.mark.promise("A9", "B4")
def test_another_time_zone_gives_the_same_ids_and_values(
    sync: Sync, tables: SmallTables, tmp_path: Path
) -> None:
    source = tables.make_from(
        "SELECT n, TIMESTAMP_ADD(TIMESTAMP '2026-01-05', INTERVAL n MINUTE) AS ts,"
        " DATETIME_ADD(DATETIME '2026-03-08 01:30:00.5', INTERVAL n MINUTE) AS local,"
        " DATE '2026-01-05' AS day, TIME '10:00:00.000001' AS clock,"
        " [TIMESTAMP '2026-07-01 12:00:00.123456'] AS moments"
        " FROM UNNEST(GENERATE_ARRAY(0, 59)) AS n"
    )
    there, here = sync.contract(source), sync.contract(source)
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    with open_ledger(url):
        pass  # made here, so that the other process has only to run
    errand = Errand(
        bigquery=sync.stores.bigquery,
        harper=sync.stores.harper,
        ledger_url=url,
        contract=there,
        cells=sync.cells(there, START, END),
    )
    assert errand.send(TZ="America/New_York") == ["EST", "60"]
    sync.run(here, sync.cells(here, START, END))
    assert without_metadata(sync.rows(there)) == without_metadata(sync.rows(here))
    assert stored_rows(sync, tables, there) == source_rows(tables, source)


def make(tables: SmallTables, columns: list[Field]) -> TableRef:
    table = tables.new_name()
    tables.queries.client.create_table(Table(str(table), schema=columns), retry=None)
    return table

"""Columns change in BigQuery: old and new rows are right in Harper, and the proof still says so."""

import pytest

from bq_harper_assets.ledger.records import Mode
from bq_harper_assets.schema.errors import SchemaRefused
from bq_harper_assets.sync.protocols import TableAction
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.sync.conftest import Sync
from bq_harper_assets_tests.sync.evolving import (
    NEXT,
    NO,
    OLD,
    OLDER,
    OPEN,
    Evolving,
    fingerprinted,
    numbers,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
KEYED = {"key": ("number",)}


@pytest.mark.promise("A7", "A10", "D1", "D8")
def test_three_columns_that_are_added_at_once_arrive_and_no_stored_row_is_touched(
    sync: Sync, tables: SmallTables
) -> None:
    table = Evolving.made(sync, tables, "CAST(n AS STRING) AS name", **KEYED)
    before = table.held()
    assert sorted(before) == numbers(OLDER, OLD, OPEN)
    table.add(owner_id="STRING", weight="FLOAT64", tags="ARRAY<STRING>")
    values = "owner_id = CONCAT('o', CAST(MOD(number, 2) AS STRING)), weight = number / 2"
    table.change(
        f"UPDATE T SET {values}, tags = ['a', 'b'] WHERE number BETWEEN 20 AND 29 OR number = 11",
        "INSERT INTO T (number, ts, name, owner_id) VALUES (39, CURRENT_TIMESTAMP(), 'x', 'o1')",
    )

    drift = table.drift()
    assert (drift.version, drift.problem) == (2, None)
    assert [str(change) for change in drift.changes] == [
        "owner_id added (STRING): synced into owner_id from now on",
        "weight added (FLOAT64): synced into weight from now on",
        "tags added (ARRAY<STRING>): synced into tags from now on",
    ]
    assert table.drift().changes == ()

    report = table.run(NEXT, OPEN)
    assert (report.table_action, report.schema_version) == (TableAction.MIGRATED, 2)
    assert [cell.mode for cell in report.cells] == [Mode.COPY, Mode.TOPUP]
    held = table.held()
    assert {n: held[n] for n in before} == before
    new = table.values("name", "owner_id", "weight", "tags")
    assert new[21] == ("21", "o1", 10.5, ["a", "b"])
    assert new[39] == ("x", "o1", None, [])
    assert sorted(held) == [*numbers(OLDER, OLD, NEXT, OPEN), 39]

    described = sync.harper.describe_table(table.contract.target.table)
    assert described is not None
    indexes = {each.name: each.indexed for each in described.attributes}
    assert indexes["owner_id"]
    assert not indexes.get("weight")
    found = sync.harper.search_by_value(
        table.contract.target.table, "owner_id", "o1", ("number", "owner_id")
    )
    assert sorted(row["number"] for row in found) == [
        number for number, row in sorted(held.items()) if row.get("owner_id") == "o1"
    ]

    added = ("owner_id", "tags", "weight")
    table.assert_proved(OLDER, OLD, NEXT, OPEN, without={OLDER: added, OLD: added})
    assert table.look() == set()

    filling = table.declared(backfill=True)
    assert filling.look() == {OLD}
    filling.run(OLD)
    assert filling.values("owner_id", "weight", "tags")[11] == ("o1", 5.5, ["a", "b"])
    assert filling.look() == set()
    table.assert_proved(OLDER, OLD, without={OLDER: added})


@pytest.mark.promise("D2", "D4", "E5")
def test_a_column_that_changes_its_type_goes_on_beside_its_old_values(
    sync: Sync, tables: SmallTables
) -> None:
    table = Evolving.made(sync, tables, "CAST(n AS STRING) AS speed", **KEYED)
    before = table.held()
    table.remake("* REPLACE (CAST(speed AS INT64) AS speed)")
    [change] = table.drift().changes
    assert (str(change), change.severity) == (
        "speed retyped (STRING -> INT64): synced into speed_v2 from now on; speed keeps the values"
        f" it has, and is listed by bqh schema cleanup {table.contract.id}",
        "warn",
    )
    report = table.run(NEXT, OPEN)
    assert [cell.result.written for cell in report.cells] == [3, 3]
    held = table.held()
    assert {n: held[n] for n in numbers(OLDER, OLD)} == {n: before[n] for n in numbers(OLDER, OLD)}
    values = table.values("speed", "speed_v2")
    assert (values[0], values[20], values[30]) == (("0", NO), (NO, 20), ("30", 30))
    retyped = {OLDER: ("speed_v2",), OLD: ("speed_v2",)}
    table.assert_proved(OLDER, OLD, NEXT, OPEN, without=retyped)
    assert table.look() == set()

    table.remake("* REPLACE (speed + 0.5 AS speed)")
    table.change("INSERT INTO T (number, ts, speed) VALUES (39, CURRENT_TIMESTAMP(), 39.5)")
    table.run(OPEN)
    values = table.values("speed", "speed_v2", "speed_v3")
    assert (values[30], values[39]) == (("30", 30, 30.5), (NO, NO, 39.5))
    for name, kind in {"speed": str, "speed_v2": int, "speed_v3": float}.items():
        assert {type(row[name]) for row in table.held().values() if name in row} == {kind}
    table.assert_spot_is_healthy()
    third = dict.fromkeys((OLDER, OLD, NEXT), ("speed_v3",))
    table.assert_proved(OLDER, OLD, NEXT, OPEN, without=third)

    filling = table.declared(backfill=True)
    assert filling.look() == {OLDER, OLD, NEXT}
    filling.run(OLDER, OLD, NEXT)
    values = filling.values("speed", "speed_v2", "speed_v3")
    assert (values[0], values[20]) == (("0", NO, 0.5), (NO, 20, 20.5))
    assert filling.look() == set()
    table.assert_proved(OLDER, OLD, NEXT)


@pytest.mark.promise("D3", "D4")
def test_a_column_that_goes_leaves_its_values_and_is_synced_again_when_it_returns(
    sync: Sync, tables: SmallTables
) -> None:
    columns = "CONCAT('name ', CAST(n AS STRING)) AS name, n AS load"
    table = Evolving.made(sync, tables, columns, **KEYED)
    before = table.held()
    table.drop("name")
    [change] = table.drift().changes
    seen_at = sync.stores.ledger.newest_versions()[table.contract.id].recorded_at
    assert (str(change), change.severity) == (
        f"name removed (STRING): gone since {seen_at:%F %T} UTC; left out from now on; Harper"
        " keeps the values of name",
        "warn",
    )
    queries = table.noted()
    assert table.look(queries) == set()
    assert len(fingerprinted(queries)) == 2  # as it is now, and as it was at the sync
    queries = table.noted()
    assert table.look(queries) == set()
    assert len(fingerprinted(queries)) == 1
    table.run(NEXT, OPEN)
    held = table.held()
    assert {n: held[n] for n in numbers(OLDER, OLD)} == {n: before[n] for n in numbers(OLDER, OLD)}
    names = table.values("name")
    assert (names[20], names[30]) == ((NO,), ("name 30",))
    table.assert_proved(OLDER, OLD, NEXT, OPEN)

    table.assert_spot_is_healthy()
    table.change("UPDATE T SET load = 100 WHERE number = 1")
    assert table.look() == {OLDER}
    table.assert_proved(OLDER, OLD)  # as of the sync
    table.run(OLDER)
    assert table.values("name", "load")[1] == ("name 1", 100)
    assert table.values("name", "load")[2] == ("name 2", 2)
    table.assert_proved(OLDER, OLD)
    assert table.look() == set()

    table.add(name="STRING")
    table.change(
        "UPDATE T SET name = 'again' WHERE number IN (2, 21)",
        "INSERT INTO T (number, ts, name) VALUES (39, CURRENT_TIMESTAMP(), 'new')",
    )
    [change] = table.drift().changes
    assert str(change) == (
        "name returned (STRING): synced into name again: windows synced before it went follow"
        " BigQuery again, those synced while it was gone keep what they have"
    )
    table.run(OPEN)
    assert table.values("name")[39] == ("new",)
    gone = dict.fromkeys((OLDER, NEXT), ("name",))
    table.assert_proved(OLDER, OLD, NEXT, OPEN, without=gone)
    assert table.values("name")[30] == (None,)  # not what it was before it went
    assert table.look() == {OLD}  # which has a name in Harper, and in BigQuery none any more
    filled = table.declared(backfill=True)
    assert filled.look() == {OLDER, OLD, NEXT}
    filled.run(OLDER)
    assert [filled.values("name")[n] for n in (0, 1, 2)] == [(None,), (None,), ("again",)]
    filled.assert_proved(OLDER)
    assert filled.look() == {OLD, NEXT}


@pytest.mark.promise("N8")
def test_a_rename_is_not_guessed_and_followed_once_it_is_declared(
    sync: Sync, tables: SmallTables
) -> None:
    table = Evolving.made(sync, tables, "CAST(n AS STRING) AS name, n AS load", **KEYED)
    table.rename("name", "title")
    added, removed = table.drift().changes
    assert str(added) == "title added (STRING): synced into title from now on"
    assert (added.severity, removed.kind, removed.severity) == ("info", "removed", "warn")
    table.run(NEXT)
    assert table.values("name", "title")[20] == (NO, "20")

    table = table.declared(renames={"name": "title"}, backfill=True)
    assert [str(change) for change in table.drift().changes] == [
        "title renamed (name -> title): Harper keeps it as name",
        "title returned (STRING): synced into name again, in earlier windows too",
    ]
    table.run(OPEN)
    table.assert_proved(OLDER, OLD, NEXT, OPEN, without={NEXT: ("name",)})
    assert table.look() == {NEXT}
    table.run(NEXT)
    assert table.values("name", "title")[20] == ("20", "20")
    table.change("UPDATE T SET title = 'other' WHERE number = 1")
    table.assert_proved(OLDER, OLD, NEXT)  # as of the sync, when the source still said name
    table.assert_spot_is_healthy()
    assert table.look() == {OLDER}
    table.drop("load")
    assert table.look() == {OLDER}
    table.run(OLDER)
    assert table.values("name", "title", "load")[1] == ("other", NO, 1)
    assert table.look() == set()
    table.assert_proved(OLDER, OLD, NEXT)


@pytest.mark.promise("D2", "F4")
def test_fields_inside_a_column_come_go_and_change_as_columns_do(
    sync: Sync, tables: SmallTables
) -> None:
    exact = 2**53 + 1
    table = Evolving.made(
        sync,
        tables,
        f"STRUCT(CAST(n AS STRING) AS zip, {exact} + n AS code) AS address",
        **KEYED,
        schema_overrides={"address.code": {"type": "string"}},
    )
    assert table.held()[1]["address"] == {"zip": "1", "code": f"{exact + 1}"}
    fields = "address.zip AS zip, address.code AS code"
    table.remake(f"* REPLACE (STRUCT({fields}, 'x' AS city) AS address)")
    [change] = table.drift().changes
    assert str(change) == (
        "address widened (STRUCT<zip STRING, code INT64> -> STRUCT<zip STRING, code INT64, city"
        " STRING>): synced into address.city from now on"
    )
    table.run(NEXT)
    addresses = table.values("address")
    assert addresses[1] == ({"zip": "1", "code": f"{exact + 1}"},)
    assert addresses[20] == ({"zip": "20", "code": f"{exact + 20}", "city": "x"},)
    city = dict.fromkeys((OLDER, OLD), ("address.city",))
    table.assert_proved(OLDER, OLD, NEXT, without=city)
    assert table.look() == set()
    assert table.declared(backfill=True).look() == {OLDER, OLD}

    table.remake("* REPLACE (STRUCT(address.code AS code, address.city AS city) AS address)")
    [change] = table.drift().changes
    assert (change.kind, change.severity) == ("retyped", "warn")
    table.remake("* REPLACE ([address] AS address)")
    [change] = table.drift().changes
    assert change.after == "ARRAY<STRUCT<code INT64, city STRING>>"
    table.run(OPEN)
    values = table.values("address", "address_v2", "address_v3")
    code = f"{exact + 30}"
    assert values[1] == (addresses[1][0], NO, NO)
    assert values[30] == ({"zip": "30", "code": code}, NO, [{"code": code, "city": "x"}])
    newer = dict.fromkeys((OLDER, OLD, NEXT), ("address_v3",))
    table.assert_proved(OLDER, NEXT, OPEN, without=newer)
    table.assert_spot_is_healthy()
    assert table.look() == set()


@pytest.mark.promise("D1")
def test_rows_without_a_key_keep_their_ids_and_what_would_change_them_is_refused(
    sync: Sync, tables: SmallTables
) -> None:
    table = Evolving.made(sync, tables, "'same' AS name")
    before = {row["id"]: row for row in sync.rows(table.contract)}
    table.add(extra="STRING")
    table.change(
        "INSERT INTO T (number, ts, name, extra) SELECT number, ts, name, 'more' FROM T"
        " WHERE number IN (10, 20)"
    )
    table.run(NEXT)
    first = sync.rows(table.contract)
    assert {row["id"]: row for row in first if row["id"] in before} == before
    twins = {row["id"]: row["extra"] for row in first if row["number"] == 20}
    assert sorted(map(str, twins.values())) == ["None", "more"]
    assert len({row_id.split("-")[0] for row_id in twins}) == 1
    assert [cell.result.unchanged for cell in table.run(NEXT).cells] == [4]
    assert sync.rows(table.contract) == first
    table.assert_proved(OLDER, OLD, NEXT, without=dict.fromkeys((OLDER, OLD), ("extra",)))
    assert table.look() == {OLD}
    table.run(OLD)
    table.assert_proved(OLD)
    assert table.look() == set()
    rows = sync.rows(table.contract)
    assert {row["id"] for row in first} < {row["id"] for row in rows}

    table.drop("name")
    refused = (
        f"table {table.contract.id} cannot follow its source:\n"
        "  - name is gone from BigQuery, and rows without a key are told apart by it: every row"
        " would get another id. To go on, make it in customQuery (SELECT *, CAST(NULL AS ...) AS"
        " name, or REPLACE (CAST(name AS ...) AS name)), or sync into a new targetTable under"
        " another id\n"
        "Nothing was written, and Harper keeps all rows as they are. See the change with:"
        f" bqh schema diff {table.contract.id}"
    )
    assert table.drift().problem == refused
    with pytest.raises(SchemaRefused) as caught:
        table.run(OPEN)
    assert str(caught.value) == refused
    assert sync.rows(table.contract) == rows

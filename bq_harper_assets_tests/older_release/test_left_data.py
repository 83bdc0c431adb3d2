"""Tables that an older release has synced go on: sync, proof, repair, quarantine, new columns.

Nobody has synced them for months, so BigQuery keeps no past of them that reaches so far back: what
was synced then is known by the fingerprints in the ledger and by the hashes in Harper alone.
"""

import json
from typing import Any

import pytest

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.source import BigQuerySource
from bq_harper_assets.stores.harper.schema import harper_plan
from bq_harper_assets.sync.schema_sync.drift import look_for_drift
from bq_harper_assets_tests.cli.schema.test_group import changed
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.older_release.fill import THREE, TWO
from bq_harper_assets_tests.older_release.left_data import LeftData

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
UNTIL = ("--to", THREE)
CELLS = 6  # of each table: three windows of two slices
FIRST = ("2026-01-05T00:00|s00", "2026-01-05T00:00|s01")
# What the newest version of the ports has that the first had not, and the other way round.
EVOLVED = {
    "addedColumns": ["address.city", "pilots"],
    "typeChanges": ["depth"],
    "removedColumns": ["harbour"],
}


def synced(left: LeftData, table: str, *options: str) -> dict[str, tuple[int, int]]:
    """How many rows were written and deleted in each cell that was synced, and then proved."""
    ended = typed("sync", left.name(table), *UNTIL, *options, "--output", "json")
    ran = json.loads(ended.stdout)
    assert ended.exit_code == (3 if ran["quarantined"] else 0), ended.output
    done: dict[str, Any] = ran["partitions"]
    assert (ran["error"], len(done)) == (None, ran["cells"])
    proved = f"{len(done)} cells: {len(done)} proved by stored hash"
    assert ran["proof"] == (proved if done else None)
    return {key: (cell["rows_written"], cell["rows_deleted"]) for key, cell in done.items()}


def assert_all_cells_are_equal(left: LeftData, table: str) -> None:
    """Every value is compared."""
    proved = told("verify", left.name(table), *UNTIL, "--deep")
    assert (proved["verdict"], proved["equal_cells"]) == ("equal", CELLS)


def history(left: LeftData, table: str) -> list[dict[str, Any]]:
    versions: list[dict[str, Any]] = told("schema", "history", left.name(table))["versions"]
    return versions


def test_rows_without_a_key_have_nothing_due_and_none_is_written_again(left: LeftData) -> None:
    before = left.left_rows("reports")
    assert (len(before), left.rows("reports")) == (36, before)
    assert synced(left, "reports", "--changed") == {}
    again = synced(left, "reports")
    assert (len(again), set(again.values())) == (CELLS, {(0, 0)})
    assert left.rows("reports") == before
    assert_all_cells_are_equal(left, "reports")


def test_a_table_whose_columns_have_changed_has_nothing_due_and_gets_no_new_version(
    left: LeftData,
) -> None:
    before = left.left_rows("ports")
    assert (len(before), left.rows("ports")) == (12, before)
    versions = history(left, "ports")
    project = load_project(left.project.root)
    [ports] = [each for each in project.tables if each.id == left.name("ports")]
    with open_ledger(project.ledger.url) as ledger:
        seen = look_for_drift(
            ledger, BigQuerySource(left.source.queries, harper_plan), ports, "a test"
        )
    assert (seen.version, seen.changes, seen.problem) == (2, (), None)
    assert [each.column for each in seen.waiting] == ["address"]
    assert synced(left, "ports", "--changed") == {}
    # The windows before it were synced when these columns were not there.
    newest = synced(left, "ports", "--from", TWO)
    assert (len(newest), set(newest.values())) == (2, {(0, 0)})
    assert left.rows("ports") == before
    assert history(left, "ports") == versions
    assert_all_cells_are_equal(left, "ports")


def test_a_cell_that_was_left_dirty_is_due_and_is_found_to_be_right(left: LeftData) -> None:
    before = left.left_rows("ships")
    assert (len(before), left.rows("ships")) == (29, before)
    [status] = told("status", left.name("ships"))["tables"]
    assert (status["cells"], status["due"]["dirty"]) == ({"synced": CELLS}, 1)
    assert synced(left, "ships", "--changed") == dict.fromkeys(FIRST, (0, 0))
    assert left.rows("ships") == before
    assert synced(left, "ships", "--changed") == {}
    assert_all_cells_are_equal(left, "ships")


def test_a_bent_value_is_named_and_just_its_row_is_mended(left: LeftData) -> None:
    name, before = left.name("reports"), left.rows("reports")
    bent = sorted(before)[20]
    left.bend("reports", {"id": bent, "sender": "nobody"})
    shown = typed_well("verify", name, *UNTIL, "--deep", "--show", code=3)
    named = f"  ~ changed {bent} sender: '{before[bent]['sender']}' -> 'nobody'\n"
    assert [line for line in shown.splitlines(True) if "changed" in line.split()[:2]] == [named]
    repaired = told("repair", name, *UNTIL, "--deep")
    [cell] = repaired["repair"]["partitions"].values()
    assert (cell["rows_written"], cell["rows_deleted"]) == (1, 0)
    assert repaired["after"]["verdict"] == "equal"
    after = left.rows("reports")
    assert after[bent]["_batch"] > max(row["_batch"] for row in before.values())
    assert after == {
        **before,
        bent: before[bent] | {each: after[bent][each] for each in ("_batch", "_syncedAt")},
    }


def test_a_row_in_quarantine_is_still_listed_and_can_be_replayed(left: LeftData) -> None:
    name, before = left.name("ships"), left.rows("ships")
    [refused] = told("quarantine", "list", name)
    assert (refused["id"], refused["cell"] in FIRST) == ("7", True)
    assert "Büsum 7" in refused["payload"]
    left.change("ships", "UPDATE T SET speed = 7.5 WHERE number = 7")
    replayed = told("quarantine", "replay", name)
    assert (replayed["before"], replayed["left"]) == (1, 0)
    after = left.rows("ships")
    assert after.pop("7")["speed"] == 7.5
    assert after == before
    assert told("quarantine", "list", name) == []


def test_rows_that_change_come_and_go_in_bigquery_are_followed(left: LeftData) -> None:
    before = left.rows("ships")
    left.change("ships", "UPDATE T SET name = 'Rungholt' WHERE number = 12")
    left.change("ships", "DELETE FROM T WHERE number = 13")
    counts = synced(left, "ships", "--changed").values()
    assert tuple(map(sum, zip(*counts, strict=True))) == (1, 1)
    after = left.rows("ships")
    assert after.pop("12")["name"] == "Rungholt"
    assert after == {number: row for number, row in before.items() if number not in ("12", "13")}

    before = left.rows("reports")
    left.change("reports", "INSERT INTO T (ts, sender) VALUES ('2026-01-05 01:00:00+00', 'new')")
    left.change("reports", "DELETE FROM T WHERE ts = '2026-01-05 02:40:00+00'")
    counts = synced(left, "reports", "--changed").values()
    assert tuple(map(sum, zip(*counts, strict=True))) == (1, 2)  # two rows that were equal
    after = left.rows("reports")
    [new] = set(after) - set(before)
    assert after.pop(new)["sender"] == "new"
    at = "2026-01-05T02:40:00.000000Z"
    assert after == {row_id: row for row_id, row in before.items() if row["ts"] != at}


def test_the_schema_history_is_what_it_was_and_goes_on(left: LeftData) -> None:
    name = left.name("ports")
    known = history(left, "ports")
    assert [(each["version"], each["cause"], changed(each)) for each in known] == [
        (1, "first sync", {}),
        (2, "a sync saw it", EVOLVED),
    ]
    shown = told("schema", "show", name)
    assert {each["name"]: (each["kind"], each["state"]) for each in shown["columns"]} == {
        "code": ("STRING", "live"),
        "ts": ("TIMESTAMP", "live"),
        "depth_v2": ("INT64", "live"),
        "berths": ("INT64", "live"),
        "address": ("STRUCT", "live"),
        "pilots": ("STRING", "live"),
        "depth": ("STRING", "retired"),
        "harbour": ("STRING", "retired"),
    }
    assert told("schema", "diff", name)["equal"] is True
    assert "not synced yet: new fields of address; see:" in typed_well("schema", "diff", name)
    first = {row["code"]: row for row in told("read", name, "--schema-version", "1")["rows"]}
    newest = {row["code"]: row for row in told("read", name, "--schema-version", "2")["rows"]}
    address = {"zip": "1003", "street": "Quay"}
    old = {"code": "P3", "ts": "2026-01-05T00:45:00.000000Z", "berths": 3, "address": address}
    assert first["P3"] == old | {"depth": "6", "harbour": "harbour 3"}
    assert newest["P3"] == old | {"depth": 6, "pilots": None}
    assert (newest["P9"]["depth"], newest["P9"]["pilots"]) == (18, "pilot P9")

    before = left.rows("ports")
    left.change("ports", "CREATE OR REPLACE TABLE T AS SELECT *, berths * 2 AS cranes FROM T ")
    assert synced(left, "ports", "--changed") == {}
    counts = synced(left, "ports", "--from", TWO).values()
    assert tuple(map(sum, zip(*counts, strict=True))) == (4, 0)
    versions = history(left, "ports")
    assert versions[:-1] == known
    assert (versions[-1]["version"], changed(versions[-1])) == (3, {"addedColumns": ["cranes"]})
    changes = {key: row for key, row in left.rows("ports").items() if row != before[key]}
    cranes = {"P8": 16, "P9": 18, "P10": 20, "P11": 22}
    assert {key: row["cranes"] for key, row in changes.items()} == cranes
    assert_all_cells_are_equal(left, "ports")

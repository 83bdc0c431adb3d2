"""`bqh quarantine`: rows that Harper did not take are seen, replayed when mended, or dropped."""

import sqlite3
from contextlib import closing
from datetime import datetime

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.cli.commands.test_sync import table_status
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table


def rows_with_nan(start: datetime, bad: str) -> str:
    """Twenty in each of two hours; those for which `bad` is true cannot be stored."""
    return (
        f"SELECT n AS number, IF({bad}, CAST('NaN' AS FLOAT64), 1.5) AS ratio, TIMESTAMP_ADD("
        f"TIMESTAMP '{start:%F %T}+00', INTERVAL n * 3 MINUTE) AS ts "
        "FROM UNNEST(GENERATE_ARRAY(0, 39)) AS n"
    )


def until(start: datetime) -> tuple[str, str]:
    return "--to", f"{start + 2 * HOUR:%FT%H:%M}"


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_replay_after_a_repair_empties_it_and_the_proof_passes(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(4)
    source = tables.make_from(rows_with_nan(start, "n IN (7, 31)"))
    [ships] = project.declare(table(source, start, key=["number"], slices=1)).tables
    assert typed_well("quarantine", "list") == "nothing is in quarantine\n"
    synced = typed("sync", ships.id, *until(start))
    assert synced.exit_code == 3, synced.output
    assert synced.stderr.endswith(
        f"error: 2 rows of {ships.id} cannot be stored in Harper and wait in quarantine, with the "
        f"reasons. Next: bqh quarantine list {ships.id}\n"
    )
    assert "proof: 2 cells: 2 proved by stored hash\n" in synced.stdout
    verified = typed_well("verify", ships.id, *until(start))
    assert f"quarantine: 2 rows; see: bqh quarantine list {ships.id}\n" in verified

    first, second = told("quarantine", "list", ships.id)
    assert (first["id"], second["id"]) == ("7", "31")
    listed = typed_well("quarantine", "list").splitlines()
    assert len(listed) == 2
    assert listed[0].startswith(f"{ships.id}  {first['cell']}  row 0  7  ")
    shown = typed_well("quarantine", "show", ships.id, "31")
    assert first["reason"] in shown
    assert '"number": 31' in shown
    assert told("quarantine", "show", ships.id, "--cell", first["cell"]) == [first]
    assert typed("quarantine", "show", ships.id, "8").exit_code == 2
    assert typed("quarantine", "show", ships.id, "--cell", "yesterday").exit_code == 2

    tables.run(f"UPDATE {source.sql} SET ratio = 2.5 WHERE number = 7")
    some = typed_well("quarantine", "replay", ships.id, code=3)
    assert "2 rows were in quarantine, 1 still are\n" in some
    assert f"bqh quarantine show {ships.id} --cell '{second['cell']}'" in some

    drop = ("quarantine", "drop", ships.id, "--cell", second["cell"])
    kept = typed(*drop)
    assert (kept.exit_code, "add --yes" in kept.stderr) == (2, True)
    assert len(told("quarantine", "list")) == 1
    assert typed(*drop, "--row", "5", "--yes").exit_code == 2
    assert "1 rows of" in typed_well(*drop, "--row", "0", "--yes")
    assert told("quarantine", "list") == []

    tables.run(f"UPDATE {source.sql} SET ratio = 2.5 WHERE number = 31")
    repaired = told("repair", ships.id)
    assert (repaired["before"]["missing"], repaired["before"]["quarantined"]) == (1, 0)
    assert (repaired["after"]["verdict"], repaired["after"]["rows"]) == ("equal", 20)


@pytest.mark.promise("B1")
@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_replay_under_a_mended_contract_empties_it_and_the_proof_passes(
    project: TemporaryProject, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    start, beyond = hours_ago(4), 2**53 + 1
    source = tables.make_from(
        f"SELECT CONCAT('ship ', CAST(n AS STRING)) AS name, IF(n = 7, {beyond}, n) AS big, "
        f"TIMESTAMP_ADD(TIMESTAMP '{start:%F %T}+00', INTERVAL n * 3 MINUTE) AS ts "
        "FROM UNNEST(GENERATE_ARRAY(0, 39)) AS n"
    )
    declared = table(source, start, key=["name"], slices=1)
    [ships] = project.declare(declared).tables
    typed_well("sync", ships.id, *until(start), code=3)
    [refused] = told("quarantine", "list", ships.id)
    assert (refused["id"], str(beyond) in refused["payload"]) == ("ship 7", True)

    project.declare(declared | {"values": {"int64": "string"}})
    assert "1 rows were in quarantine, 0 still are" in typed_well("quarantine", "replay", ships.id)
    assert told("quarantine", "list", ships.id) == []
    proved = told("verify", ships.id, "--deep", *until(start))
    assert (proved["verdict"], proved["rows"], proved["quarantined"]) == ("equal", 40, 0)
    with HarperClient(harper_connection) as harper:
        [row] = harper.search_by_id(ships.target_table, ["ship 7"], ("*",))
    assert row["big_v2"] == str(beyond)  # another type is another attribute


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_run_stops_at_its_limit_which_the_contract_sets_and_commits_no_row_in_silence(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(4)
    source = tables.make_from(rows_with_nan(start, "n < 6"))
    declared = table(source, start, key=["number"], slices=1)

    def limited(rows: int, percent: int) -> TableContract:
        limit = {"rows": rows, "percent": percent}
        [contract] = project.declare(declared | {"quarantineLimit": limit}).tables
        return contract

    ships = limited(rows=5, percent=10)
    stopped = typed("sync", ships.id, *until(start))
    assert stopped.exit_code in (1, 4), stopped.output
    assert f"more than 5 rows of {ships.target_table} cannot be stored" in stopped.stderr
    assert "quarantineLimit" in stopped.stderr
    states = table_status()
    assert states["quarantined"] == 0
    assert states["cells"]["failed"] >= 1
    limited(rows=0, percent=15)  # of forty
    typed_well("sync", ships.id, *until(start), code=3)
    assert table_status()["quarantined"] == 6


@pytest.mark.harper
@pytest.mark.bigquery
@pytest.mark.spark
def test_a_cell_whose_quarantine_cannot_be_kept_is_not_committed(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(4)
    source = tables.make_from(rows_with_nan(start, "n = 7"))
    declared = project.declare(table(source, start, key=["number"], slices=1))
    [ships] = declared.tables
    assert table_status()["cells"] == {}  # which also makes the ledger
    place = declared.ledger.url.get_secret_value().removeprefix("sqlite:///")
    with closing(sqlite3.connect(place)) as ledger:
        ledger.execute(
            "CREATE TRIGGER full BEFORE INSERT ON quarantine "
            "BEGIN SELECT RAISE(ABORT, 'no room for it'); END"
        )
        ended = typed("sync", ships.id, *until(start))
        assert ended.exit_code == 1, ended.output
        assert "no room for it" in ended.stderr
        states = table_status()
        assert (states["cells"].get("synced"), states["quarantined"]) == (None, 0)
        assert states["synced_until"] in (None, start.isoformat())
        ledger.execute("DROP TRIGGER full")
    typed_well("sync", ships.id, *until(start), code=3)
    assert table_status()["quarantined"] == 1

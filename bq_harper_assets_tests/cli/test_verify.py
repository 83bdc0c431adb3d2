"""`bqh verify` and `bqh repair`: what is wrong is named, mended and proved; nothing else moves."""

from datetime import datetime

import pytest

from bq_harper_assets.cli.runs import proof_runs
from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.fault_proxy import Answer, FaultProxy
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
ROWS = 60


def named_rows(start: datetime) -> str:
    return (
        f"SELECT n AS number, CONCAT('ship ', CAST(n AS STRING)) AS name, TIMESTAMP_ADD(TIMESTAMP "
        f"'{start:%F %T}+00', INTERVAL n * 3 MINUTE) AS ts "
        f"FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
    )


def stored(harper: HarperClient, contract: TableContract) -> dict[int, dict[str, object]]:
    rows = harper.search_by_value(contract.target_table, "ts", "*", ("*",))
    return {row["id"]: row for row in rows}


@pytest.mark.promise("M12")
@pytest.mark.promise("M13")
def test_what_differs_is_named_like_a_diff_and_repaired_and_nothing_else_is_written(
    project: TemporaryProject,
    proxy: FaultProxy,
    tables: SmallTables,
    harper_connection: HarperConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof_runs, "WINDOWS_AT_ONCE", 2)  # of three: what is found is put together
    start = hours_ago(5)
    source = tables.make_from(named_rows(start))
    [ships] = project.declare(table(source, start, key=["number"])).tables
    span = ("--to", f"{start + 3 * HOUR:%FT%H:%M}")
    never = typed("verify", ships.id)
    assert (never.exit_code, f"bqh sync {ships.id}" in never.stderr) == (2, True)
    typed_well("sync", ships.id, *span)

    with HarperClient(harper_connection) as harper:
        before = stored(harper, ships)
        harper.delete(ships.target_table, [3])
        harper.upsert(ships.target_table, [{"id": 25, "name": "bent", "_hash": "0" * 13}])
        harper.upsert(ships.target_table, [{**before[45], "id": 1045, "number": 1045}])
        shown = typed_well("verify", ships.id, "--show", code=3)
        assert "  - missing 3\n" in shown
        assert "  ~ changed 25 name: 'ship 25' -> 'bent'\n" in shown
        assert "  + phantom 1045\n" in shown
        assert "in 3 cells (3 proved by stored hash, --deep compares all values)\n" in shown
        keys = ", ".join(f"{start + n * HOUR:%FT%H:%M}" for n in range(3))
        then = f"type: bqh repair {ships.id}\n"
        assert f"  rows differ in 3 cells (3 windows, {keys}); {then}" in shown
        audits = harper.search_by_value("SyncAudit", "tableId", ships.id, ("*",))
        assert {row["status"] for row in audits} >= {"issues_detected", "failed"}
        assert any('"id": 1045' in row["checkResults"] for row in audits)

        proxy.heal()
        seen = len(proxy.seen(operation="upsert", table=ships.target_table))
        repaired = told("repair", ships.id)
        wrong = {key for key, cell in repaired["before"]["cells"].items() if cell["differences"]}
        assert (len(wrong), set(repaired["repair"]["partitions"])) == (3, wrong)
        assert set(repaired["after"]["cells"]) == wrong
        sent = proxy.seen(operation="upsert", table=ships.target_table)[seen:]
        assert sum(each.body.count(b'"_batch"') for each in sent) == 2
        after = stored(harper, ships)
        assert {n for n in after if after[n]["_batch"] != before[n]["_batch"]} == {3, 25}
        assert [after[n]["name"] for n in sorted(after)] == [f"ship {n}" for n in range(ROWS)]
        again = typed_well("repair", ships.id, "--from", f"{start + HOUR:%FT%H:%M}")
        assert "in 4 cells (4 proved by stored hash, --deep compares all values)\n" in again
        assert again.endswith(f"no cell of {ships.id} differs from what BigQuery had\n")

        proxy.on(Answer(403, {"error": "not for you"}), table=ships.target_table, times=99)
        away = typed("verify", ships.id)
        assert (away.exit_code, "not for you" in away.stderr) == (1, True)
        assert f"no cell of {ships.id} is known to be equal to BigQuery as of " in away.stdout
        assert "  not looked at, because a store did not answer: 4 cells\n" in away.stdout
        assert "2 cells, because a store did not answer" in away.stdout


@pytest.mark.promise("M12", "M13")
def test_a_value_bent_under_its_old_hash_is_mended_by_a_deep_repair_and_no_other_row_is_written(
    project: TemporaryProject, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    start = hours_ago(5)
    [ships] = project.declare(
        table(tables.make_from(named_rows(start)), start, key=["number"])
    ).tables
    span = ("--to", f"{start + 3 * HOUR:%FT%H:%M}")
    typed_well("sync", ships.id, *span)
    with HarperClient(harper_connection) as harper:
        before = stored(harper, ships)
        harper.upsert(ships.target_table, [{"id": 25, "name": "bent"}])  # merges: `_hash` stays
        assert stored(harper, ships)[25]["_hash"] == before[25]["_hash"]
        assert "nothing was repaired" in typed_well("repair", ships.id)

        shown = typed_well("verify", ships.id, "--deep", "--show", code=3)
        assert "  ~ changed 25 name: 'ship 25' -> 'bent'\n" in shown
        assert f"; type: bqh repair {ships.id} --deep\n" in shown
        repaired = told("repair", ships.id, "--deep")
        [cell] = repaired["repair"]["partitions"].values()
        assert (cell["rows_written"], cell["rows_deleted"]) == (1, 0)
        after = stored(harper, ships)
        assert after[25]["name"] == "ship 25"
        assert after == {**before, 25: after[25]}  # with the batch and the time of their sync
        proved = typed_well("verify", ships.id, "--deep", *span)
        assert "in 6 cells (6 proved by all values)\n" in proved


def test_a_view_that_changed_since_its_sync_is_not_called_different_and_is_brought_up_to_date(
    project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(4)
    source, view = tables.make_from(named_rows(start)), tables.new_name()
    tables.run(f"CREATE VIEW {view.sql} AS SELECT * FROM {source.sql}")
    [ships] = project.declare(table(view, start, key=["number"], slices=1)).tables
    typed_well("sync", ships.id, "--to", f"{start + 3 * HOUR:%FT%H:%M}")
    tables.run(f"UPDATE {source.sql} SET name = 'later' WHERE number = 25")
    changed = typed("verify", ships.id)
    assert changed.exit_code == 5, changed.output
    assert "in 2 cells (2 proved by stored hash, --deep compares all values)\n" in changed.stdout
    what = f"changed in BigQuery since: 1 window, {start + HOUR:%FT%H:%M}"
    assert f"  {what}; type: bqh sync {ships.id} --changed\n" in changed.stdout
    repaired = told("repair", ships.id)
    assert list(repaired["repair"]["partitions"]) == [f"{start + HOUR:%FT%H:%M}|s00"]
    assert repaired["after"]["verdict"] == "equal"


def test_a_repair_that_would_delete_much_is_refused_until_it_is_allowed_and_other_cells_are_mended(
    project: TemporaryProject, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    start = hours_ago(4)
    source = tables.make_from(named_rows(start))
    declared = project.declare(table(source, start, key=["number"]))
    [ships] = declared.tables
    typed_well("sync", ships.id, "--to", f"{start + 3 * HOUR:%FT%H:%M}")
    with HarperClient(harper_connection) as harper:
        row = stored(harper, ships)[5]
        phantoms = [{**row, "id": 5000 + n, "number": 5000 + n} for n in range(1100)]
        harper.upsert(ships.target_table, phantoms)
        harper.delete(ships.target_table, [45])
        refused = typed("repair", ships.id, "--to", f"{start + HOUR:%FT%H:%M}")
        assert refused.exit_code == 1, refused.output
        assert "--allow-deletes" in refused.stderr
        assert f"0 of 2 cells of {ships.id} mended" in refused.stdout
        assert len(stored(harper, ships)) == ROWS - 1 + 1100
        some = typed("repair", ships.id)
        assert some.exit_code == 4, some.output
        assert "--allow-deletes" in some.stderr
        assert f"1 of 3 cells of {ships.id} mended: 1 missing, 0 changed, 0 phantom" in some.stdout
        assert len(stored(harper, ships)) == ROWS + 1100
        mended = typed_well("repair", ships.id, "--allow-deletes")
        assert f"2 of 2 cells of {ships.id} mended: 0 missing, 0 changed, 1,100 phantom" in mended
        assert sorted(stored(harper, ships)) == list(range(ROWS))

    with open_ledger(declared.ledger.url) as ledger:
        known = ledger.find_table(ships.id)
        assert known is not None
        leases = ledger.acquire(known, [1], "another run", HOUR)
        taken = Wanted(
            cell=CellKey(start, start + HOUR, 1), mode=Mode.RECONCILE, fingerprint="fingerprint"
        )
        ledger.plan(leases, ledger.now(), 1, [taken], "another run")
    at_work = typed_well("verify", ships.id, code=4)
    assert "in 5 cells (5 proved by stored hash, --deep compares all values)\n" in at_work
    assert "  not judged, because a run is writing them or has to: 1 cell\n" in at_work


def test_a_long_range_is_proved_in_parts_of_whole_windows_and_in_the_order_of_time() -> None:
    start = hours_ago(200)
    cells = [
        Cell(window, number)
        for window in windows_between(start, start + 200 * HOUR, HOUR)
        for number in range(3)
    ]
    parts = list(proof_runs.windows_at_once(cells, proof_runs.WINDOWS_AT_ONCE))
    assert [len(part) for part in parts] == [96 * 3, 96 * 3, 8 * 3]
    assert [cell for part in parts for cell in part] == cells
    assert list(proof_runs.windows_at_once([], 2)) == []

"""`bqh verify` and `bqh repair`: what is wrong is named, mended and proved; nothing else moves."""

from datetime import datetime

import pytest

from bq_harper_assets.cli.runs import proof_runs
from bq_harper_assets.cli.runs.proof_runs import NothingSynced
from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.stores.harper.client import HarperClient
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
    rows = harper.search_by_value(contract.target.table, "ts", "*", ("*",))
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
    assert isinstance(never.exception, NothingSynced)
    assert str(never.exception).endswith(f"Next: bqh sync {ships.id}")
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
        equal = "3 are equal (3 proved by stored hash, --deep compares all values)"
        assert f" UTC in 3 of 6 cells; {equal}\n" in shown
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
    equal = "2 are equal (2 proved by stored hash, --deep compares all values)"
    assert f" UTC in 1 of 3 cells; {equal}\n" in changed.stdout
    what = f"changed in BigQuery since: 1 window, {start + HOUR:%FT%H:%M}"
    assert f"  {what}; type: bqh sync {ships.id} --changed\n" in changed.stdout
    repaired = told("repair", ships.id)
    assert list(repaired["repair"]["partitions"]) == [f"{start + HOUR:%FT%H:%M}|s00"]
    assert repaired["after"]["verdict"] == "equal"

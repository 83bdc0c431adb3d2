"""`bqh repair`: what differs is mended, and no more than a user allows."""

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import CellKey, Mode, Wanted
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.cli.commands.test_verify import ROWS, named_rows, stored
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


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
        known = ledger.find_route(ships.id)
        assert known is not None
        leases = ledger.acquire(known, [1], "another run", HOUR)
        taken = Wanted(
            cell=CellKey.of_window(start, start + HOUR, 1),
            mode=Mode.RECONCILE,
            fingerprint="fingerprint",
        )
        ledger.plan(leases, ledger.now(), 1, [taken], "another run")
    at_work = typed_well("verify", ships.id, code=4)
    assert "in 5 cells (5 proved by stored hash, --deep compares all values)\n" in at_work
    assert "  not judged, because a run is writing them or has to: 1 cell; if no" in at_work
    idle = typed("repair", ships.id)
    assert idle.exit_code == 4, idle.output
    assert f"nothing was repaired: some cells of {ships.id} were not judged, because" in idle.stdout
    assert f"if no run is at work, type: bqh sync {ships.id} --changed" in idle.stdout

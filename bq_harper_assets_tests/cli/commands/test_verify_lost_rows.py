"""`bqh verify --deep` names rows that no window finds; what quarantine holds can be typed."""

import pytest

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets_tests.cli.typed import told, typed, typed_well
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
LOST = "x" * 70 + "\2"


@pytest.mark.promise("M12")
def test_rows_without_a_window_or_an_id_are_named_and_can_be_asked_for(
    project: TemporaryProject, tables: SmallTables, harper_connection: HarperConnection
) -> None:
    start = hours_ago(4)
    source = tables.make_from(
        "SELECT IF(n = 3, REPEAT('y', 2000), CAST(n AS STRING)) AS k, TIMESTAMP_ADD(TIMESTAMP "
        f"'{start:%F %T}+00', INTERVAL n MINUTE) AS ts FROM UNNEST(GENERATE_ARRAY(0, 9)) AS n"
    )
    [ships] = project.declare(table(source, start, key=["k"], slices=1)).tables
    typed_well("sync", ships.id, "--to", f"{start + HOUR:%FT%H:%M}", code=3)
    [row] = told("quarantine", "list", ships.id)
    assert row["id"].startswith("no-id:")
    assert row["reason"] in typed_well("quarantine", "show", ships.id, row["id"])

    with HarperClient(harper_connection) as harper:
        fine = typed("verify", ships.id, "--deep")
        said = f"Harper holds 9 rows of {ships.target_table} in the order of ids"
        assert f"  {said}; 9 are in synced cells, and each is found by its window\n" in fine.stdout
        [other] = harper.search_by_id(ships.target_table, ["5"])
        harper.upsert(ships.target_table, [{**other, "id": LOST, "k": LOST}])
        lost = typed("verify", ships.id, "--deep", "--output", "json")
        assert (fine.exit_code != 3, lost.exit_code) == (True, 3)
        assert '"verdict": "differs"' in lost.stdout
        assert '"kind": "lost"' in lost.stdout
        harper.delete(ships.target_table, [LOST])
        assert typed("verify", ships.id, "--deep").exit_code == fine.exit_code
        quick = typed("verify", ships.id)
        assert "in the order of ids" not in quick.stdout

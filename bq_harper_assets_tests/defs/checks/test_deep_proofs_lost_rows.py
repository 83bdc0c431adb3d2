"""The nightly proof looks once in its round for rows that no window finds."""

import pytest

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.defs.runs.launch import QUIET, launch
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
LOST = "x" * 70 + "\1"


@pytest.mark.promise("M13")
def test_a_row_that_no_window_finds_is_the_tables_proof_of_that_night(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(4)
    source = tables.make_from(numbered_rows(start, rows=20))
    [contract] = project.declare(table(source, start, slices=1)).tables
    cells = [Cell(window, 0) for window in windows_between(start, start + HOUR, contract.window)]
    assert launch(dagster.definitions(), dagster.instance, contract, cells).error is None
    row = dagster.rows(contract)[0]
    dagster.harper.upsert(contract.target.table, [{**row, "id": LOST}])

    def night() -> list[tuple[bool, str]]:
        job = dagster.definitions().resolve_job_def(f"deep_proof_{contract.id}")
        config = {**QUIET, "ops": {f"prove_deeply_{contract.id}": {"config": {}}}}
        run = job.execute_in_process(run_config=config, instance=dagster.instance)
        filed = dagster.evaluations(contract, "proof", run.run_id)
        return [(each.passed, str(each.description)) for each in filed if not each.partition]

    *_, (passed, said) = night()
    assert not passed
    assert f"1 of them is found by no window, so that no cell's proof sees it: {LOST!r}" in said
    kept = dagster.harper.search_by_value("SyncAudit", "tableId", contract.id, ("*",))
    [audit] = [each for each in kept if each["check"] == "presence"]
    assert "found by no window" in audit["message"]

    # Whatever else is found right, it stays until a look finds it gone.
    again = launch(dagster.definitions(), dagster.instance, contract, cells)
    filed = dagster.evaluations(contract, "proof", again.run_id)
    [(passed, said)] = [(e.passed, str(e.description)) for e in filed if not e.partition]
    assert not passed
    assert f"bqh verify {contract.id} --deep" in said
    dagster.harper.delete(contract.target.table, [LOST])
    *_, (passed, said) = night()
    assert passed
    assert "found by no window" not in said
    # Once in a round, while nothing is lost.
    with open_ledger(load_project(project.root).ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        looks = len(ledger.audit(known, kind="presence"))
        night()
        assert len(ledger.audit(known, kind="presence")) == looks == 2

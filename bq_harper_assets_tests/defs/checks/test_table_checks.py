"""Checks in Dagster: what its UI shows of each partition and of the table, run by run."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetCheckKey, ExecuteInProcessResult, Failure, OpExecutionContext

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks import deep_proofs
from bq_harper_assets.defs.checks.evaluations import PER_PARTITION
from bq_harper_assets.defs.checks.validation_run import Validation, validate_cells
from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.runs.launch import QUIET, launch, project_instance
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import Mode, Wanted
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets_tests.defs.conftest import Dagster
from bq_harper_assets_tests.defs.shown import Shown, shown
from bq_harper_assets_tests.empty_dagster import empty_dagster
from bq_harper_assets_tests.stores.small_tables import SmallTables
from bq_harper_assets_tests.temporary_project import (
    HOUR,
    TemporaryProject,
    hours_ago,
    numbered_rows,
    table,
)

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]
WINDOWS, SLICES = 4, 2
OF_TABLE = ("progress", "smoke", "spot", "proof")
SCHEMA = "schema_drift"


@dataclass(frozen=True)
class Synced:
    """A table after a ranged run; each test asks for what it looks at, and leaves all equal."""

    dagster: Dagster
    contract: TableContract
    cells: tuple[Cell, ...]

    def sync(self, *cells: Cell) -> str:
        """The run's id; without cells all are synced."""
        asked = cells or self.cells
        ran = launch(self.dagster.definitions(), self.dagster.instance, self.contract, asked)
        assert ran.error is None
        return ran.run_id

    def execute(self, *checks: str) -> ExecuteInProcessResult:
        """As the checks page does it: without a partition, and nothing is materialised."""
        key = target_key(self.contract)
        job = self.dagster.definitions().resolve_implicit_global_asset_job_def()
        return job.get_subset(
            asset_selection=set(), asset_check_selection={AssetCheckKey(key, c) for c in checks}
        ).execute_in_process(run_config=QUIET, instance=self.dagster.instance)

    def shown(self) -> Shown:
        return shown(self.dagster.root, self.dagster.instance, self.contract)

    def run(self, job: str, **config: Any) -> ExecuteInProcessResult:
        name = {"validate": "check_cells_of", "deep_proof": "prove_deeply"}[job]
        ops = {f"{name}_{self.contract.id}": {"config": config}}
        return (
            self.dagster.definitions()
            .resolve_job_def(f"{job}_{self.contract.id}")
            .execute_in_process(run_config={**QUIET, "ops": ops}, instance=self.dagster.instance)
        )

    def cell_of(self, row: dict[str, Any]) -> Cell:
        """By its time and its id."""
        part = int(slice_of(id_hashes(pa.array([row["id"]]), keyless=True), SLICES)[0])
        window = floor_to_window(datetime.fromisoformat(row["ts"]), self.contract.window)
        return Cell(Window(window, window + self.contract.window), part)


@pytest.fixture(scope="module")
def synced(
    tmp_path_factory: pytest.TempPathFactory,
    project_root: Path,
    stack: StackAddresses,
    tables: SmallTables,
    harper_connection: HarperConnection,
) -> Iterator[Synced]:
    folder, start = tmp_path_factory.mktemp("checks"), hours_ago(6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", empty_dagster(folder / "dagster"))
        project = TemporaryProject.at(folder / "project", project_root, stack)
        source = tables.make_from(numbered_rows(start, rows=80))
        [contract] = project.declare(table(source, start, spotCheckSize=7)).tables
        cells = tuple(
            Cell(window, part)
            for window in windows_between(start, start + WINDOWS * HOUR, contract.window)
            for part in range(SLICES)
        )
        with project_instance(project.root) as instance, HarperClient(harper_connection) as harper:
            dagster = Dagster(project.root, instance, harper)
            made = Synced(dagster, contract, cells)
            made.sync()
            yield made


@pytest.mark.promise("O3")
def test_a_ranged_run_leaves_one_result_of_the_table_for_each_check_and_a_proof_of_each_partition(
    synced: Synced,
) -> None:
    run_id = synced.sync()
    seen = synced.shown()
    assert set(seen.checks) == {*OF_TABLE, PER_PARTITION, SCHEMA}
    of_schema = seen.current(SCHEMA)  # of the schema's sensor, or of who executes it, not of a run
    assert of_schema is None or of_schema["runId"] != run_id
    for check in OF_TABLE:
        current = seen.current(check)
        assert current
        assert (current["runId"], current["status"]) == (run_id, "SUCCEEDED")
        assert seen.checks[check]["blocking"] is False
        assert seen.checks[check]["partitionDefinition"] is None  # so that it has an Execute
        assert seen.metadata(check)["status"] == ("proved" if check == "proof" else "healthy")
        filed = synced.dagster.evaluations(synced.contract, check, run_id)
        assert [each.partition for each in filed] == [None]
    assert seen.partitions() == {cell.key: "succeeded" for cell in synced.cells}
    assert {seen.listed(check) for check in (*OF_TABLE, PER_PARTITION)} == {"succeeded"}
    spot = seen.metadata("spot")
    assert spot["sample_size"] == 7  # as the contract says
    assert spot["rows_from_bigquery"] == 7
    proof = seen.metadata("proof")
    assert proof["cells"] == proof["cells_proved"] == len(synced.cells)
    assert proof["cells_open"] == proof["cells_not_proved"] == proof["cells_differing"] == 0
    assert proof["message"].startswith("8 of 8 closed cells are proved (8 by stored hash), as of ")
    logged = synced.dagster.instance.all_logs(run_id)
    assert not [each for each in logged if "did not yield" in (each.user_message or each.message)]


@pytest.mark.promise("O3", "O5")
def test_execute_all_and_execute_on_one_check_prove_the_newest_windows_without_a_partition(
    synced: Synced,
) -> None:
    synced.sync()
    before = synced.dagster.rows(synced.contract)
    ran = synced.execute(*OF_TABLE, PER_PARTITION, SCHEMA)
    assert ran.success
    seen = synced.shown()
    for check in (*OF_TABLE, SCHEMA):
        current = seen.current(check)
        assert current
        assert (current["runId"], current["status"]) == (ran.run_id, "SUCCEEDED")
    assert seen.partitions() == {cell.key: "succeeded" for cell in synced.cells}
    assert seen.metadata("proof")["cells_proved"] == len(synced.cells)
    for check in OF_TABLE:
        alone = synced.execute(check)
        assert alone.success
        current = synced.shown().current(check)
        assert current
        assert (current["runId"], current["status"]) == (alone.run_id, "SUCCEEDED")
        filed = alone.get_asset_check_evaluations()
        cells = {each.partition for each in filed if each.partition}
        assert cells == ({cell.key for cell in synced.cells} if check == "proof" else set())
    assert synced.dagster.rows(synced.contract) == before  # with the times of their sync


@pytest.mark.promise("O3", "O5")
def test_the_proof_of_a_partition_that_was_synced_again_is_not_shown_until_it_is_proved_again(
    synced: Synced,
) -> None:
    synced.sync()
    dagster, cell = synced.dagster, synced.cells[2]
    job = dagster.definitions().resolve_job_def(f"sync_{synced.contract.id}")
    unchecked = job.get_subset(
        asset_selection={target_key(synced.contract)}, asset_check_selection=set()
    )
    assert unchecked.execute_in_process(
        run_config=QUIET, instance=dagster.instance, partition_key=cell.key
    ).success
    others = {each.key: "succeeded" for each in synced.cells if each != cell}
    assert synced.shown().partitions() == others
    assert synced.execute("progress").success
    before = dagster.rows(synced.contract)
    assert synced.run("validate", first=cell.key).success
    assert synced.shown().partitions() == others | {cell.key: "succeeded"}
    assert dagster.rows(synced.contract) == before  # with the times of their sync


@pytest.mark.promise("O5", "M4")
def test_a_range_is_checked_without_moving_data_and_a_missing_row_fails_its_cell_alone(
    synced: Synced,
) -> None:
    synced.sync()
    dagster, contract = synced.dagster, synced.contract
    before = dagster.rows(contract)
    lost = before[45]
    cell = synced.cell_of(lost)
    dagster.harper.delete(contract.target.table, [lost["id"]])
    ended = synced.run("validate", first=synced.cells[2].key, last=synced.cells[5].key)
    assert ended.success
    seen = synced.shown()
    assert seen.partitions() == {
        each.key: "failed" if each == cell else "succeeded" for each in synced.cells
    }
    assert dagster.rows(contract) == {n: row for n, row in before.items() if n != 45}
    proofs = dagster.evaluations(contract, PER_PARTITION, ended.run_id)
    assert [each.partition for each in proofs] == [each.key for each in synced.cells[2:6]]
    [failed] = [each for each in proofs if not each.passed]
    assert failed.partition == cell.key
    assert failed.severity.value == "ERROR"
    assert failed.metadata["missing"].value == 1
    [named] = failed.metadata["differing_rows"].records  # type: ignore[union-attr]
    assert named.data == {"kind": "missing", "id": lost["id"], "columns": ""}

    kept = dagster.harper.search_by_value("SyncAudit", "tableId", contract.id, ("*",))
    newest = max(row["timestamp"] for row in kept if row["check"] == "all" and not row["partition"])
    [audit] = [row for row in kept if row["timestamp"] == newest and row["check"] == "all"]
    assert audit["status"] == "issues_detected"
    told = json.loads(audit["checkResults"])[contract.id]
    assert set(told) == {"progress", "smoke", "spot", "proof"}
    for check in OF_TABLE:
        [filed] = dagster.evaluations(contract, check, ended.run_id)
        assert told[check]["status"] == filed.metadata["status"].value
        assert told[check]["passed"] == filed.passed
    assert told["proof"]["status"] == "differs"
    assert told["proof"]["metadata"]["cells"] == {"proved": 3, "differs": 1}
    assert [row["id"] for row in told["proof"]["rows"]] == [lost["id"]]
    found = [row for row in kept if row["status"] == "failed" and row["check"] == "proof"]
    assert cell.key in {row["partition"] for row in found}

    [of_table] = dagster.evaluations(contract, "proof", ended.run_id)
    assert of_table.metadata["cells_differing"].value == 1
    assert f"1 differ: {cell.key}" in (of_table.description or "")
    # Also after a run that has not looked at that cell.
    elsewhere = synced.sync(synced.cells[0])
    [still] = dagster.evaluations(contract, "proof", elsewhere)
    assert (still.passed, still.severity.value) == (False, "ERROR")

    repaired = launch(dagster.definitions(), dagster.instance, contract, [cell])
    assert repaired.error is None
    assert repaired.done[cell.key]["rows_written"] == 1
    assert synced.shown().listed("proof") == "succeeded"
    assert synced.shown().partitions() == {each.key: "succeeded" for each in synced.cells}


@pytest.mark.promise("M13")
def test_the_deep_proof_of_a_day_sees_what_stored_hashes_hide(synced: Synced) -> None:
    synced.sync()
    dagster, contract = synced.dagster, synced.contract
    row = dagster.rows(contract)[0]
    dagster.harper.upsert(contract.target.table, [{"id": row["id"], "number": 4711}])
    try:
        day = synced.cells[0].window.start.date()
        other = synced.run("deep_proof", day=(day + timedelta(days=3)).isoformat())
        assert dagster.evaluations(contract, PER_PARTITION, other.run_id) == []
        ended = synced.run("deep_proof", day=day.isoformat())
        filed = dagster.evaluations(contract, PER_PARTITION, ended.run_id)
    finally:
        dagster.harper.upsert(contract.target.table, [row])
    of_day = {cell.key for cell in synced.cells if cell.window.start.date() == day}
    assert {each.partition for each in filed} == of_day
    [of_table] = dagster.evaluations(contract, "proof", ended.run_id)
    assert not of_table.passed
    assert {each.metadata["form"].value for each in filed} == {"deep"}
    [failed] = [each for each in filed if not each.passed]
    assert failed.metadata["changed"].value == 1
    [named] = failed.metadata["differing_rows"].records  # type: ignore[union-attr]
    assert named.data == {"kind": "changed", "id": row["id"], "columns": "number: 0 -> 4711"}
    again = synced.run("deep_proof", day=day.isoformat())
    [of_table] = dagster.evaluations(contract, "proof", again.run_id)
    assert of_table.passed
    assert of_table.metadata["cells_proved_by_all_values"].value == len(of_day)
    by_hash = len(synced.cells) - len(of_day)
    assert of_table.metadata["cells_proved_by_stored_hash"].value == by_hash


@pytest.mark.promise("M13")
def test_a_day_that_a_night_could_not_judge_has_its_turn_in_the_next_besides_that_ones_own(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(0).replace(hour=0) - timedelta(days=5)
    source = tables.make_from(numbered_rows(start, rows=72, minutes=60))
    declared = table(source, start, window="1d", slices=1, scrub="3d")
    project_of = project.declare(declared)
    [contract] = project_of.tables
    cells = [Cell(w, 0) for w in windows_between(start, start + timedelta(days=3), contract.window)]
    assert launch(dagster.definitions(), dagster.instance, contract, cells).error is None
    synced = Synced(dagster, contract, tuple(cells))

    def night() -> dict[str, Any]:
        run = synced.run("deep_proof")
        filed = dagster.evaluations(contract, PER_PARTITION, run.run_id)
        return {str(each.partition): each.metadata["status"].value for each in filed}

    assert night() == {cells[0].key: "proved"}
    with open_ledger(project_of.ledger.url) as ledger:
        known = ledger.find_route(contract.id)
        assert known is not None
        leases = ledger.acquire(known, [0], "another run", HOUR)
        taken = Wanted(cell=cell_key(cells[1]), mode=Mode.RECONCILE, fingerprint="fingerprint")
        [batch] = ledger.plan(leases, ledger.now(), 1, [taken], "another run")
        assert night() == {cells[1].key: "moving"}
        ledger.fail_batch(batch, "it was killed")
        ledger.release(leases)
    assert synced.sync(cells[1])  # what it left half done is done: the cell can be judged again
    assert night() == {cells[1].key: "proved", cells[2].key: "proved"}


@pytest.mark.promise("M13")
def test_a_day_whose_proof_crashes_is_named_and_keeps_no_other_day_from_its_turn(
    dagster: Dagster,
    project: TemporaryProject,
    tables: SmallTables,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = hours_ago(0).replace(hour=0) - timedelta(days=5)
    source = tables.make_from(numbered_rows(start, rows=72, minutes=60))
    project_of = project.declare(table(source, start, window="1d", slices=1, scrub="2d"))
    [contract] = project_of.tables
    cells = [Cell(w, 0) for w in windows_between(start, start + timedelta(days=3), contract.window)]
    assert launch(dagster.definitions(), dagster.instance, contract, cells).error is None
    days = [cell.window.start.date().isoformat() for cell in cells]

    def crashes_on_the_first_day(
        context: OpExecutionContext,
        contract: TableContract,
        asked: list[Cell],
        *rest: Any,
        **how: Any,
    ) -> Validation:
        if cells[0] in asked:
            raise RuntimeError("out of the blue")
        return validate_cells(context, contract, asked, *rest, **how)

    def notes() -> list[tuple[str, str]]:
        with open_ledger(project_of.ledger.url) as ledger:
            found = ledger.audit(
                ledger.find_route(contract.id), 10, kind=deep_proofs.DEEP_PROOF_KIND
            )
        return [(note.subject, note.outcome) for note in reversed(found)]

    synced = Synced(dagster, contract, tuple(cells))
    with monkeypatch.context() as patch:
        patch.setattr(deep_proofs, "validate_cells", crashes_on_the_first_day)
        with pytest.raises(Failure) as caught:
            synced.run("deep_proof")
    assert str(caught.value) == (
        f"{contract.id} has no deep proof of {days[0]}: it comes again in the next nights, and the"
        " other days of this one were looked at. A proof writes nothing. The first error: out of"
        " the blue"
    )
    first = [(days[0], "in_vain"), (days[1], "healthy")]
    assert notes() == first
    assert synced.run("deep_proof").success
    assert notes() == [*first, (days[0], "healthy"), (days[1], "healthy"), (days[2], "healthy")]


@pytest.mark.promise("O3", "N12")
def test_a_refused_delete_leaves_the_other_cells_proved_and_is_done_once_it_is_allowed(
    dagster: Dagster, project: TemporaryProject, tables: SmallTables
) -> None:
    start = hours_ago(5)
    source = tables.make_from(
        f"SELECT TIMESTAMP_ADD(TIMESTAMP '{start:%F %T}+00', INTERVAL n * 2 SECOND) AS ts,"
        " n AS number FROM UNNEST(GENERATE_ARRAY(0, 3599)) AS n"
    )
    [contract] = project.declare(table(source, start, slices=1)).tables
    emptied, other = [
        Cell(window, 0) for window in windows_between(start, start + 2 * HOUR, contract.window)
    ]
    definitions = dagster.definitions()
    assert launch(definitions, dagster.instance, contract, [emptied, other]).error is None
    tables.run(f"DELETE FROM {source.sql} WHERE number < 1700")
    tables.run(f"UPDATE {source.sql} SET number = 9999 WHERE number = 2000")

    refused = launch(definitions, dagster.instance, contract, [emptied, other])
    assert refused.error is not None
    assert emptied.key in refused.error
    assert set(refused.done) == {other.key}
    assert len(dagster.rows(contract)) == 3600
    seen = shown(dagster.root, dagster.instance, contract)
    assert seen.partitions() == {emptied.key: "executionFailed", other.key: "succeeded"}
    for check in OF_TABLE:
        assert seen.current(check) is not None

    allowed = launch(definitions, dagster.instance, contract, [emptied, other], allow_deletes=True)
    assert allowed.error is None
    assert allowed.done[emptied.key]["rows_deleted"] == 1700
    assert allowed.done[emptied.key]["dagster/partition_row_count"] == 100
    assert allowed.done[other.key]["rows_unchanged"] == 1800
    assert allowed.done[other.key]["dagster/partition_row_count"] == 1800
    assert len(dagster.rows(contract)) == 1900
    seen = shown(dagster.root, dagster.instance, contract)
    assert set(seen.partitions().values()) == {"succeeded"}

"""What Dagster is told of verdicts: of which partition, and what of their rows."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetMaterialization,
    DagsterEventType,
    DagsterInstance,
    OpExecutionContext,
    TableMetadataValue,
    job,
    op,
)

from bq_harper_assets.defs.checks import evaluations
from bq_harper_assets.defs.checks.evaluations import (
    PER_PARTITION,
    file_sum,
    file_verdicts,
    verdict_metadata,
)
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.proof.cell_proof import moving
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    ProofStatus,
    Severity,
    Verdict,
)
from bq_harper_assets_tests.defs.checks.test_evaluations import KEY
from bq_harper_assets_tests.validation.committed import DAY, MINUTE

WRONG = Verdict(
    check="proof",
    status=ProofStatus.DIFFERS,
    passed=False,
    severity=Severity.ERROR,
    message="1 missing",
    metadata={"missing": 1},
)
FINE = replace(WRONG, check="spot", passed=True, severity=Severity.WARN, message="all equal")


def test_a_verdict_is_told_with_its_word_its_figures_and_no_rows_if_none_differ() -> None:
    assert verdict_metadata(WRONG) == {"status": "differs", "message": "1 missing", "missing": 1}


def test_the_first_rows_that_differ_are_shown_and_long_ones_are_cut() -> None:
    long = Difference(DifferenceKind.CHANGED, 7, {"name": ("a", "x" * 300), "speed": (1, 2)})
    lost = [Difference(DifferenceKind.LOST, f"{n}") for n in range(20)]
    shown = verdict_metadata(replace(WRONG, rows=(long, *lost)))["differing_rows"]
    assert isinstance(shown, TableMetadataValue)
    first, second, *others = [each.data for each in shown.records]
    assert (first["kind"], first["id"]) == ("changed", "7")
    assert first["columns"] == f"name: 'a' -> '{'x' * 300}"[:300]
    assert second == {"kind": "lost", "id": "0", "columns": ""}
    assert len(others) == 18
    assert [each.name for each in shown.schema.columns] == ["kind", "id", "columns"]


def filed(
    instance: DagsterInstance, file: Callable[[OpExecutionContext], None]
) -> list[AssetCheckEvaluation]:
    """What a run that files results leaves in the instance."""

    @op
    def step(context: OpExecutionContext) -> None:
        file(context)

    @job
    def run() -> None:
        step()

    ended = run.execute_in_process(instance=instance, run_config=QUIET)
    logs = instance.all_logs(ended.run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION)
    return [each.get_dagster_event().asset_check_evaluation_data for each in logs]


def test_each_result_names_the_materialisation_that_it_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluations, "SAY_EVERY_S", 0.0)
    proofs = [moving(Cell(Window(DAY, DAY + 5 * MINUTE), part)) for part in (0, 1)]
    with DagsterInstance.ephemeral() as instance:
        for partition in (proofs[0].cell.key, "another"):
            instance.report_runless_asset_event(AssetMaterialization(KEY, partition=partition))
        found = filed(instance, lambda context: file_verdicts(context, KEY, proofs, [WRONG, FINE]))
        [run] = instance.get_runs()
        said = [each.user_message for each in instance.all_logs(run.run_id)]
    told = [each for each in said if each.startswith("writing check results")]
    assert told[0] == "writing check results, 1 of 4"
    assert told[-1] == "writing check results, 4 of 4"
    names = [(each.check_name, each.partition) for each in found]
    assert names == [
        (PER_PARTITION, proofs[0].cell.key),
        (PER_PARTITION, proofs[1].cell.key),
        ("proof", None),
        ("spot", None),
    ]
    first, second, proof, spot = found
    assert second.target_materialization_data is None
    assert first.target_materialization_data
    assert proof.target_materialization_data
    ids = [each.target_materialization_data.storage_id for each in (first, proof)]  # type: ignore[union-attr]
    assert ids[0] < ids[1]  # that of the table is the newest of all
    assert spot.target_materialization_data == proof.target_materialization_data
    assert [each.passed for each in (proof, spot)] == [False, True]
    severities = [each.severity for each in (proof, spot)]
    assert severities == [AssetCheckSeverity.ERROR, AssetCheckSeverity.WARN]
    assert (proof.asset_key, proof.description) == (KEY, "1 missing")


def test_a_table_that_dagster_never_materialised_has_results_all_the_same() -> None:
    with DagsterInstance.ephemeral() as instance:

        def file(context: OpExecutionContext) -> None:
            file_verdicts(context, KEY, [], [WRONG])
            file_verdicts(context, KEY, [], [])
            file_sum(context, KEY, FINE)

        proof, total = filed(instance, file)
    assert (proof.check_name, proof.target_materialization_data) == ("proof", None)
    assert (total.check_name, total.passed, total.partition) == (PER_PARTITION, True, None)

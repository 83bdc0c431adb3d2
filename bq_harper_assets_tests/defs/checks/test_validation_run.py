"""Terminate ends checks and proofs, too."""

import time
from datetime import date

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    Failure,
    OpExecutionContext,
    ResourceParam,
    job,
    op,
)

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.build import build_definitions
from bq_harper_assets.defs.checks import deep_proofs, validation_run
from bq_harper_assets.defs.checks.validation_run import Validation, validate_cells
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.runs import run_watch
from bq_harper_assets.defs.runs.early_end import stoppable
from bq_harper_assets.defs.runs.launch import QUIET
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.stop_request import Stop
from bq_harper_assets_tests.defs.runs.test_early_end import cancel, instance, project
from bq_harper_assets_tests.temporary_project import HOUR, TemporaryProject, hours_ago, table

__all__ = ["instance", "project"]


@pytest.fixture
def contract(
    project: TemporaryProject, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> TableContract:
    """Whose stores are not asked."""
    for name in ("BIGQUERY_EMULATOR_HOST", "OPERATIONSAPI_URL"):
        monkeypatch.setenv(name, nowhere)
    for name in ("GOOGLE_CLOUD_PROJECT", "OPERATIONSAPI_USER", "OPERATIONSAPI_PASS"):
        monkeypatch.setenv(name, "nobody")
    [declared] = project.declare(
        table(TableRef("p", "d", "orders"), hours_ago(30), slices=1)
    ).tables
    return declared


def test_terminate_ends_a_deep_proof_and_not_only_its_day(
    instance: DagsterInstance,
    project: TemporaryProject,
    contract: TableContract,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.05)
    days = {date(2026, 11, day): [(cell(), hours_ago(2))] for day in (1, 2, 3)}
    proved, looked = [], []

    def prove(context: OpExecutionContext, *args: object, **options: object) -> Validation:
        def work(stop: Stop) -> Validation:
            cancel(instance)
            stop.sleep(120)
            return Validation()

        proved.append(context.run.run_id)
        return stoppable(context, work)

    monkeypatch.setattr(deep_proofs, "closed_cells_by_day", lambda *args: days)
    monkeypatch.setattr(deep_proofs, "whose_turn", lambda *args: list(days))
    monkeypatch.setattr(deep_proofs, "validate_cells", prove)
    monkeypatch.setattr(deep_proofs, "look_for_lost_rows", lambda *args: looked.append(args))
    definitions = build_definitions(project.root)
    proof = definitions.resolve_job_def(f"deep_proof_{contract.id}")
    ended = proof.execute_in_process(QUIET, instance, raise_on_error=False)
    assert proved == [ended.run_id]
    assert looked == []
    run = instance.get_run_by_id(ended.run_id)
    assert run
    assert run.status is DagsterRunStatus.CANCELED


def cell() -> Cell:
    start = hours_ago(5)
    return Cell(Window(start, start + HOUR), 0)


def test_no_check_begins_after_terminate(
    instance: DagsterInstance,
    project: TemporaryProject,
    contract: TableContract,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_watch, "_ASK_EVERY_S", 0.05)
    checked, told = [], []

    def check(name: str, *args: object) -> None:
        checked.append(name)
        cancel(instance)
        time.sleep(2)  # which looks every moment whether it is to end

    monkeypatch.setattr(validation_run, "check_named", check)
    of_project = build_definitions(project.root).resources

    @op
    def validate(
        context: OpExecutionContext,
        bigquery_to_harper: ResourceParam[BigQueryToHarperResource],
    ) -> None:
        try:
            validate_cells(context, contract, [cell()], bigquery_to_harper)
        except Failure as failure:
            told.append(failure.description)
            raise

    @job
    def validate_it() -> None:
        validate()

    validate_it.execute_in_process(QUIET, instance, raise_on_error=False, resources=of_project)
    assert checked == ["progress"]
    assert told == ["the run was stopped, and what comes next was not begun"]

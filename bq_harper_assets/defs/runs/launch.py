"""This process launches a ranged run of a table, which Dagster records like any other."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagster import AssetKey, DagsterEventType, DagsterInstance, Definitions
from dagster._core.execution.plan.objects import StepFailureData
from dagster._core.utils import make_new_run_id
from dagster_shared.error import SerializableErrorInfo

from bq_harper_assets.activity import doing
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.instance_settings import lacking, what_it_means
from bq_harper_assets.defs.names import NOT_SYNCED, sync_job, target_key
from bq_harper_assets.defs.partitions import range_tags
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.defs.runs.dead_runs import clear_the_way
from bq_harper_assets.defs.runs.early_end import execute_stoppably, told_as_stopped
from bq_harper_assets.defs.runs.run_process import tags_of_this_process
from bq_harper_assets.local.dagster_home import dagster_home, make_dagster_home
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.validation.proof.cell_proof import PROOF_CHECK
from bq_harper_assets.validation.proof.table_proof import STATUS_OF_RUN, THIS_RUN
from bq_harper_assets.validation.verdict import ProofStatus

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_EQUAL = (ProofStatus.PROVED, ProofStatus.OPEN)
PLAIN = (str, int, float)  # what a program reads; the columns are for the UI


@dataclass(frozen=True)
class RunProof:
    """A run's proof is what the proof after a sync says of the run's own cells."""

    status: ProofStatus | None  # None: no proof was made
    message: str

    @property
    def is_equal(self) -> bool:
        """Says whether all cells are proved, or are open and equal so far."""
        return self.status in _EQUAL


@dataclass(frozen=True)
class Launched:
    """A run has ended with the metadata of each cell that is done, and why others are not."""

    run_id: str
    done: dict[str, dict[str, Any]]  # by partition key
    error: str | None
    proof: RunProof | None = None  # of the cells that are done; None if the sync itself failed

    @property
    def not_synced(self) -> str | None:
        """Says which columns of the source the run left out, and why; None if it took all."""
        return next((each[NOT_SYNCED] for each in self.done.values() if NOT_SYNCED in each), None)


def say_beside(line: str) -> None:
    """Says a line to a user at a terminal, beside what a program reads."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def project_instance(root: Path) -> Iterator[DagsterInstance]:
    """Opens the instance that `make ui` shows: DAGSTER_HOME if set, else .local/dagster.

    It says in a line if settings are lacking by which runs that were killed are noticed.
    """
    home = make_dagster_home(root, os.environ)
    os.environ["DAGSTER_HOME"] = str(home)
    with DagsterInstance.get() as instance:
        if settings := lacking(instance):
            say_beside(f"warning: {what_it_means(home)}. Write there: {'; '.join(settings)}")
        yield instance


@contextmanager
def instance_if_made(root: Path) -> Iterator[DagsterInstance | None]:
    """Opens the same instance without a word; None if no run was ever recorded on this machine."""
    home = dagster_home(root, os.environ)
    if not home.is_dir():
        yield None
        return
    os.environ["DAGSTER_HOME"] = str(home)
    with DagsterInstance.get() as instance:
        yield instance


def launch(
    definitions: Definitions,
    instance: DagsterInstance,
    contract: TableContract,
    cells: Sequence[Cell],
    *,
    allow_deletes: bool = False,
    deep: bool = False,
) -> Launched:
    """Materialises the rectangle that the cells span, in one run.

    Runs that were killed are ended first, and it says what they have left behind.
    """
    ledger = (definitions.resources or {})["ledger"]
    assert isinstance(ledger, LedgerResource)
    with ledger.open() as opened:
        for line in clear_the_way(instance, opened, contract, cells):
            say_beside(line)
        since = opened.now()
    job = definitions.resolve_job_def(sync_job(contract))
    key = target_key(contract)
    settings = {"config": {"allow_deletes": allow_deletes, "deep": deep}}
    run_id = make_new_run_id()

    def what_is_safe() -> str:
        with ledger.open() as opened:
            return told_as_stopped(opened, contract, cells, run_id, since)

    partitions = f"{len(cells):,} partition{'' if len(cells) == 1 else 's'}"
    with doing(f"Dagster files its events of {partitions}"):
        ended = execute_stoppably(
            instance,
            run_id,
            lambda: job.execute_in_process(
                run_config={**QUIET, "ops": {key.to_python_identifier(): settings}},
                instance=instance,
                run_id=run_id,
                tags={**range_tags(cells), **tags_of_this_process(run_id)},
                raise_on_error=False,
            ),
            what_is_safe,
        )
    done = {}
    # The result of a run that failed leaves out what it logged before; the instance does not.
    for entry in instance.all_logs(ended.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION):
        event = entry.get_dagster_event()
        if event.asset_key == key and event.partition:
            metadata = event.step_materialization_data.materialization.metadata
            values = {name: held.value for name, held in metadata.items()}
            done[event.partition] = {
                name: value for name, value in values.items() if isinstance(value, PLAIN)
            }
    failures = {
        event.step_key: event.step_failure_data
        for event in ended.all_events
        if event.is_step_failure
    }
    if failed := failures.pop(key.to_python_identifier(), None):
        return Launched(ended.run_id, done, _reason(failed))
    # All cells are done, and checking them failed: that is no reason to sync them again.
    reason = next((_reason(each) for each in failures.values()), None)
    proof = _proof_of_run(instance, ended.run_id, key, reason)
    return Launched(ended.run_id, done, None, proof)


def _proof_of_run(
    instance: DagsterInstance, run_id: str, key: AssetKey, failure: str | None
) -> RunProof:
    """Returns what the run has filed; `failure` is why it could not."""
    logs = instance.all_logs(run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION)
    for entry in reversed(logs):
        filed = entry.get_dagster_event().asset_check_evaluation_data
        if (filed.asset_key, filed.check_name) == (key, PROOF_CHECK) and THIS_RUN in filed.metadata:
            status = ProofStatus(str(filed.metadata[STATUS_OF_RUN].value))
            return RunProof(status, str(filed.metadata[THIS_RUN].value))
    return RunProof(None, failure or "the run has filed none")


def _reason(failed: StepFailureData) -> str:
    told = failed.user_failure_data.description if failed.user_failure_data else None
    return told or (_cause(failed.error) if failed.error else "the run failed")


def _cause(error: SerializableErrorInfo) -> str:
    """Says what the last retry died of, not that it was the last."""
    return _cause(error.cause) if error.cause else error.message.strip()

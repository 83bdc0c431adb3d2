"""One ranged run of a table from this process, recorded in Dagster like any other."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagster import DagsterEventType, DagsterInstance, Definitions
from dagster_shared.error import SerializableErrorInfo

from bq_harper_assets.contract.root import local_folder
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.keys import target_key
from bq_harper_assets.defs.materialisations import NOT_SYNCED
from bq_harper_assets.defs.partitions import range_tags
from bq_harper_assets.sync.cells import Cell

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SETTINGS = "dagster.yaml"
PLAIN = (str, int, float)  # what a program reads; the columns are for the UI


@dataclass(frozen=True)
class Launched:
    """What became of the run: the metadata of each cell that is done, and why others are not."""

    run_id: str
    done: dict[str, dict[str, Any]]  # by partition key
    error: str | None

    @property
    def not_synced(self) -> str | None:
        """Columns of the source that the run has left out, and why; None if it took all."""
        return next((each.get(NOT_SYNCED) for each in self.done.values()), None)


@contextmanager
def project_instance(root: Path) -> Iterator[DagsterInstance]:
    """The instance that `make ui` shows: DAGSTER_HOME if set, else .local/dagster."""
    home = Path(os.environ.get("DAGSTER_HOME") or local_folder(root) / "dagster")
    home.mkdir(parents=True, exist_ok=True)
    settings = home / SETTINGS
    if not settings.exists() and (root / SETTINGS).exists():
        settings.write_bytes((root / SETTINGS).read_bytes())
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
    """Materialise the rectangle that the cells span, in one run."""
    job = definitions.resolve_job_def(f"sync_{contract.id}")
    key = target_key(contract)
    settings = {"config": {"allow_deletes": allow_deletes, "deep": deep}}
    ended = job.execute_in_process(
        run_config={**QUIET, "ops": {key.to_python_identifier(): settings}},
        instance=instance,
        tags=range_tags(cells),
        raise_on_error=False,
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
    failures = [event for event in ended.all_events if event.is_step_failure]
    error = None
    if failures:
        data = failures[-1].step_failure_data
        error = data.user_failure_data.description if data.user_failure_data else None
        error = error or (_cause(data.error) if data.error else "the run failed")
    return Launched(ended.run_id, done, error)


def _cause(error: SerializableErrorInfo) -> str:
    """What the last retry died of, not that it was the last."""
    return _cause(error.cause) if error.cause else error.message.strip()

"""What the proof after a sync has said of the cells of that run."""

from dataclasses import dataclass

from dagster import AssetKey, DagsterEventType, DagsterInstance

from bq_harper_assets.validation.proof.cell_proof import PROOF_CHECK
from bq_harper_assets.validation.proof.table_proof import STATUS_OF_RUN, THIS_RUN
from bq_harper_assets.validation.verdict import ProofStatus

_EQUAL = (ProofStatus.PROVED, ProofStatus.OPEN)


@dataclass(frozen=True)
class RunProof:
    """Of the run's own cells, not of the whole table."""

    status: ProofStatus | None  # None: no proof was made
    message: str

    @property
    def is_equal(self) -> bool:
        """All cells are proved, or are open and equal so far."""
        return self.status in _EQUAL

    @property
    def differs(self) -> bool:
        """Some row in Harper is not what BigQuery had."""
        return self.status is ProofStatus.DIFFERS


def proof_of_run(
    instance: DagsterInstance, run_id: str, key: AssetKey, failure: str | None
) -> RunProof:
    """As the run has filed it; `failure` is why it could not."""
    logs = instance.all_logs(run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION)
    for entry in reversed(logs):
        filed = entry.get_dagster_event().asset_check_evaluation_data
        if (filed.asset_key, filed.check_name) == (key, PROOF_CHECK) and THIS_RUN in filed.metadata:
            status = ProofStatus(str(filed.metadata[STATUS_OF_RUN].value))
            return RunProof(status, str(filed.metadata[THIS_RUN].value))
    return RunProof(None, failure or "the run has filed none")

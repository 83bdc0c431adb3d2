"""Several runs in one result: it is as good as the worst of them."""

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.defs.runs.launch import Launched, RunProof
from bq_harper_assets.validation.verdict import ProofStatus


def test_a_sync_whose_proof_failed_or_found_differences_does_not_end_well() -> None:
    done = {"a": {}, "b": {}}
    equal = Launched("first", done, None, RunProof(ProofStatus.PROVED, "all"))
    for status, code, said in (
        (ProofStatus.PROVED, ExitCode.DONE, None),
        (ProofStatus.OPEN, ExitCode.DONE, None),
        (ProofStatus.SOURCE_CHANGED, ExitCode.CHANGED_SINCE, "BigQuery has changed since: why"),
        (ProofStatus.MOVING, ExitCode.NOT_PROVED, "could not be made: why"),
        (ProofStatus.DIFFERS, ExitCode.DIFFERS, "proof found rows that differ: why. Next: bqh"),
        (ProofStatus.CHECK_FAILED, ExitCode.NOT_PROVED, "could not be made: why. Next: bqh"),
        (None, ExitCode.NOT_PROVED, "the proof after them could not be made: why"),
    ):
        ran = RunResults(
            (equal, Launched("run", done, None, RunProof(status, "why")), equal), 4, 1.0
        )
        assert ran.exit_code is code
        assert ran.proof is not None
        told = ran.proof.told("ships")
        assert (said in (told or "")) if said else told is None
    assert (
        RunResults((Launched("run", done, "Harper is away"),), 3, 1.0).exit_code is ExitCode.PARTLY
    )
    assert RunResults((Launched("run", {}, "Harper is away"),), 3, 1.0).exit_code is ExitCode.ERROR

"""Makes the checks of a table and the proof of cells, and tells Dagster, the ledger and Harper."""

from collections.abc import Sequence
from dataclasses import dataclass

from dagster import Failure, OpExecutionContext

from bq_harper_assets.activity import doing
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.checks.evaluations import file_verdicts
from bq_harper_assets.defs.names import target_key
from bq_harper_assets.defs.resources import BigQueryToHarperResource
from bq_harper_assets.defs.runs.early_end import require_going_on, stoppable
from bq_harper_assets.errors import BqhError
from bq_harper_assets.retries.breaker import PROCESS_BREAKERS
from bq_harper_assets.retries.waiting import WAITS
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.stop_request import Stop, cancelled_by
from bq_harper_assets.validation import smoke
from bq_harper_assets.validation.progress import progress_check
from bq_harper_assets.validation.proof import cell_proof, table_proof
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.proof_records import record_checks
from bq_harper_assets.validation.proof.prover import Prover
from bq_harper_assets.validation.spot import spot_check, spot_verdict
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Overall, Verdict, overall

CHECKS = (
    progress_check.PROGRESS_CHECK,
    smoke.SMOKE_CHECK,
    spot_verdict.SPOT_CHECK,
    cell_proof.PROOF_CHECK,
)


@dataclass(frozen=True)
class Validation:
    """All checks together found a verdict of the table for each, and a proof of each cell."""

    verdicts: tuple[Verdict, ...] = ()
    proofs: tuple[CellProof, ...] = ()

    @property
    def overall(self) -> Overall:
        """Gives the worst of all verdicts in one word."""
        return overall(self.verdicts)


def validate_cells(
    context: OpExecutionContext,
    contract: TableContract,
    cells: Sequence[Cell],
    resources: BigQueryToHarperResource,
    *,
    checks: Sequence[str] = CHECKS,
    prove: Sequence[Cell] | None = None,
    deep: bool = False,
) -> Validation:
    """Checks and writes no row; what it finds is filed, and kept in the audit.

    All cells are proved, or only those of `prove`.
    """
    require_going_on(context)
    harper, limit = resources.harper, contract.sync.give_up_after
    queries = Queries(
        BigQueryCalls(
            resources.bigquery.connection(), breakers=PROCESS_BREAKERS, give_up_after=limit
        ),
        labels={"bqh": "validation", "bqh_table": contract.id},
    )
    try:
        with (
            doing(f"checking {contract.id}"),
            WAITS.listen(context.log.info),
            resources.ledger.open() as opened,
            queries.client,
            HarperClient(harper.connection(), retry=harper.retry().within(limit)) as client,
        ):
            subject = Subject(contract, queries, client, opened)
            verdicts = []
            for name in CHECKS[:-1]:
                if name in checks:
                    require_going_on(context)
                    verdicts.append(check_named(name, subject, cells))
            proofs: list[CellProof] = []
            to_prove = cells if prove is None else prove
            if to_prove and cell_proof.PROOF_CHECK in checks:
                session = resources.spark.spark_session
                route = resources.route(opened, contract)
                prover = Prover(route, session, harper.retry())
                with doing(f"proving {len(to_prove):,} cells"):
                    proofs = stoppable(
                        context, lambda stop: _proved(stop, prover, to_prove, deep=deep)
                    )
            table = subject.table()
            if table is not None:
                for warning in record_checks(opened, client, table, verdicts, proofs):
                    context.log.warning(warning)
            if cell_proof.PROOF_CHECK in checks:
                verdicts.append(table_proof.check_table(opened, table, proofs))
    except BqhError as error:
        raise Failure(f"{error}. What was synced is safe", allow_retries=False) from error
    found = Validation(tuple(verdicts), tuple(proofs))
    file_verdicts(context, target_key(contract), proofs, verdicts)
    told = "; ".join(f"{each.check} {each.status.value}" for each in verdicts)
    context.log.info(f"{contract.id} is {found.overall.value}: {told}")
    return found


def check_named(name: str, subject: Subject, cells: Sequence[Cell]) -> Verdict:
    """Makes one of the checks that look at the table as a whole."""
    with doing(f"checking {name}"):
        if name == progress_check.PROGRESS_CHECK:
            return progress_check.check_progress(subject)
        if name == smoke.SMOKE_CHECK:
            newest = max((cell.window for cell in cells), default=None)
            return smoke.check_smoke(subject, newest_of_run=newest)
        return spot_check.check_spot(subject, cells or None)


def _proved(stop: Stop, prover: Prover, cells: Sequence[Cell], *, deep: bool) -> list[CellProof]:
    """Proves the cells; raises RunStopped if the run is stopped meanwhile.

    A proof that was cut off failed for no fault of the cells.
    """
    with cancelled_by(stop, prover.spark):
        proofs = prover.prove(cells, deep=deep)
    stop.check()
    return proofs

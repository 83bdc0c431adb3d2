"""All checks of a table and of some of its cells, told to Dagster, the ledger and Harper."""

from collections.abc import Sequence
from dataclasses import dataclass

from dagster import Failure, OpExecutionContext
from dagster_pyspark import LazyPySparkResource

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.evaluations import file_verdicts
from bq_harper_assets.defs.keys import target_key
from bq_harper_assets.defs.resources import LedgerResource
from bq_harper_assets.errors import BqhError
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.resource import BigQueryConnectionResource
from bq_harper_assets.stores.breaker import PROCESS_BREAKERS
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.resource import HarperResource
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.scene import Stores
from bq_harper_assets.validation import cell_proof, table_and_cells
from bq_harper_assets.validation.cell_proof import CellProof
from bq_harper_assets.validation.proof import Prover
from bq_harper_assets.validation.proofs import record_checks, verdicts_of
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Overall, Verdict, overall

CHECKS = (*table_and_cells.CHECKS, cell_proof.CHECK)


@dataclass(frozen=True)
class Validation:
    """What all checks found."""

    of_table: tuple[Verdict, ...] = ()
    proofs: tuple[CellProof, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One per check."""
        return verdicts_of(self.of_table, self.proofs)

    @property
    def overall(self) -> Overall:
        """In one word."""
        return overall(self.verdicts)


def validate_cells(
    context: OpExecutionContext,
    contract: TableContract,
    cells: Sequence[Cell],
    bigquery: BigQueryConnectionResource,
    harper: HarperResource,
    ledger: LedgerResource,
    spark: LazyPySparkResource,
    *,
    checks: Sequence[str] = CHECKS,
    prove: Sequence[Cell] | None = None,
    deep: bool = False,
) -> Validation:
    """Looks and moves nothing; what it finds is filed, and kept in the audit.

    Of the cells all are proved, or those of `prove`.
    """
    queries = Queries(
        BigQueryCalls(bigquery.connection(), breakers=PROCESS_BREAKERS),
        labels={"bqh": "validation", "bqh_table": contract.id},
    )
    try:
        with (
            ledger.open() as opened,
            queries.client,
            HarperClient(harper.connection(), retry=harper.retry()) as client,
        ):
            subject = Subject(contract, queries, client, opened)
            checked = [
                table_and_cells.check_table(name, subject, cells)
                for name in table_and_cells.CHECKS
                if name in checks
            ]
            of_table = [each.of_table for each in checked]
            proofs: list[CellProof] = []
            to_prove = cells if prove is None else prove
            if to_prove and cell_proof.CHECK in checks:
                stores = Stores(bigquery.connection(), harper.connection(), opened)
                prover = Prover(stores, contract, spark.spark_session, harper.retry())
                proofs = prover.prove(to_prove, deep=deep)
            found = Validation(tuple(of_table), tuple(proofs))
            table = subject.table()
            if table is not None:
                for warning in record_checks(opened, client, table, of_table, proofs):
                    context.log.warning(warning)
    except BqhError as error:
        raise Failure(f"{error}. What was synced is safe", allow_retries=False) from error
    of_cells = [pair for each in checked for pair in each.of_cells.items()]
    of_cells += [(each.cell, each.verdict) for each in proofs]
    file_verdicts(context, target_key(contract), of_cells, found.verdicts)
    told = "; ".join(f"{each.check} {each.status.value}" for each in found.verdicts)
    context.log.info(f"{contract.id} is {found.overall.value}: {told}")
    return found

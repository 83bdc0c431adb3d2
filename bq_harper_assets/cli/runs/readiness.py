"""What would stop every run of a table is found before one is made, in a second."""

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from bq_harper_assets.cli.runs.reachability import WITHIN_S, harper_listens
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import LedgerRoute

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.sync.errors import OutOfStep


class SourceMissing(BqhError):
    """BigQuery does not have the table that a contract names."""

    exit_code = 2  # what the user wrote is wrong, and nothing was started


class Readiness(Enum):
    """A readiness is what was found out about a table when nothing was found that stops its runs.

    BigQuery is not asked for it.
    """

    IN_STEP = "declared as it was first synced; the ledger is in step with Harper"
    HARPER_NOT_ASKED = "declared as it was first synced; Harper was not asked"
    NEVER_SYNCED = "never synced yet; Harper does not speak against its first sync"
    NEVER_SYNCED_HARPER_NOT_ASKED = "never synced yet; Harper was not asked"


def require_ready(project: Project, contract: TableContract) -> Readiness:
    """Raises TableChanged or OutOfStep; the run asks a Harper again that did not answer."""
    # Here and not above: they take a moment to import.
    from bq_harper_assets.retries.retry import RetryPolicy
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.stores.harper.errors import HarperError
    from bq_harper_assets.sync.ledger_facts import refused_declaration

    with open_ledger(project.ledger.url) as ledger:
        if refused := refused_declaration(ledger, contract, project.bigquery.project):
            raise refused
        known = ledger.find_route(contract.id)
        with (
            suppress(HarperError),
            HarperClient(project.harper, retry=RetryPolicy(max_retries=0)) as harper,
        ):
            _require_in_step(project, ledger, harper, contract)
            return Readiness.IN_STEP if known else Readiness.NEVER_SYNCED
    return Readiness.HARPER_NOT_ASKED if known else Readiness.NEVER_SYNCED_HARPER_NOT_ASKED


def find_out_of_step(
    project: Project, contracts: Sequence[TableContract]
) -> "dict[str, OutOfStep]":
    """Finds by their ids the tables of which ledger and Harper contradict each other.

    A Harper that does not answer at once is asked no more, and nothing is said of what is left.
    """
    # Here and not above: they take a moment to import.
    from bq_harper_assets.retries.retry import RetryPolicy
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.stores.harper.errors import HarperError
    from bq_harper_assets.stores.harper.transport import Timeouts
    from bq_harper_assets.sync.errors import OutOfStep

    found: dict[str, OutOfStep] = {}
    if not contracts or not harper_listens(project):
        return found
    once, timeouts = RetryPolicy(max_retries=0), Timeouts(connect_s=WITHIN_S, read_s=WITHIN_S)
    with (
        suppress(HarperError),
        open_ledger(project.ledger.url) as ledger,
        HarperClient(project.harper, retry=once, timeouts=timeouts) as harper,
    ):
        for contract in contracts:
            try:
                _require_in_step(project, ledger, harper, contract)
            except OutOfStep as error:
                found[contract.id] = error
    return found


def _require_in_step(
    project: Project, ledger: "Ledger", harper: "HarperClient", contract: TableContract
) -> None:
    from bq_harper_assets.stores.harper.lease.ledger_agreement import require_in_step
    from bq_harper_assets.sync.ledger_facts import table_facts

    # One that this ledger does not know yet may be known to another.
    never_synced = LedgerRoute(0, 0, table_facts(contract, project.bigquery.project))
    known = ledger.find_route(contract.id) or never_synced
    require_in_step(ledger, harper, known, adopted=contract.target.is_adopted)


def require_source(project: Project, contract: TableContract) -> None:
    """Raises SourceMissing if BigQuery has no such table, SchemaMismatch if a column is wrong.

    All else is told by the run.
    """
    # Here and not above: google's libraries take seconds to import.
    from bq_harper_assets.retries.retry import RetryPolicy
    from bq_harper_assets.schema.errors import SchemaRefused
    from bq_harper_assets.stores.bigquery.errors import BigQueryError, BigQueryMissing
    from bq_harper_assets.stores.bigquery.source import bigquery_source
    from bq_harper_assets.stores.harper.schema import harper_plan
    from bq_harper_assets.sync.ledger_facts import version_of

    bigquery = project.bigquery
    try:
        once = RetryPolicy(max_retries=0)
        with bigquery_source(bigquery, {"bqh": "readiness"}, harper_plan, retry=once) as source:
            schema = source.schema(contract)
    except BigQueryMissing as error:
        if contract.source.query is None:
            name = contract.source.name_in(bigquery.project)
            happened = f"BigQuery has no table {name}, which {contract.id} names as its source"
        else:
            happened = f"BigQuery does not have a table that the customQuery of {contract.id} reads"
        raise SourceMissing(
            f"{happened}. Nothing was started. Correct it in config/tables.yaml (location is "
            f"{bigquery.location}), or create it in BigQuery; then type: bqh sync {contract.id}"
        ) from error
    except BigQueryError:
        return  # the run asks again, and is patient
    with open_ledger(project.ledger.url) as ledger:
        table = ledger.find_route(contract.id)
        before = version_of(ledger.newest_schema(table)) if table else None
    with suppress(SchemaRefused):  # rows that only the run sees may make the change harmless
        harper_plan(contract, schema, before)

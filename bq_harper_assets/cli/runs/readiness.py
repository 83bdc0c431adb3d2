"""What would stop every run of a table is found before one is made, in a second."""

from contextlib import suppress

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.ledger.records import LogicalTable


def require_ready(project: Project, contract: TableContract) -> bool:
    """Raises TableChanged or OutOfStep; False if Harper, which the run will ask, did not answer."""
    # Here and not above: they take a moment to import.
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.stores.harper.errors import HarperError
    from bq_harper_assets.stores.retry import RetryPolicy
    from bq_harper_assets.sync.lease.ledger_agreement import require_in_step
    from bq_harper_assets.sync.ledger_facts import refused_declaration, table_facts

    with open_ledger(project.ledger.url) as ledger:
        if refused := refused_declaration(ledger, contract, project.bigquery):
            raise refused
        # One that this ledger does not know yet may be known to another.
        never_synced = LogicalTable(0, table_facts(contract, project.bigquery))
        table = ledger.find_table(contract.id) or never_synced
        with (
            suppress(HarperError),
            HarperClient(project.harper, retry=RetryPolicy(max_retries=0)) as harper,
        ):
            require_in_step(ledger, harper, table, adopted=contract.manage == "adopt")
            return True
    return False

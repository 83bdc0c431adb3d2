"""Users are told of rows that a sync rightly left out, so that nobody looks for them."""

from collections.abc import Iterator
from datetime import datetime

from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.contract.fields.quantities import duration_text
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract


def young_rows(project: Project, contract: TableContract, ran: RunResults) -> Iterator[str]:
    """Writes a line if BigQuery has rows after what a sync of the newest window has covered."""
    rows = _rows_to_come(project, contract, ran)
    if rows and contract.live:
        lag = duration_text(contract.safety_lag)
        yield f"{rows:,} rows are younger than safetyLag ({lag}) and come next"
    elif rows:
        yield f"{rows:,} rows lie in the window that is still open and come once it has closed"


def _rows_to_come(project: Project, contract: TableContract, ran: RunResults) -> int:
    """Counts them up to now by the time column of one window at most; 0 if nobody can tell."""
    # Here and not above: google's libraries take seconds to import.
    from bq_harper_assets.errors import BqhError
    from bq_harper_assets.ledger.ledger import open_ledger
    from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
    from bq_harper_assets.stores.bigquery.queries import Queries
    from bq_harper_assets.stores.bigquery.server_time import server_time
    from bq_harper_assets.stores.harper.client import HarperClient
    from bq_harper_assets.validation.progress.due_rows import waiting_rows
    from bq_harper_assets.validation.subject import Subject

    if ran.error or not ran.done:
        return 0
    upto = max(datetime.fromisoformat(each["synced_upto"]) for each in ran.done.values())
    queries = Queries(BigQueryCalls(project.bigquery), labels={"bqh": "sync"})
    try:
        with (
            open_ledger(project.ledger.url) as ledger,
            queries.client,
            HarperClient(project.harper) as harper,
        ):
            subject = Subject(contract, queries, harper, ledger)
            return waiting_rows(subject, [(upto, server_time(queries))]).rows
    except BqhError:
        return 0

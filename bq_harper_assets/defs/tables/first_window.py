"""Where a table's first window begins: the contract says, or it is found once and kept."""

import logging
from datetime import UTC, datetime, timedelta

from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.retry import RetryPolicy
from bq_harper_assets.sync.cells.window import floor_to_window
from bq_harper_assets.sync.source.pinned import oldest_row

_DAY = timedelta(days=1)

_log = logging.getLogger(__name__)


def first_window_start(project: Project, contract: TableContract, ledger: Ledger) -> datetime:
    """Returns the declared start; else midnight before the oldest row, or today without any."""
    if contract.sync.start_timestamp is not None:
        return floor_to_window(contract.sync.start_timestamp, contract.window)
    if (known := ledger.start_of(contract.id)) is not None:
        return known
    try:
        # Once: whoever loads definitions waits for it.
        calls = BigQueryCalls(project.bigquery, retry=RetryPolicy(max_retries=0))
        queries = Queries(calls)
        with queries.client:
            oldest = oldest_row(queries, contract)
    except BqhError as error:
        _log.info("%s: partitions begin today, for now: %s", contract.id, error)
        oldest = None
    if oldest is None:
        return floor_to_window(datetime.now(UTC), _DAY)
    return ledger.record_start(contract.id, floor_to_window(oldest, _DAY))

"""A table's first window begins where the contract says, or where it is found once and recorded."""

import logging
from datetime import UTC, datetime

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import floor_to_day, floor_to_window
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.stores.bigquery.calls import BigQueryCalls
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.source import oldest_row

_log = logging.getLogger(__name__)


def declared_start(contract: TableContract) -> datetime | None:
    """Gives the start of the window that holds `startTimestamp`; None if it is not declared."""
    declared = contract.sync.start_timestamp
    return None if declared is None else floor_to_window(declared, contract.window)


def provisional_start(now: datetime) -> datetime:
    """Gives the start of today, where windows begin as long as no older row is known."""
    return floor_to_day(now)


def known_start(contract: TableContract, ledger: Ledger) -> datetime | None:
    """Gives the declared start, else the one on record; None before it was found."""
    return declared_start(contract) or ledger.start_of(contract.id)


def find_start(
    bigquery: BigQueryConnection, contract: TableContract, ledger: Ledger
) -> datetime | None:
    """Gives the known start; else asks BigQuery for the oldest row, whose day is then on record.

    None if there is no row yet, or if BigQuery does not answer: the next one who asks tries again.
    """
    if (known := known_start(contract, ledger)) is not None:
        return known
    try:
        # Once: whoever needs the start waits for it.
        queries = Queries(BigQueryCalls(bigquery, retry=RetryPolicy(max_retries=0)))
        with queries.client:
            oldest = oldest_row(queries, contract)
    except BqhError as error:
        _log.info("%s: windows begin today, for now: %s", contract.id, error)
        return None
    if oldest is None:
        return None
    return ledger.record_start(contract.id, floor_to_day(oldest))


def first_window_start(
    bigquery: BigQueryConnection, contract: TableContract, ledger: Ledger
) -> datetime:
    """Gives the start as `find_start` does; today, which is not recorded, where it gives none."""
    return find_start(bigquery, contract, ledger) or provisional_start(datetime.now(UTC))

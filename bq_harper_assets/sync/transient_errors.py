"""Errors after which the same work may succeed later, without anybody's help."""

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import (
    LeaseHeld,
    LeaseLost,
    LedgerUnavailable,
    SchemaMoved,
)
from bq_harper_assets.stores.bigquery.errors import BigQueryUnavailable, ReadSessionLost
from bq_harper_assets.stores.breaker import CircuitOpen
from bq_harper_assets.stores.harper.errors import HarperUnavailable
from bq_harper_assets.stores.harper.index_parity import IndexNotReady
from bq_harper_assets.sync.errors import (
    LeaseRanOut,
    NotCompared,
    NotComparedYet,
    SourceSchemaMoved,
    SparkGaveUp,
    SparkIsGone,
)
from bq_harper_assets.sync.spark.receipts import Failure

TRANSIENT = (
    BigQueryUnavailable,
    CircuitOpen,
    HarperUnavailable,
    IndexNotReady,
    LeaseHeld,
    LeaseLost,
    LeaseRanOut,
    LedgerUnavailable,
    NotComparedYet,
    SchemaMoved,
    SourceSchemaMoved,
    SparkGaveUp,
    SparkIsGone,
)


def failure_of(error: BqhError) -> Failure:
    """As a task tells it to the driver."""
    lost = isinstance(error, ReadSessionLost)
    # A step that repeated what was out of time would wait much longer than it may.
    return Failure(str(error), isinstance(error, TRANSIENT) and not error.is_out_of_time, lost)


def error_of(failure: Failure) -> NotCompared:
    """As the driver raises what a task has told."""
    return (NotComparedYet if failure.is_transient else NotCompared)(failure.error)

"""BigQuery's own clock: the instant T at which a run reads its source."""

from datetime import UTC, datetime

from bq_harper_assets.stores.bigquery.queries import Queries


def server_time(queries: Queries) -> datetime:
    """Now, by BigQuery: a read pinned here sees every write that was acknowledged before this call.

    The emulator too: it takes a table's copy for time travel before it acknowledges the write.
    """
    answer = queries.run("SELECT CURRENT_TIMESTAMP() AS now", doing="asking for the time")
    now: datetime = answer.rows[0]["now"]
    return now.astimezone(UTC)

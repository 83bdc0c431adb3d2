"""Asks BigQuery's own clock for the instant T at which a run reads its source."""

from datetime import UTC, datetime

from bq_harper_assets.stores.bigquery.queries import Queries


def server_time(queries: Queries) -> datetime:
    """Returns BigQuery's time: a read at it includes every write acknowledged before this call.

    This is true of the emulator too: it copies a table for time travel before it acknowledges the
    write.
    """
    answer = queries.run("SELECT CURRENT_TIMESTAMP() AS now", doing="asking for the time")
    now: datetime = answer.rows[0]["now"]
    return now.astimezone(UTC)

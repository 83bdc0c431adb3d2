"""Reads when each partition of a table last changed: other windows need no comparison."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.stores.bigquery.calls import NO_RETRY
from bq_harper_assets.stores.bigquery.errors import Feature
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.table_ref import TableRef

_FORMATS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H"}  # keyed by the length of an id
_HOUR = timedelta(hours=1)  # no partition is shorter
# The time of a change and a snapshot come from different parts of the service.
_MARGIN = timedelta(minutes=5)


def partition_times(queries: Queries, table: TableRef) -> Mapping[str, datetime]:
    """Returns when each partition last changed, by its id; it is empty if the times prove nothing.

    The emulator's times never change, and rows that are still in the streaming buffer have changed
    no partition yet.
    """
    if queries.connection.endpoint is not None:
        return {}
    described = queries.calls.call(
        lambda: queries.client.get_table(
            str(table), retry=NO_RETRY, timeout=queries.calls.request_s
        ),
        doing="looking for a streaming buffer",
        feature=Feature.DESCRIBE,
        table=str(table),
    )
    if described.streaming_buffer is not None:
        return {}
    view = f"{quoted(table.project, table.dataset)}.INFORMATION_SCHEMA.PARTITIONS"
    answer = queries.run(
        f"SELECT partition_id, last_modified_time FROM {view} WHERE table_name = @name",
        {"name": table.table},
        doing="asking when partitions changed",
        feature=Feature.PARTITIONS,
        table=str(table),
    )
    return {
        row["partition_id"]: row["last_modified_time"].astimezone(UTC)
        for row in answer.rows
        if row["partition_id"] and row["last_modified_time"]
    }


def is_untouched(
    times: Mapping[str, datetime], start: datetime, end: datetime, since: datetime
) -> bool:
    """Says whether no row of [start, end) can have come, changed or gone since.

    It is right only if the table is partitioned by the column of these times. A partition that is
    missing may have been dropped, so it proves nothing.
    """
    lengths = {len(name) for name in times if name.isdigit()}
    if len(lengths) != 1 or (length := lengths.pop()) not in _FORMATS:
        return False
    return all(
        name in times and times[name] + _MARGIN <= since for name in _ids(start, end, length)
    )


def _ids(start: datetime, end: datetime, length: int) -> Iterator[str]:
    at = start
    while at < end:
        yield f"{at:{_FORMATS[length]}}"
        at += _HOUR

"""Fingerprints are computed per window by BigQuery at one instant: equal ones mean equal rows.

One engine computes both sides of every comparison, so it does not matter how it spells a value,
only that it always spells it the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.instants import MICROSECOND, count_windows, floor_to_window, instant_at
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.row_text import row_hash
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.protocols import Fingerprint

_LOW = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True)
class SourceAtInstant:
    """A source at an instant is a table's rows as they were at `at`; None if they never change."""

    table: TableRef
    columns: tuple[Column, ...]
    time_column: Column
    row_filter: str | None = None
    at: datetime | None = None
    id_columns: tuple[Column, ...] = ()  # the columns that make the ids of rows without a key

    @property
    def sql(self) -> str:
        """Returns the text for FROM; the emulator takes no parameter there, so it has a literal."""
        if self.at is None:
            return self.table.sql
        instant = restriction.literal(Kind.TIMESTAMP, self.at)
        return f"{self.table.sql} FOR SYSTEM_TIME AS OF {instant}"


@dataclass(frozen=True)
class Outside:
    """Outside counts the rows that belong to no window, so that none is left out silently."""

    without_time: int
    before_start: int
    in_future: int


def fingerprints(
    queries: Queries, source: SourceAtInstant, start: datetime, end: datetime, window: timedelta
) -> Mapping[datetime, Fingerprint]:
    """Returns the fingerprint of each window that begins before `end`, by its start.

    A window without rows has one too.
    """
    answer = queries.run(
        fingerprint_sql(source, start, end, window),
        doing="fingerprinting windows",
        table=str(source.table),
    )
    found = {
        instant_at(row["w"]): Fingerprint(
            rows=row["n"], distinct=row["d"], xor=row["x"], low=row["low"], high=row["high"]
        )
        for row in answer.rows
    }
    first = floor_to_window(start, window)
    starts = [first + n * window for n in range(count_windows(start, end, window))]
    return {begin: found.get(begin, Fingerprint()) for begin in starts}


def count_outside(
    queries: Queries, source: SourceAtInstant, start: datetime, now: datetime
) -> Outside:
    """Counts the rows that belong to no window.

    It reads the time column alone, but of the whole table if that is not partitioned by it.
    """
    answer = queries.run(
        outside_sql(source, start, now),
        doing="counting rows outside every window",
        table=str(source.table),
    )
    row = answer.rows[0]
    return Outside(row["without_time"], row["before_start"], row["in_future"])


def fingerprint_sql(
    source: SourceAtInstant, start: datetime, end: datetime, window: timedelta
) -> str:
    """Makes SQL for one row per window that has rows.

    Its columns are w (the window's start in microseconds), n, d, x, low and high.
    """
    micros = micros_sql(source.time_column)
    begin = window_start_sql(micros, window)
    wanted = restriction.between(source.time_column, start, end, source.row_filter)
    hashes = f"{row_hash(source.columns)} AS h"
    distinct = "h"
    if source.id_columns and set(source.id_columns) != set(source.columns):
        hashes += f", {row_hash(source.id_columns)} AS i"
        distinct = "i"
    return (
        f"SELECT w, COUNT(*) AS n, COUNT(DISTINCT {distinct}) AS d, BIT_XOR(h) AS x,"
        f" SUM(h & {_LOW}) AS low, SUM((h >> 32) & {_LOW}) AS high"
        f" FROM (SELECT {begin} AS w, {hashes}"
        f" FROM {source.sql} WHERE {wanted}) GROUP BY w"
    )


def outside_sql(source: SourceAtInstant, start: datetime, now: datetime) -> str:
    """Makes SQL for one row: without_time, before_start, in_future."""
    column = source.time_column
    name = quoted(column.name)
    return (
        f"SELECT COUNTIF({name} IS NULL) AS without_time,"
        f" COUNTIF({name} < {restriction.literal(column.kind, start)}) AS before_start,"
        f" COUNTIF({name} >= {restriction.literal(column.kind, now)}) AS in_future"
        f" FROM {source.sql}"
        f" WHERE {restriction.outside(column, start, now, source.row_filter)}"
    )


def window_start_sql(micros: str, window: timedelta) -> str:
    """Makes SQL for the start of the window of a time, both in microseconds since 1970."""
    length = window // MICROSECOND
    # DIV and MOD round towards zero, and rows may be older than 1970.
    return f"{micros} - MOD(MOD({micros}, {length}) + {length}, {length})"


def micros_sql(column: Column) -> str:
    """Makes SQL for the time of a row in microseconds since 1970."""
    name = quoted(column.name)
    return f"UNIX_MICROS({name if column.kind is Kind.TIMESTAMP else f'TIMESTAMP({name})'})"

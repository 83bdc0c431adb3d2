"""Fingerprints of windows, made by BigQuery itself at one instant: equal ones mean equal rows.

One engine makes both sides of every comparison, so it does not matter how it spells a value, only
that it always spells it the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.row_text import row_hash
from bq_harper_assets.stores.bigquery.table_ref import TableRef

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LOW = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What the rows of one window are, whatever their order."""

    rows: int = 0
    distinct: int = 0  # less than rows if some rows are equal in what ids are made of
    xor: int = 0
    low: int = 0  # sums of the halves of the hashes: a whole sum would overflow
    high: int = 0

    @property
    def text(self) -> str:
        """As the ledger keeps it."""
        xor = self.xor & (2**64 - 1)
        return f"{self.rows}:{self.distinct}:{xor:016x}:{self.low:x}:{self.high:x}"


@dataclass(frozen=True, kw_only=True)
class SourceAtInstant:
    """A table's rows as they were at one instant; `at` None means that they do not change."""

    table: TableRef
    columns: tuple[Column, ...]
    time_column: Column
    row_filter: str | None = None
    at: datetime | None = None
    id_columns: tuple[Column, ...] = ()  # of rows without a key, what ids are made of

    @property
    def sql(self) -> str:
        """For FROM. The instant is a literal: the emulator takes no parameter there."""
        if self.at is None:
            return self.table.sql
        instant = restriction.literal(Kind.TIMESTAMP, self.at)
        return f"{self.table.sql} FOR SYSTEM_TIME AS OF {instant}"


@dataclass(frozen=True)
class Outside:
    """Rows that belong to no window, so that none is left out without a word."""

    without_time: int
    before_start: int
    in_future: int


def fingerprints(
    queries: Queries, source: SourceAtInstant, start: datetime, end: datetime, window: timedelta
) -> Mapping[datetime, Fingerprint]:
    """One per window that begins before `end`, by its start; a window without rows has one too."""
    answer = queries.run(
        fingerprint_sql(source, start, end, window),
        doing="fingerprinting windows",
        table=str(source.table),
    )
    found = {
        _EPOCH + row["w"] * _MICROSECOND: Fingerprint(
            rows=row["n"], distinct=row["d"], xor=row["x"], low=row["low"], high=row["high"]
        )
        for row in answer.rows
    }
    first = start - (start - _EPOCH) % window
    count = -((first - end) // window)
    starts = [first + n * window for n in range(count)]
    return {begin: found.get(begin, Fingerprint()) for begin in starts}


def count_outside(
    queries: Queries, source: SourceAtInstant, start: datetime, now: datetime
) -> Outside:
    """Reads the time column alone, but of the whole table where it is not partitioned by it."""
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
    """One row per window that has rows: w (its start in microseconds), n, d, x, low, high."""
    micros = micros_sql(source.time_column)
    length = window // _MICROSECOND
    # DIV and MOD round towards zero, and there were rows before 1970.
    begin = f"{micros} - MOD(MOD({micros}, {length}) + {length}, {length})"
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
    """One row: without_time, before_start, in_future."""
    column = source.time_column
    name = quoted(column.name)
    return (
        f"SELECT COUNTIF({name} IS NULL) AS without_time,"
        f" COUNTIF({name} < {restriction.literal(column.kind, start)}) AS before_start,"
        f" COUNTIF({name} >= {restriction.literal(column.kind, now)}) AS in_future"
        f" FROM {source.sql}"
        f" WHERE {restriction.outside(column, start, now, source.row_filter)}"
    )


def micros_sql(column: Column) -> str:
    """The time of a row in microseconds since 1970, in SQL."""
    name = quoted(column.name)
    return f"UNIX_MICROS({name if column.kind is Kind.TIMESTAMP else f'TIMESTAMP({name})'})"

"""Says when a row has to be in Harper, and which rows of the source Harper still waits for.

A live table owes a row once it is older than the safety lag. A table that syncs closed windows only
owes it once its window has closed and the safety lag has passed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant
from bq_harper_assets.stores.bigquery.materialised_query import query_of
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.cells.window import Span
from bq_harper_assets.validation.subject import Subject

RANGES_PER_QUERY = 100  # each range is two columns of the query


def due_until(contract: TableContract, now: datetime) -> datetime:
    """Gives the time before which all rows should be in Harper."""
    closed = now - contract.safety_lag
    return closed if contract.live else floor_to_window(closed, contract.window)


def due_since(contract: TableContract, moment: datetime) -> datetime:
    """Says from when on a row of this time should be in Harper."""
    if not contract.live:
        moment = floor_to_window(moment, contract.window) + contract.window
    return moment + contract.safety_lag


@dataclass(frozen=True)
class Waiting:
    """Waiting counts the source's rows in some ranges of time, and has the time of the oldest."""

    rows: int = 0
    oldest: datetime | None = None

    def overdue(self, contract: TableContract, now: datetime) -> timedelta:
        """Says for how long the oldest of the rows has been due."""
        if self.oldest is None:
            return timedelta(0)
        return max(now - due_since(contract, self.oldest), timedelta(0))


@dataclass(frozen=True)
class _Query(TableRef):
    """A query stands where a table is expected."""

    text: str = ""

    @property
    def sql(self) -> str:
        return f"({self.text})"

    def __str__(self) -> str:
        return self.table


def source_now(subject: Subject) -> SourceAtInstant:
    """Gives all rows of the contract's source as they are now, to ask about their times."""
    contract, project = subject.contract, subject.queries.connection.project
    column = subject.time_column()
    if contract.source.query is not None or contract.latest:
        names = [*dict.fromkeys((*(contract.key or ()), contract.timestamp_column))]
        query = _Query(project, "", contract.id, query_of(contract, project, names))
        return SourceAtInstant(table=query, columns=(column,), time_column=column)
    table = TableRef(project, contract.source.dataset or "", contract.source.table or "")
    return SourceAtInstant(
        table=table, columns=(column,), time_column=column, row_filter=contract.source.row_filter
    )


def waiting_rows(subject: Subject, ranges: Sequence[Span]) -> Waiting:
    """Counts the source's rows in all of the ranges together."""
    found = waiting_in(subject, ranges).values()
    oldest = min((each.oldest for each in found if each.oldest), default=None)
    return Waiting(sum(each.rows for each in found), oldest)


def waiting_in(subject: Subject, ranges: Iterable[Span]) -> dict[Span, Waiting]:
    """Counts the source's rows in each range; reads only the time column, once for many ranges."""
    asked = [(start, end) for start, end in dict.fromkeys(ranges) if start < end]
    found: dict[Span, Waiting] = {}
    for first in range(0, len(asked), RANGES_PER_QUERY):
        found |= _waiting(subject, asked[first : first + RANGES_PER_QUERY])
    return found


def _waiting(subject: Subject, ranges: Sequence[Span]) -> dict[Span, Waiting]:
    source = source_now(subject)
    column = source.time_column
    name, within = quoted(column.name), [restriction.between(column, *each) for each in ranges]
    counted = (
        f"COUNTIF({each}) AS n{at}, CAST(MIN(IF({each}, {name}, NULL)) AS TIMESTAMP) AS oldest{at}"
        for at, each in enumerate(within)
    )
    row = subject.queries.run(
        f"SELECT {', '.join(counted)} FROM {source.sql}"
        f" WHERE {restriction.with_filter(' OR '.join(within), source.row_filter)}",
        doing="looking for rows that are due",
        table=str(source.table),
    ).rows[0]
    return {
        each: Waiting(row[f"n{at}"], _utc(row[f"oldest{at}"])) for at, each in enumerate(ranges)
    }


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment else None


def in_words(span: timedelta) -> str:
    """Writes a duration in whole seconds."""
    return str(timedelta(seconds=int(span.total_seconds())))

"""Picks times at which the source has rows, few enough to be read."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.instants import EPOCH, MICROSECOND
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.fingerprint import (
    SourceAtInstant,
    micros_sql,
    window_start_sql,
)
from bq_harper_assets.stores.bigquery.queries import Queries

MOST_SAMPLED_ROWS = 100_000  # rows of one time are read together, because equal rows are numbered
TIMES_PER_QUERY = 1_000  # each is a literal of the query


def times_of(
    queries: Queries,
    source: SourceAtInstant,
    until: Mapping[datetime, datetime],
    window: timedelta,
    most: int,
    seed: int,
) -> list[datetime]:
    """Picks times that rows have, at most `most` of each window, all with the same chance.

    `until` says for the start of each window up to which time rows are picked.
    """
    if not until:
        return []
    column = source.time_column
    within = " OR ".join(restriction.between(column, *each) for each in _merged(until))
    # ROW_NUMBER is not used, because it would sort all times of a window on one worker.
    any_order = "FARM_FINGERPRINT(CONCAT(CAST(m AS STRING), @seed)), m"
    rows = queries.run(
        f"SELECT m FROM (SELECT ARRAY_AGG(m ORDER BY {any_order} LIMIT {most}) AS some"
        f" FROM (SELECT DISTINCT {micros_sql(column)} AS m FROM {source.sql}"
        f" WHERE {restriction.with_filter(within, source.row_filter)})"
        f" GROUP BY {window_start_sql('m', window)}), UNNEST(some) AS m",
        {"seed": f"|{seed}"},
        doing="picking rows for a spot check",
        table=str(source.table),
    ).rows
    return sorted(EPOCH + row["m"] * MICROSECOND for row in rows)


def _merged(until: Mapping[datetime, datetime]) -> list[tuple[datetime, datetime]]:
    """Joins windows that follow each other into one range."""
    found: list[tuple[datetime, datetime]] = []
    for start, end in sorted(until.items()):
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def rows_at(
    queries: Queries, source: SourceAtInstant, times: Iterable[datetime]
) -> dict[datetime, int]:
    """Counts the rows that have each of these times."""
    name, wanted = quoted(source.time_column.name), sorted(set(times))
    found = dict.fromkeys(wanted, 0)
    for first in range(0, len(wanted), TIMES_PER_QUERY):
        within = restriction.at_any(
            source.time_column, wanted[first : first + TIMES_PER_QUERY], source.row_filter
        )
        rows = queries.run(
            f"SELECT CAST(MIN({name}) AS TIMESTAMP) AS moment, COUNT(*) AS n FROM {source.sql}"
            f" WHERE {within} GROUP BY {name}",
            doing="counting rows of the same time",
            table=str(source.table),
        ).rows
        found |= {row["moment"].astimezone(UTC): row["n"] for row in rows}
    return found


def uncrowded(counts: Mapping[datetime, int]) -> list[datetime]:
    """Gives the times whose rows can be read at once; times with fewer rows come first."""
    kept, total = [], 0
    for moment in sorted(counts, key=lambda each: (counts[each], each)):
        total += counts[moment]
        if total <= MOST_SAMPLED_ROWS:
            kept.append(moment)
    return kept


def read_together(counts: Mapping[datetime, int]) -> Iterator[list[datetime]]:
    """Yields times with rows, as many as one session reads; their rows are in memory at once."""
    some: list[datetime] = []
    rows = 0
    for moment in sorted(each for each, count in counts.items() if count):
        if some and (len(some) == TIMES_PER_QUERY or rows + counts[moment] > MOST_SAMPLED_ROWS):
            yield some
            some, rows = [], 0
        some.append(moment)
        rows += counts[moment]
    if some:
        yield some

"""Reads some rows of the source at one instant, with their ids and values in Harper."""

import json
from collections import Counter as Occurrences
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.contract.identifiers import quoted
from bq_harper_assets.instants import EPOCH, MICROSECOND, instant_at, micros_at
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant, micros_sql
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.read_session import open_session, read_stream
from bq_harper_assets.sync.arrays.arrow_memory import Int64s
from bq_harper_assets.sync.cells.slicing import slice_of
from bq_harper_assets.sync.cells.window import micros_of
from bq_harper_assets.sync.identity.occurrences import Counter, numbers_by_stream
from bq_harper_assets.sync.identity.row_hash import row_hashes
from bq_harper_assets.sync.identity.row_id import Identity, hashes_of_ids, identify
from bq_harper_assets.sync.values.row_plan import RowPlan
from bq_harper_assets.sync.write.record import encode_batch
from bq_harper_assets.sync.write.request_body import bodies
from bq_harper_assets.validation.spot.sampled_cells import CommittedCell

MOST_SAMPLED_ROWS = 100_000  # rows of one time are read together, because equal rows are numbered
TIMES_PER_QUERY = 1_000  # each is a literal of the query


@dataclass(frozen=True, eq=False)
class SourceRows:
    """The source rows are all rows that the source has at some times."""

    batch: pa.RecordBatch
    identity: Identity
    plan: RowPlan

    @cached_property
    def ids(self) -> list[Any]:
        """Gives the id of each row; None for a row that can have none."""
        found: list[Any] = self.identity.ids.to_pylist()
        return found

    @cached_property
    def place_of_id(self) -> dict[Any, int]:
        """Gives the row number of each id."""
        return {row_id: row for row, row_id in enumerate(self.ids) if row_id is not None}

    @cached_property
    def micros(self) -> Int64s:
        """Gives the time of each row in microseconds."""
        times = micros_of(self.batch.column(self.plan.timestamp))
        found: Int64s = times.to_numpy(zero_copy_only=False)
        return found

    def rows_in(self, place: CommittedCell, slices: int) -> list[int]:
        """Gives the rows of a cell that can have an id, where the table has so many slices."""
        is_there = (self.micros >= micros_at(place.start)) & (self.micros < micros_at(place.until))
        is_ours = slice_of(self.identity.id_hashes, slices) == place.slice
        there = [int(row) for row in np.flatnonzero(is_there & is_ours)]
        # The order is by id: BigQuery gives rows in any order, and a seed has to repeat its sample.
        return sorted(
            (row for row in there if self.ids[row] is not None), key=lambda row: self.ids[row]
        )

    def records(self, rows: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        """Gives rows as Harper should return them; a row that no sync would write is left out."""
        wanted = np.zeros(self.batch.num_rows, bool)
        wanted[list(rows)] = True
        encoded = encode_batch(
            self.batch.filter(pa.array(wanted)),
            self.plan,
            self.identity.where(wanted),
            synced_at=EPOCH,
            batch_number=0,
        )
        texts = bodies(encoded.accepted, most_rows=len(rows) or 1, most_bytes=2**62)
        found = [record for body in texts for record in json.loads(body.content)]
        return {self.place_of_id[record[self.plan.primary_key]]: record for record in found}


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
    column, length = source.time_column, window // MICROSECOND
    within = " OR ".join(restriction.between(column, *each) for each in _merged(until))
    # DIV and MOD round towards zero, and there were rows before 1970.
    begin = f"m - MOD(MOD(m, {length}) + {length}, {length})"
    # ROW_NUMBER is not used, because it would sort all times of a window on one worker.
    any_order = "FARM_FINGERPRINT(CONCAT(CAST(m AS STRING), @seed)), m"
    rows = queries.run(
        f"SELECT m FROM (SELECT ARRAY_AGG(m ORDER BY {any_order} LIMIT {most}) AS some"
        f" FROM (SELECT DISTINCT {micros_sql(column)} AS m FROM {source.sql}"
        f" WHERE {restriction.with_filter(within, source.row_filter)})"
        f" GROUP BY {begin}), UNNEST(some) AS m",
        {"seed": f"|{seed}"},
        doing="picking rows for a spot check",
        table=str(source.table),
    ).rows
    return sorted(instant_at(row["m"]) for row in rows)


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


def read_source_rows(
    queries: Queries, source: SourceAtInstant, plan: RowPlan, times: Sequence[datetime]
) -> SourceRows | None:
    """Reads all rows of these times with the ids of a sync; None if there are none."""
    if not times:
        return None
    storage = connect_storage(queries.connection)
    try:
        session = open_session(
            storage,
            queries.calls,
            source.table,
            [column.read_as for column in plan.columns],
            restriction.at_any(source.time_column, times, source.row_filter),
            source.at,
            1,
        )
        batches = [
            plan.named(batch)
            for stream in session.streams
            for batch in read_stream(
                queries.connection, stream, session.schema, calls=queries.calls, client=storage
            )
        ]
    finally:
        storage.transport.close()  # type: ignore[no-untyped-call]
    rows = pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []
    if not rows:
        return None
    return SourceRows(rows[0], identify(rows[0], plan, _numbers(rows[0], plan)), plan)


def _numbers(batch: pa.RecordBatch, plan: RowPlan) -> pa.Array | None:
    if plan.key:
        return None
    hashes = row_hashes(batch, plan.names)
    pairs = zip(hashes_of_ids(batch, plan, hashes).tolist(), hashes.tolist(), strict=True)
    contents = ((*pair, "", count) for pair, count in Occurrences(pairs).items())
    return Counter(numbers_by_stream(contents).get("")).number(hashes)

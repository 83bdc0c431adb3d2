"""Some rows of the source as they were at one instant, with their ids and values in Harper."""

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
from bq_harper_assets.stores.bigquery import restriction
from bq_harper_assets.stores.bigquery.client import connect_storage
from bq_harper_assets.stores.bigquery.fingerprint import Source
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.read_session import open_session, read_stream
from bq_harper_assets.sync.encode import encode_batch
from bq_harper_assets.sync.json_body import bodies
from bq_harper_assets.sync.numbering import Counter, numbers_by_stream
from bq_harper_assets.sync.row_hash import row_hashes
from bq_harper_assets.sync.row_ids import Identity, hashes_of_ids, identify
from bq_harper_assets.sync.slices import slice_of
from bq_harper_assets.sync.stored import RowPlan
from bq_harper_assets.sync.windows import micros_of
from bq_harper_assets.validation.sample import Pick

MOST_ROWS = 100_000  # read at once: rows of one time come together, for equal ones are numbered
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class SourceRows:
    """All rows of some times."""

    batch: pa.RecordBatch
    identity: Identity
    plan: RowPlan

    @cached_property
    def ids(self) -> list[Any]:
        """By row; None where a row can have none."""
        found: list[Any] = self.identity.ids.to_pylist()
        return found

    @cached_property
    def place_of_id(self) -> dict[Any, int]:
        """The row of each id."""
        return {row_id: row for row, row_id in enumerate(self.ids) if row_id is not None}

    def rows_at(self, moment: datetime, slices: Iterable[int], of: int) -> list[int]:
        """Rows of this time in these slices, of so many, that can have an id."""
        micros = micros_of(self.batch.column(self.plan.timestamp)).to_numpy(zero_copy_only=False)
        ours = np.isin(slice_of(self.identity.id_hashes, of), list(slices))
        there = np.flatnonzero((micros == (moment - _EPOCH) // _MICROSECOND) & ours)
        return [int(row) for row in there if self.ids[row] is not None]

    def records(self, rows: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        """As Harper should give them back; one that no sync would write is left out."""
        wanted = np.zeros(self.batch.num_rows, bool)
        wanted[list(rows)] = True
        encoded = encode_batch(
            self.batch.filter(pa.array(wanted)),
            self.plan,
            self.identity.where(wanted),
            synced_at=_EPOCH,
            batch_number=0,
        )
        texts = bodies(encoded.accepted, most_rows=len(rows) or 1, most_bytes=2**62)
        found = [record for body in texts for record in json.loads(body.content)]
        return {self.place_of_id[record[self.plan.primary_key]]: record for record in found}


def times_at(queries: Queries, source: Source, picks: Sequence[Pick]) -> list[datetime | None]:
    """The time of the first row at or after each instant, or else of the first in its place."""
    name = quoted(source.time_column.name)
    columns, ranges = [], dict[str, None]()
    for number, pick in enumerate(picks):
        place = pick.place
        after = restriction.between(source.time_column, pick.instant, place.until)
        before = restriction.between(source.time_column, place.start, pick.instant)
        columns += [
            f"CAST(MIN(IF({after}, {name}, NULL)) AS TIMESTAMP) AS after_{number}",
            f"CAST(MIN(IF({before}, {name}, NULL)) AS TIMESTAMP) AS first_{number}",
        ]
        ranges[restriction.between(source.time_column, place.start, place.until)] = None
    if not columns:
        return []
    within = restriction.with_filter(" OR ".join(ranges), source.row_filter)
    row = queries.run(
        f"SELECT {', '.join(columns)} FROM {source.sql} WHERE {within}",
        doing="picking rows for a spot check",
        table=str(source.table),
    ).rows[0]
    found = [row[f"after_{number}"] or row[f"first_{number}"] for number in range(len(picks))]
    return [moment.astimezone(UTC) if moment else None for moment in found]


def uncrowded(queries: Queries, source: Source, times: Iterable[datetime]) -> list[datetime]:
    """The times whose rows can be read at once; the emptier ones first."""
    name = quoted(source.time_column.name)
    wanted = sorted(set(times))
    if not wanted:
        return []
    rows = queries.run(
        f"SELECT CAST(MIN({name}) AS TIMESTAMP) AS moment, COUNT(*) AS n FROM {source.sql}"
        f" WHERE {_at(source, wanted)} GROUP BY {name}",
        doing="counting rows of the same time",
        table=str(source.table),
    ).rows
    counts = {row["moment"].astimezone(UTC): row["n"] for row in rows}
    kept, total = [], 0
    for moment in sorted(wanted, key=lambda each: counts.get(each, 0)):
        total += counts.get(moment, 0)
        if total <= MOST_ROWS:
            kept.append(moment)
    return kept


def read_rows(
    queries: Queries, source: Source, plan: RowPlan, times: Sequence[datetime]
) -> SourceRows | None:
    """All rows of these times, as a sync would identify them; None if there are none."""
    if not times:
        return None
    storage = connect_storage(queries.connection)
    try:
        session = open_session(
            storage,
            queries.calls,
            source.table,
            [column.read_as for column in plan.columns],
            _at(source, times),
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


def _at(source: Source, times: Iterable[datetime]) -> str:
    column = source.time_column
    exact = (restriction.between(column, each, each + _MICROSECOND) for each in times)
    return restriction.with_filter(" OR ".join(exact), source.row_filter)


def _numbers(batch: pa.RecordBatch, plan: RowPlan) -> pa.Array | None:
    if plan.key:
        return None
    hashes = row_hashes(batch, plan.names)
    pairs = zip(hashes_of_ids(batch, plan, hashes).tolist(), hashes.tolist(), strict=True)
    contents = ((*pair, "", count) for pair, count in Occurrences(pairs).items())
    return Counter(numbers_by_stream(contents).get("")).number(hashes)

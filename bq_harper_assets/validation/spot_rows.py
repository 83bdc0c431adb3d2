"""The rows of a spot check: found in one store, looked up in the other, and compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa

from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.fingerprint import Source
from bq_harper_assets.stores.bigquery.key_lookup import key_text, times_of_keys
from bq_harper_assets.stores.harper.client import Row
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.sync.held import text_of
from bq_harper_assets.sync.slices import id_hashes, slice_of
from bq_harper_assets.sync.stored import RowPlan
from bq_harper_assets.sync.windows import EPOCH
from bq_harper_assets.validation.compare import DELETED_AT, differing_columns
from bq_harper_assets.validation.sample import Pick, Place
from bq_harper_assets.validation.source_sample import SourceRows, read_rows, times_at, uncrowded
from bq_harper_assets.validation.subject import Subject, instant_of
from bq_harper_assets.validation.verdict import Difference, DifferenceKind

PICKS_PER_QUERY = 100  # each is two columns of it
ROWS_PER_LOOK = 50  # of which some may belong to other slices


@dataclass(frozen=True)
class Found:
    """A difference, and the place whose promise it breaks."""

    place: Place
    slice: int
    difference: Difference


@dataclass(frozen=True)
class Compared:
    """What was looked at, and what is not the same."""

    from_source: int = 0
    from_harper: int = 0
    unstorable: int = 0  # rows of the source that belong into quarantine
    kept: int = 0  # gone from the source, and still in Harper as the contract wants it
    crowded: int = 0  # times with too many rows to be looked at
    differences: tuple[Found, ...] = ()

    def __add__(self, other: "Compared") -> "Compared":
        return Compared(
            self.from_source + other.from_source,
            self.from_harper + other.from_harper,
            self.unstorable + other.unstorable,
            self.kept + other.kept,
            self.crowded + other.crowded,
            (*self.differences, *other.differences),
        )


@dataclass(frozen=True)
class Comparison:
    """Both stores, the source as it was at one instant and under one schema version."""

    subject: Subject
    slices: int
    source: Source
    plan: RowPlan
    chance: Random

    def of(self, picks: Sequence[Pick], found: Sequence[tuple[Place, Row]], most: int) -> Compared:
        """The source's rows at the picks, at most so many, and these rows of Harper."""
        queries = self.subject.queries
        kind = self.source.time_column.kind
        times = [
            moment
            for first in range(0, len(picks), PICKS_PER_QUERY)
            for moment in times_at(queries, self.source, picks[first : first + PICKS_PER_QUERY])
        ]
        stored_at = [instant_of(kind, row[self.plan.timestamp]) for _, row in found]
        wanted = {moment for moment in (*times, *stored_at) if moment is not None}
        readable = set(uncrowded(queries, self.source, wanted))
        rows = read_rows(queries, self.source, self.plan, sorted(readable))
        chosen = self._chosen(rows, picks, times, most)
        looked = [pair for pair, at in zip(found, stored_at, strict=True) if at in readable]
        return (
            self._missing_or_changed(rows, chosen)
            + self._phantom_or_changed(rows, looked)
            + Compared(crowded=len(wanted - readable))
        )

    def _chosen(
        self,
        rows: SourceRows | None,
        picks: Sequence[Pick],
        times: Sequence[datetime | None],
        most: int,
    ) -> dict[int, Place]:
        """One row of each time, with its place."""
        chosen: dict[int, Place] = {}
        for pick, moment in zip(picks, times, strict=True):
            if rows is None or moment is None or len(chosen) >= most:
                continue
            candidates = rows.rows_at(moment, pick.place.slices, self.slices)
            if candidates:
                chosen[self.chance.choice(candidates)] = pick.place
        return chosen

    def _missing_or_changed(self, rows: SourceRows | None, chosen: dict[int, Place]) -> Compared:
        if rows is None or not chosen:
            return Compared()
        records = rows.records(list(chosen))
        ids = [rows.ids[row] for row in records]
        target, key = self.subject.contract.target_table, self.plan.primary_key
        stored = {row[key]: row for row in self.subject.harper.search_by_id(target, ids)}
        differences = []
        for row, expected in records.items():
            row_id = rows.ids[row]
            if row_id not in stored:
                missing = Difference(DifferenceKind.MISSING, row_id)
                differences.append(self._found(chosen[row], missing))
            elif columns := differing_columns(expected, stored[row_id], self.plan.columns):
                changed = Difference(DifferenceKind.CHANGED, row_id, columns)
                differences.append(self._found(chosen[row], changed))
        return Compared(
            from_source=len(records),
            unstorable=len(chosen) - len(records),
            differences=tuple(differences),
        )

    def _phantom_or_changed(
        self, rows: SourceRows | None, found: Sequence[tuple[Place, Row]]
    ) -> Compared:
        places = rows.place_of_id if rows else {}
        key = self.plan.primary_key
        known = [places[row[key]] for _, row in found if row[key] in places]
        records = rows.records(known) if rows and known else {}
        differences, kept = [], 0
        for place, row in found:
            expected = records.get(places.get(row[key], -1))
            if expected is not None:
                if columns := differing_columns(expected, row, self.plan.columns):
                    changed = Difference(DifferenceKind.CHANGED, row[key], columns)
                    differences.append(self._found(place, changed))
            elif self._is_meant_to_stay(row):
                kept += 1
            else:
                differences.append(self._found(place, self._not_at_its_time(row)))
        return Compared(from_harper=len(found), kept=kept, differences=tuple(differences))

    def _found(self, place: Place, difference: Difference) -> Found:
        return Found(place, slice_of_id(difference.id, self.plan, self.slices), difference)

    def _is_meant_to_stay(self, row: Row) -> bool:
        policy = self.subject.contract.deletes
        return policy == "keep" or (policy == "flag" and row.get(DELETED_AT) is not None)

    def _not_at_its_time(self, row: Row) -> Difference:
        """A row whose time has changed in the source is no phantom: its key is looked up."""
        row_id, name = row[self.plan.primary_key], self.plan.timestamp
        moment = self._time_of_key(row)
        if moment is None:
            return Difference(DifferenceKind.PHANTOM, row_id)
        text = text_of(self.source.time_column.kind, moment)
        return Difference(DifferenceKind.CHANGED, row_id, {name: (text, row[name])})

    def _time_of_key(self, row: Row) -> datetime | None:
        values = [row.get(name) for name in self.plan.key]
        if not values or None in values:
            return None
        columns = {column.name: column for column in self.plan.columns}
        times = times_of_keys(
            self.subject.queries,
            self.source.sql,
            self.source.row_filter,
            [Column(columns[name].read_as, columns[name].kind) for name in self.plan.key],
            self.source.time_column,
            [[key_text(value) for value in values]],
            table=str(self.source.table),
        )
        micros = times.get(0)
        return None if micros is None else EPOCH + timedelta(microseconds=micros)


def slice_of_id(row_id: str | int, plan: RowPlan, slices: int) -> int:
    """The slice of a stored row."""
    return int(slice_of(id_hashes(pa.array([row_id]), keyless=not plan.key), slices)[0])


def harper_rows(
    subject: Subject,
    plan: RowPlan,
    slices: int,
    kind: Kind,
    picks: Sequence[Pick],
    most: int,
    chance: Random,
) -> Iterator[tuple[Place, Row]]:
    """Rows of Harper at the picks, each once, at most so many; of equal times any of the first."""
    seen: set[Any] = set()
    for pick in picks:
        if len(seen) >= most:
            return
        page = [
            row
            for row in _around(subject, plan, kind, pick)
            if slice_of_id(row[plan.primary_key], plan, slices) in pick.place.slices
        ]
        if not page:
            continue
        row = chance.choice([r for r in page if r[plan.timestamp] == page[0][plan.timestamp]])
        if row[plan.primary_key] not in seen:
            seen.add(row[plan.primary_key])
            yield pick.place, row


def _around(subject: Subject, plan: RowPlan, kind: Kind, pick: Pick) -> list[Row]:
    """A page of those at or after the instant, or else of those from the start of its place on."""
    ends = [pick.place.start, pick.instant, pick.place.until]
    start, middle, end = (text_of(kind, moment) for moment in ends)
    for bounds in ([middle, end], [start, middle]):
        page = subject.harper.search_by_conditions(
            subject.contract.target_table,
            [Condition(plan.timestamp, "gelt", bounds)],
            sort_by=plan.timestamp,
            limit=ROWS_PER_LOOK,
        )
        if page:
            return page
    return []

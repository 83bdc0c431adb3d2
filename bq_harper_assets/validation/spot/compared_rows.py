"""Finds the rows of a spot check in one store, fetches them from the other, and compares them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from random import Random
from typing import Any

import pyarrow as pa

from bq_harper_assets.contract.identifiers import DELETED_AT
from bq_harper_assets.instants import instant_at
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant
from bq_harper_assets.stores.bigquery.key_lookup import key_text, times_of_keys
from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import Row
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.diff.target_rows import text_of
from bq_harper_assets.sync.values.row_plan import RowPlan
from bq_harper_assets.validation.record_comparison import differing_columns
from bq_harper_assets.validation.spot.sampled_cells import CommittedCell, instants
from bq_harper_assets.validation.spot.source_sample import SourceRows, read_source_rows
from bq_harper_assets.validation.subject import Subject, instant_of
from bq_harper_assets.validation.verdict import Difference, DifferenceKind

ROWS_PER_SEARCH = 50  # some of them may belong to other slices
_SEARCHES = 2  # at least, per window: a page of rows of one time may have no row of some slice


class Side(Enum):
    """The side is the store in which a row was found before it was fetched from the other."""

    BIGQUERY = "bigquery"
    HARPER = "harper"


class Outcome(Enum):
    """An outcome says how a row compares with the other store."""

    SAME = "same"
    DIFFERENT = "different"
    UNSTORABLE = "unstorable"  # it belongs in quarantine
    KEPT = "kept"  # gone from the source, and kept in Harper as the contract says
    MOVED = "moved"  # different, but its cell was synced or marked after the check began


@dataclass(frozen=True)
class ComparedRow:
    """A compared row is a row of a cell that was compared with the other store."""

    place: CommittedCell
    side: Side
    outcome: Outcome
    difference: Difference | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A comparison compares rows of Harper with the source at one instant and schema version."""

    subject: Subject
    slices: int
    source: SourceAtInstant
    plan: RowPlan
    chance: Random

    def of(
        self,
        wanted: Mapping[CommittedCell, int],
        times: Sequence[datetime],
        found: Sequence[tuple[CommittedCell, Row]],
    ) -> Iterator[ComparedRow]:
        """Compares `wanted` rows of the source in each cell, and the rows found in Harper.

        `times` are the times of all of them.
        """
        rows = read_source_rows(self.subject.queries, self.source, self.plan, times)
        yield from self._missing_or_changed(rows, self._chosen(rows, wanted))
        yield from self._phantom_or_changed(rows, found)

    def _chosen(
        self, rows: SourceRows | None, wanted: Mapping[CommittedCell, int]
    ) -> dict[int, CommittedCell]:
        chosen: dict[int, CommittedCell] = {}
        for place, count in wanted.items() if rows else ():
            there = rows.rows_in(place, self.slices) if rows else []
            some = self.chance.sample(there, min(count, len(there)))
            chosen |= dict.fromkeys(some, place)
        return chosen

    def _missing_or_changed(
        self, rows: SourceRows | None, chosen: dict[int, CommittedCell]
    ) -> Iterator[ComparedRow]:
        if rows is None or not chosen:
            return
        records = rows.records(list(chosen))
        ids = [rows.ids[row] for row in records]
        target, key = self.subject.contract.target_table, self.plan.primary_key
        answer = self.subject.harper.search_by_id(target, ids)
        found = require_ids(answer, key, "search_by_id", target)
        stored = dict(zip(found, answer, strict=True))
        for row, place in chosen.items():
            row_id = rows.ids[row]
            if row not in records:
                yield ComparedRow(place, Side.BIGQUERY, Outcome.UNSTORABLE)
            elif row_id not in stored:
                missing = Difference(DifferenceKind.MISSING, row_id)
                yield ComparedRow(place, Side.BIGQUERY, Outcome.DIFFERENT, missing)
            else:
                yield self._same_or_changed(place, Side.BIGQUERY, records[row], stored[row_id])

    def _phantom_or_changed(
        self, rows: SourceRows | None, found: Sequence[tuple[CommittedCell, Row]]
    ) -> Iterator[ComparedRow]:
        row_of = rows.place_of_id if rows else {}
        key = self.plan.primary_key
        known = [row_of[row[key]] for _, row in found if row[key] in row_of]
        records = rows.records(known) if rows and known else {}
        for place, row in found:
            expected = records.get(row_of.get(row[key], -1))
            if expected is not None:
                yield self._same_or_changed(place, Side.HARPER, expected, row)
            elif self._is_meant_to_stay(row):
                yield ComparedRow(place, Side.HARPER, Outcome.KEPT)
            else:
                elsewhere = self._not_at_its_time(row)
                yield ComparedRow(place, Side.HARPER, Outcome.DIFFERENT, elsewhere)

    def _same_or_changed(
        self, place: CommittedCell, side: Side, expected: Row, stored: Row
    ) -> ComparedRow:
        columns = differing_columns(expected, stored, self.plan.columns)
        if not columns:
            return ComparedRow(place, side, Outcome.SAME)
        changed = Difference(DifferenceKind.CHANGED, stored[self.plan.primary_key], columns)
        return ComparedRow(place, side, Outcome.DIFFERENT, changed)

    def _is_meant_to_stay(self, row: Row) -> bool:
        policy = self.subject.contract.deletes
        return policy == "keep" or (policy == "flag" and row.get(DELETED_AT) is not None)

    def _not_at_its_time(self, row: Row) -> Difference:
        """Asks the source for the row's key: a row whose time has changed there is no phantom."""
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
            [Column(name=columns[name].read_as, kind=columns[name].kind) for name in self.plan.key],
            self.source.time_column,
            [[key_text(value) for value in values]],
            table=str(self.source.table),
        )
        micros = times.get(0)
        return None if micros is None else instant_at(micros)


def slice_of_id(row_id: str | int, plan: RowPlan, slices: int) -> int:
    """Gives the slice of a stored row."""
    return int(slice_of(id_hashes(pa.array([row_id]), keyless=not plan.key), slices)[0])


def time_of(row: Row, plan: RowPlan, kind: Kind) -> datetime | None:
    """Gives the time of a stored row; None if no sync wrote it."""
    try:
        return instant_of(kind, str(row[plan.timestamp]))
    except ValueError:
        return None


def harper_rows(
    subject: Subject,
    plan: RowPlan,
    slices: int,
    kind: Kind,
    wanted: Mapping[CommittedCell, int],
    chance: Random,
) -> Iterator[tuple[CommittedCell, Row]]:
    """Picks so many rows of Harper in each cell; a page of one window serves all its slices."""
    by_window: dict[tuple[datetime, datetime], dict[int, CommittedCell]] = {}
    for place in wanted:
        by_window.setdefault((place.start, place.until), {})[place.slice] = place
    for (start, until), places in by_window.items():
        left = {part: wanted[place] for part, place in places.items()}
        seen: set[Any] = set()
        for instant in instants(start, until, max(_SEARCHES, *left.values()), chance):
            if not any(left.values()):
                break
            page: dict[int, list[Row]] = {}
            for row in _page(subject, plan, kind, (start, instant, until)):
                part = slice_of_id(row[plan.primary_key], plan, slices)
                page.setdefault(part, []).append(row)
            for part, rows in page.items():
                # Any row of equal times is picked: the first by id would always be the same.
                row = chance.choice(
                    [r for r in rows if r[plan.timestamp] == rows[0][plan.timestamp]]
                )
                if left.get(part) and row[plan.primary_key] not in seen:
                    seen.add(row[plan.primary_key])
                    left[part] -= 1
                    yield places[part], row


def _page(
    subject: Subject, plan: RowPlan, kind: Kind, span: tuple[datetime, datetime, datetime]
) -> list[Row]:
    """Fetches rows of Harper from the second instant on, else from the first, before the third."""
    start, middle, end = (text_of(kind, moment) for moment in span)
    for bounds in ([middle, end], [start, middle]):
        target, where = subject.contract.target_table, " to ".join(bounds)
        page = subject.harper.search_by_conditions(
            target,
            [Condition(plan.timestamp, "gelt", bounds)],
            sort_by=plan.timestamp,
            limit=ROWS_PER_SEARCH,
            cell=where,
        )
        require_ids(page, plan.primary_key, "search_by_conditions", target, where)
        if page:
            return page
    return []

"""Compares rows that were picked in one store with the other store, at one instant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from heapq import nsmallest
from typing import Any

import numpy as np

from bq_harper_assets.contract.identifiers import DELETED_AT
from bq_harper_assets.stores.harper.client import HarperClient, Row
from bq_harper_assets.stores.harper.reading.deep_hash import records_of
from bq_harper_assets.stores.harper.reading.record_comparison import differing_columns
from bq_harper_assets.stores.harper.reading.target_rows import held_by_id
from bq_harper_assets.stores.harper.reading.target_times import texts_of_micros
from bq_harper_assets.sync.arrays.arrow_memory import Bools
from bq_harper_assets.sync.arrays.splitmix import mix, mix_one
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Grid, Part
from bq_harper_assets.sync.diff.rows_by_id import NamedRow, named_rows
from bq_harper_assets.sync.moved.gone_or_moved import times_of_rows
from bq_harper_assets.sync.source.cell_rows import CellRows, read_here
from bq_harper_assets.sync.turn_context import SourceReader
from bq_harper_assets.validation.spot.source_sample import read_together
from bq_harper_assets.validation.verdict import Difference, DifferenceKind


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

    cell: Cell
    side: Side
    outcome: Outcome
    difference: Difference | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A comparison takes rows of the source at one instant, and rows that Harper was found to have.

    It compares as many rows of the source as are `wanted` of each cell; the seed decides which.
    """

    harper: HarperClient
    source: SourceReader
    parts: Mapping[Cell, Part]
    wanted: Mapping[Cell, int]
    found: Sequence[tuple[Cell, Row]]
    seed: int

    def of(self, counts: Mapping[datetime, int]) -> Iterator[ComparedRow]:
        """Compares rows of these times; `counts` says how many rows the source has at each."""
        plan, target = self.source.rows, self.source.contract.target.table
        named = self._named(counts)
        records = {row.id: row.record for row in named.values() if row.reason is None}
        picked = list(self._picked(named.values()))
        stored = held_by_id(
            self.harper, target, plan, [row.id for _, row in picked if row.id in records]
        )
        for cell, row in picked:
            record, held = records.get(row.id), stored.get(row.id)
            yield ComparedRow(cell, Side.BIGQUERY, *self._compared(row.id, record, held, {}))
        rows = [(cell, row[plan.primary_key], row) for cell, row in self.found]
        times = self._times_of([row_id for _, row_id, _ in rows if row_id not in records])
        for cell, row_id, held in rows:
            outcome = self._compared(row_id, records.get(row_id), held, times)
            yield ComparedRow(cell, Side.HARPER, *outcome)

    def _compared(
        self,
        row_id: Any,
        record: Mapping[str, Any] | None,
        held: Mapping[str, Any] | None,
        times: Mapping[Any, int | None],
    ) -> tuple[Outcome, Difference | None]:
        """Compares what the source wants to be stored with what Harper holds."""
        plan = self.source.rows
        if record is not None and held is not None:
            columns = differing_columns(record, held, plan.columns)
            changed = Difference(DifferenceKind.CHANGED, row_id, columns)
            return (Outcome.DIFFERENT, changed) if columns else (Outcome.SAME, None)
        if record is not None:
            return Outcome.DIFFERENT, Difference(DifferenceKind.MISSING, row_id)
        if held is None:
            return Outcome.UNSTORABLE, None
        policy = self.source.contract.deletes
        if policy == "keep" or (policy == "flag" and held.get(DELETED_AT) is not None):
            return Outcome.KEPT, None
        if (micros := times.get(row_id)) is None:
            return Outcome.DIFFERENT, Difference(DifferenceKind.PHANTOM, row_id)
        (text,) = texts_of_micros([micros], self.source.pin.plan.selection.timestamp.kind)
        columns = {plan.timestamp: (text, held[plan.timestamp])}
        return Outcome.DIFFERENT, Difference(DifferenceKind.CHANGED, row_id, columns)

    def _times_of(self, ids: Sequence[Any]) -> Mapping[Any, int | None]:
        """Asks the source for keys: a row whose time has changed there is no phantom."""
        source = self.source
        if not ids or not source.rows.key or source.contract.deletes == "keep":
            return {}
        return times_of_rows(source.pin, source.target, ids)

    def _named(self, counts: Mapping[datetime, int]) -> dict[Any, NamedRow]:
        """Reads the source; returns the rows that may be wanted, and those that were found."""
        plan = self.source.rows
        named: dict[Any, NamedRow] = {}
        for some in read_together(counts):
            doubled = not plan.key and any(counts[moment] > 1 for moment in some)
            reading = self.source.reading_at(some, self.parts, has_equal_rows=doubled)
            for rows in read_here(reading):
                chosen = rows.where(self._are_chosen(rows, reading.grid))
                rows_here = named_rows(chosen, records_of(chosen, plan))
                named |= {row.id: row for row in rows_here}
        return named

    def _are_chosen(self, rows: CellRows, grid: Grid) -> Bools:
        key = self.source.rows.primary_key
        found = {row[key] for _, row in self.found}
        chosen = np.array([i in found for i in rows.identity.ids.to_pylist()], np.bool_)
        has_id = rows.identity.ids.is_valid().to_numpy(zero_copy_only=False)
        # BigQuery gives rows in any order, and a seed has to repeat its sample.
        order = mix(rows.identity.whole_id_hashes ^ np.uint64(self.seed))
        for cell, count in self.wanted.items():
            at = np.flatnonzero((rows.places == grid.place_of(cell)) & has_id)
            chosen[at[np.argsort(order[at])[:count]]] = True
        return chosen

    def _picked(self, named: Iterable[NamedRow]) -> Iterator[tuple[Cell, NamedRow]]:
        by_place: dict[int, list[NamedRow]] = {}
        for row in named:
            by_place.setdefault(row.place, []).append(row)
        grid = Grid.of(self.parts, self.source.contract.slices)
        for cell, count in self.wanted.items():
            there = by_place.get(grid.place_of(cell), [])
            for row in nsmallest(count, there, key=lambda row: mix_one(row.id_hash ^ self.seed)):
                yield cell, row

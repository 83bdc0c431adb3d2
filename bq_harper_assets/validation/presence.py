"""Whether windows find every row that Harper holds: rows in the order of ids against rows by time.

Every proof reads a window by its times. A row that Harper stores, and leaves out of such an answer,
is seen by none of them; in the order of ids it is there. Nothing is written, and no lease is taken:
rows of cells that a run is at work on meanwhile are not judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellState, LogicalTable
from bq_harper_assets.ledger.status import CellRecord
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.sync.arrow_buffers import Int64s, UInt64s
from bq_harper_assets.sync.held import ROWS_PER_REQUEST, text_of
from bq_harper_assets.sync.recorded import version_of
from bq_harper_assets.sync.slices import id_hashes, slice_of
from bq_harper_assets.sync.stored_times import stored_micros
from bq_harper_assets.sync.windows import micros_at
from bq_harper_assets.validation.verdict import (
    Difference,
    DifferenceKind,
    ProofStatus,
    Severity,
    Verdict,
)

CHECK = "presence"
ROWS_PER_PAGE = 20_000
SHOWN = 20
_NOWHERE = -1  # the place of a row in no committed cell


@dataclass(frozen=True, kw_only=True)
class Presence:
    """What was counted."""

    contract_id: str
    table: str
    held: int = 0  # rows in the order of ids
    in_cells: int = 0  # of these, in cells that are committed
    outside: int = 0  # in no committed cell: of windows that were not synced, or before the first
    timeless: int = 0  # without a time that can be read
    unjudged: int = 0  # in cells that a run was at work on
    lost: tuple[str | int, ...] = ()  # ids of rows that no window finds
    is_adopted: bool = False

    @property
    def verdict(self) -> Verdict:
        """Passed if windows find all that they should."""
        unfound = len(self.lost)
        message = f"Harper holds {self.held:,} rows of {self.table} in the order of ids; "
        if unfound:
            examples = ", ".join(repr(each)[:80] for each in self.lost[:3])
            message += (
                f"{unfound:,} of them are found by no window, so that no proof sees them: "
                f"{examples}. bqh repair {self.contract_id} brings back those that BigQuery has;"
                " others stay until somebody deletes them in Harper by their ids"
            )
        else:
            message += f"{self.in_cells:,} are in synced cells, and each is found by its window"
        listed = {
            "in windows that are not synced, or before the first": self.outside,
            "without a time that can be read": self.timeless if self.is_adopted else 0,
            "not judged, because a run is at work on their cells": self.unjudged,
        }
        said = [f"{count:,} are {what}" for what, count in listed.items() if count]
        return Verdict(
            CHECK,
            ProofStatus.DIFFERS if unfound else ProofStatus.PROVED,
            not unfound,
            Severity.ERROR if unfound else Severity.WARN,
            "; ".join([message, *said]),
            {
                "held": self.held,
                "in_cells": self.in_cells,
                "outside": self.outside,
                "without_time": self.timeless,
                "not_judged": self.unjudged,
                "lost": unfound,
            },
            tuple(Difference(DifferenceKind.LOST, row_id) for row_id in self.lost[:SHOWN]),
        )


def check_presence(harper: HarperClient, ledger: Ledger, contract: TableContract) -> Verdict | None:
    """Of the whole table; None if nothing of it was ever synced."""
    table = ledger.find_table(contract.id)
    newest = ledger.newest_schema(table) if table else None
    version = version_of(newest)
    if table is None or version is None:
        return None
    column = version.find(contract.timestamp_column)
    kind = column.kind if column else Kind.TIMESTAMP
    look = _Look(harper, ledger, table, contract, version.primary_key, kind, bool(version.key))
    try:
        return look.counted().verdict
    except (BqhError, pa.ArrowException) as error:  # ids of several types are no array
        text = f"the rows of {contract.target_table} could not be counted: {error}"
        return Verdict(CHECK, ProofStatus.CHECK_FAILED, False, Severity.ERROR, text)


@dataclass(frozen=True)
class _Cells:
    """Committed cells, by a number of window and slice."""

    records: Mapping[int, CellRecord]
    slices: int
    window_micros: int

    @classmethod
    def of(cls, records: Sequence[CellRecord], contract: TableContract) -> "_Cells":
        micros = contract.window // (datetime.resolution)
        found = {
            micros_at(r.cell.window_start) // micros * contract.slices + r.cell.slice: r
            for r in records
            if r.commit and r.cell.slice < contract.slices
        }
        return cls(found, contract.slices, micros)

    def places(self, micros: Int64s, slices: Int64s) -> Int64s:
        """The number of each row's cell, as far as that is committed."""
        numbers = np.floor_divide(micros, self.window_micros) * self.slices + slices
        known = np.array(sorted(self.records), np.int64)
        ends = np.array([micros_at(_upto(self.records[n])) for n in known.tolist()], np.int64)
        if not len(known):
            return np.full(len(micros), _NOWHERE)
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        inside = (known[at] == numbers) & (micros < ends[at])
        return np.where(inside, at, _NOWHERE)


def _upto(record: CellRecord) -> datetime:
    assert record.commit is not None
    return record.commit.upto


@dataclass(frozen=True)
class _Look:
    harper: HarperClient
    ledger: Ledger
    table: LogicalTable
    contract: TableContract
    primary_key: str
    kind: Kind
    keyed: bool
    found: list[tuple[UInt64s, Int64s]] = field(default_factory=list)  # id hashes and places

    def counted(self) -> Presence:
        before = self._records()
        cells = _Cells.of(before, self.contract)
        held = timeless = 0
        timeless_ids: list[Any] = []
        for ids, times in self._by_id():
            held += len(ids)
            micros = np.array([_NOWHERE if t is None else t for t in times], np.int64)
            has_time = np.array([t is not None for t in times], np.bool_)
            timeless_ids += [i for i, known in zip(ids, has_time, strict=True) if not known]
            timeless += int((~has_time).sum())
            keys = pa.array(ids)
            parts = slice_of(id_hashes(keys, keyless=not self.keyed), self.contract.slices)
            places = cells.places(micros[has_time], parts[has_time])
            self.found.append((id_hashes(keys, keyless=False)[has_time], places))
        by_time = np.unique(np.concatenate([_NO_HASHES, *self._by_time(before)]))
        hashes = np.concatenate([_NO_HASHES, *(each for each, _ in self.found)])
        places = np.concatenate([np.empty(0, np.int64), *(each for _, each in self.found)])
        stable = self._stable(cells, before)
        inside = places != _NOWHERE
        judged = inside & stable[places] if len(stable) else inside
        lost = hashes[judged & ~np.isin(hashes, by_time)]
        is_adopted = self.contract.manage == "adopt"
        return Presence(
            contract_id=self.contract.id,
            table=self.contract.target_table,
            held=held,
            in_cells=int(inside.sum()),
            outside=int((~inside).sum()),
            timeless=timeless,
            unjudged=int((inside & ~judged).sum()),
            lost=(*self._named(lost), *(() if is_adopted else timeless_ids)),
            is_adopted=is_adopted,
        )

    def _records(self) -> tuple[CellRecord, ...]:
        ever = datetime.min.replace(tzinfo=self.ledger.now().tzinfo)
        return tuple(self.ledger.cells(self.table, ever, self.ledger.now()))

    def _stable(self, cells: _Cells, before: Sequence[CellRecord]) -> np.ndarray:
        """Whether each place was left alone for as long as the look took."""
        after = {record.cell: record for record in self._records()}
        return np.array(
            [
                after.get(record.cell) == record and record.state is not CellState.PLANNED
                for _, record in sorted(cells.records.items())
            ],
            np.bool_,
        )

    def _by_id(self) -> Iterator[tuple[list[Any], list[int | None]]]:
        """All rows, in pages that begin after the last id: ids and times."""
        name, time = self.contract.target_table, self.contract.timestamp_column
        wanted = (self.primary_key, time)
        page = self.harper.search_by_value(name, self.primary_key, "*", wanted, limit=ROWS_PER_PAGE)
        while page:
            ids = [row[self.primary_key] for row in page]
            yield ids, stored_micros([row.get(time) for row in page], self.kind)
            if len(page) < ROWS_PER_PAGE:
                return
            after = Condition(self.primary_key, "greater_than", ids[-1])
            page = self.harper.search_by_conditions(
                name, [after], wanted, sort_by=self.primary_key, limit=ROWS_PER_PAGE
            )

    def _by_time(self, records: Sequence[CellRecord]) -> Iterator[UInt64s]:
        """The id hashes of all rows that the windows of committed cells find."""
        for low, high in time_ranges(records):
            within = Condition(
                self.contract.timestamp_column,
                "gelt",
                [text_of(self.kind, low), text_of(self.kind, high)],
            )
            rows = self.harper.search_by_conditions(
                self.contract.target_table, [within], (self.primary_key,)
            )
            if rows:
                yield id_hashes(pa.array([row[self.primary_key] for row in rows]), keyless=False)

    def _named(self, lost: UInt64s) -> tuple[Any, ...]:
        """The ids of such rows that are still there."""
        if not len(lost):
            return ()
        named: list[Any] = []
        for ids, _ in self._by_id():
            is_lost = np.isin(id_hashes(pa.array(ids), keyless=False), lost)
            named += [row_id for row_id, each in zip(ids, is_lost, strict=True) if each]
        return tuple(named)


_NO_HASHES = np.empty(0, np.uint64)


def time_ranges(records: Sequence[CellRecord]) -> Iterator[tuple[datetime, datetime]]:
    """The windows of committed cells, neighbours together as far as one answer can hold them."""
    windows: dict[datetime, tuple[datetime, int]] = {}
    for record in records:
        if record.commit:
            end, rows = windows.get(record.cell.window_start, (record.cell.window_start, 0))
            more = rows + record.commit.rows
            windows[record.cell.window_start] = (max(end, record.commit.upto), more)
    low = high = None
    total = 0
    for start, (end, rows) in sorted(windows.items()):
        if low is not None and high is not None:
            if start == high and total + rows <= ROWS_PER_REQUEST:
                high, total = end, total + rows
                continue
            yield low, high
        low, high, total = start, end, rows
    if low is not None and high is not None:
        yield low, high

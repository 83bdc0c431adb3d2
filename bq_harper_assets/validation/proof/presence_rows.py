"""Reads every row that Harper holds of a table, in the order of ids and again by time.

The times of rows decide their cells. The ledger is read before and after: cells that a run wrote
meanwhile are not judged, and cells that it made meanwhile are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.activity import doing
from bq_harper_assets.contract.identifiers import HASH
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import floor_to_window, micros_at
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellState, LedgerRoute
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.conditions import Condition
from bq_harper_assets.stores.harper.reading.target_rows import ROWS_PER_REQUEST, ranges_of
from bq_harper_assets.stores.harper.reading.target_times import stored_micros, texts_of_micros
from bq_harper_assets.sync.arrays.arrow_memory import Int64s, UInt64s
from bq_harper_assets.sync.cells.slicing import id_hashes, slice_of
from bq_harper_assets.sync.stop_request import Stop

ROWS_PER_PAGE = 20_000
NAMED = 20  # ids that are listed for each kind
_NOWHERE = -1  # stands for a row in no committed cell
_NO_HASHES, _NO_NUMBERS = np.empty(0, np.uint64), np.empty(0, np.int64)


@dataclass(frozen=True)
class Some:
    """Some rows are counted, and the first of them are named by their ids."""

    count: int = 0
    ids: tuple[str | int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The rows of a table are counted by where they are."""

    held: int = 0  # found in the order of ids
    in_cells: int = 0  # of these, in cells that are committed
    kept: int = 0  # of these, gone from BigQuery and left as the contract wants it
    unjudged: int = 0  # of these, in cells that a run wrote meanwhile
    lost: Some = Some()  # of these, found by no window
    timeless: Some = Some()  # without a time that can be read
    stray: Some = Some()  # between synced windows, in a cell that nothing ever named
    other_form: int = 0  # no sync wrote them, and a sync would write their time in another form
    beyond: int = 0  # in an open window, after the end of what is synced
    waiting: int = 0  # in cells that were planned or marked, and are not committed
    before: int = 0  # before the first window, or before the start
    younger: int = 0  # after the newest window that was ever planned or marked


@dataclass(frozen=True)
class _Cells:
    """The committed cells are found by a number that is made of window and slice."""

    committed: Mapping[int, CellRecord]
    slices: int
    window_micros: int

    @classmethod
    def of(cls, records: Sequence[CellRecord], table: LedgerRoute) -> "_Cells":
        micros = table.facts.step
        cells = cls({}, table.facts.slices, micros)
        found = {cells.number(record): record for record in records if record.commit}
        return cls(found, table.facts.slices, micros)

    def number(self, record: CellRecord) -> int:
        window = micros_at(record.cell.window_start) // self.window_micros
        return window * self.slices + record.cell.slice

    def numbers(self, micros: Int64s, slices: Int64s) -> Int64s:
        """Gives the number of each row's cell, whether the ledger knows the cell or not."""
        return np.floor_divide(micros, self.window_micros) * self.slices + slices

    def places(self, micros: Int64s, numbers: Int64s) -> Int64s:
        """Gives each row's index among the committed cells, up to where each is committed."""
        known = np.array(sorted(self.committed), np.int64)
        if not len(known):
            return np.full(len(micros), _NOWHERE)
        ends = np.array([micros_at(commit.upto) for commit in self.commits()], np.int64)
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        inside = (known[at] == numbers) & (micros < ends[at])
        return np.where(inside, at, _NOWHERE)

    def commits(self) -> list[CellCommit]:
        """Gives the commits in the order of their cells' numbers."""
        return [r.commit for _, r in sorted(self.committed.items()) if r.commit is not None]


@dataclass(frozen=True, kw_only=True)
class PresenceLook:
    """A presence look counts the rows of one table; `stop` ends it between two requests."""

    harper: HarperClient
    ledger: Ledger
    table: LedgerRoute
    contract: TableContract
    primary_key: str
    kind: Kind
    keyed: bool
    stop: Stop = field(default_factory=Stop)

    def counted(self) -> Counted:
        """Counts the rows; those that no window finds are read again, as they may be gone."""
        before = self._records()
        cells = _Cells.of(before, self.table)
        held = timeless = other_form = 0
        timeless_ids: list[Any] = []
        hashes, places = [_NO_HASHES], [_NO_NUMBERS]
        nowhere, numbers = [_NO_HASHES], [_NO_NUMBERS]
        for ids, times, is_foreign in self._by_id():
            held += len(ids)
            has_time = np.array([time is not None for time in times], np.bool_)
            timeless += int((~has_time).sum())
            timeless_ids += [i for i, known in zip(ids, has_time, strict=True) if not known]
            del timeless_ids[NAMED:]
            other_form += int((is_foreign & has_time).sum())
            placed = has_time & ~is_foreign
            micros = np.array([_NOWHERE if time is None else time for time in times], np.int64)
            keys = pa.array(ids)
            parts = slice_of(id_hashes(keys, keyless=not self.keyed), cells.slices)
            of_page = cells.numbers(micros[placed], parts[placed])
            at = cells.places(micros[placed], of_page)
            whole = id_hashes(keys, keyless=False)[placed]
            hashes.append(whole[at != _NOWHERE])
            places.append(at[at != _NOWHERE])
            nowhere.append(whole[at == _NOWHERE])
            numbers.append(of_page[at == _NOWHERE])
        by_time = np.unique(np.concatenate([_NO_HASHES, *self._by_time(before)]))
        after = self._records()
        in_cells, where = np.concatenate(hashes), np.concatenate(places)
        stable = self._stable(cells, after)
        judged = stable[where] if len(stable) else np.ones(0, np.bool_)
        lost = in_cells[judged & ~np.isin(in_cells, by_time)]
        outside = _Outside.of(cells, [*before, *after], self._start(), np.concatenate(numbers))
        named = self._named([lost, np.concatenate(nowhere)[outside.stray]])
        return Counted(
            held=held,
            in_cells=len(in_cells),
            kept=self._kept(cells, where, stable),
            unjudged=int((~judged).sum()),
            lost=named[0],
            timeless=Some(timeless, tuple(timeless_ids)),
            stray=named[1],
            other_form=other_form,
            beyond=outside.beyond,
            waiting=outside.waiting,
            before=outside.before,
            younger=outside.younger,
        )

    def _records(self) -> tuple[CellRecord, ...]:
        zone = self.ledger.now().tzinfo
        ever = datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)
        return tuple(self.ledger.cells(self.table, *ever))

    def _start(self) -> datetime | None:
        declared = self.contract.sync.start_timestamp
        start = declared or self.ledger.start_of(self.contract.id)
        return floor_to_window(start, self.contract.window) if start else None

    def _stable(self, cells: _Cells, records: Sequence[CellRecord]) -> np.ndarray:
        """Says of each committed cell whether the ledger's record stayed the same meanwhile."""
        after = {record.cell: record for record in records}
        return np.array(
            [
                after.get(record.cell) == record and record.state is not CellState.PLANNED
                for _, record in sorted(cells.committed.items())
            ],
            np.bool_,
        )

    def _kept(self, cells: _Cells, where: Int64s, stable: np.ndarray) -> int:
        """Counts rows beyond those that each commit counted, if the contract keeps deleted rows."""
        if self.contract.deletes == "mirror" or not len(stable):
            return 0
        counts = np.bincount(where, minlength=len(stable))
        rows = np.array([commit.rows for commit in cells.commits()], np.int64)
        return int(np.maximum(counts - rows, 0)[stable].sum())

    def _by_id(self) -> Iterator[tuple[list[Any], list[int | None], np.ndarray]]:
        """Reads all rows in the order of ids, by pages: their ids, times, and which others wrote.

        The last array marks rows of an adopted table that no sync wrote and whose time has another
        form.
        """
        name, time = self.contract.target.table, self.contract.timestamp_column
        adopted = self.contract.target.is_adopted
        wanted = (self.primary_key, time, *((HASH,) if adopted and self._has_hashes() else ()))
        counting = f"counting the rows of {name} in the order of ids"
        with doing(counting) as step:
            held = 0
            page = self.harper.search_by_value(
                name, self.primary_key, "*", wanted, limit=ROWS_PER_PAGE
            )
            while page:
                self.stop.check()
                ids = require_ids(page, self.primary_key, "search_by_value", name)
                texts = [row.get(time) for row in page]
                micros = stored_micros(texts, self.kind)
                is_foreign = np.zeros(len(page), np.bool_)
                if adopted:
                    written = texts_of_micros(micros, self.kind)
                    is_foreign = np.array(
                        [
                            row.get(HASH) is None and text != ours
                            for row, text, ours in zip(page, texts, written, strict=True)
                        ],
                        np.bool_,
                    )
                yield ids, micros, is_foreign
                held += len(page)
                step.what = f"{counting}, {held:,} so far"
                if len(page) < ROWS_PER_PAGE:
                    return
                after = Condition(self.primary_key, "greater_than", ids[-1])
                page = self.harper.search_by_conditions(
                    name, [after], wanted, sort_by=self.primary_key, limit=ROWS_PER_PAGE
                )

    def _has_hashes(self) -> bool:
        """Says whether the table has hashes: Harper refuses a search for an unknown attribute."""
        found = self.harper.describe_table(self.contract.target.table)
        return found is not None and any(each.name == HASH for each in found.attributes)

    def _by_time(self, records: Sequence[CellRecord]) -> Iterator[UInt64s]:
        """Yields the id hashes of all rows that the windows of committed cells find."""
        name = self.contract.target.table
        looking = f"looking for the rows of {name} in their windows"
        with doing(looking) as step:
            found = 0
            for low, high, expected in time_ranges(records):
                for part in ranges_of(0, low, high, expected, self.kind):
                    self.stop.check()
                    within = Condition(
                        self.contract.timestamp_column, "gelt", [part.low, part.high]
                    )
                    where = f"{part.low} to {part.high}"
                    rows = self.harper.search_by_conditions(
                        name, [within], (self.primary_key,), cell=where
                    )
                    if rows:
                        ids = require_ids(
                            rows, self.primary_key, "search_by_conditions", name, where
                        )
                        yield id_hashes(pa.array(ids), keyless=False)
                    found += len(rows)
                    step.what = f"{looking}, {found:,} so far"

    def _named(self, kinds: Sequence[UInt64s]) -> list[Some]:
        """Counts and names the rows of each kind that are still there."""
        if not any(map(len, kinds)):
            return [Some() for _ in kinds]
        counts, named = [0] * len(kinds), [list[Any]() for _ in kinds]
        for ids, _, _ in self._by_id():
            hashes = id_hashes(pa.array(ids), keyless=False)
            for number, kind in enumerate(kinds):
                is_one = np.isin(hashes, kind)
                counts[number] += int(is_one.sum())
                named[number] += [row_id for row_id, each in zip(ids, is_one, strict=True) if each]
                del named[number][NAMED:]
        return [Some(count, tuple(ids)) for count, ids in zip(counts, named, strict=True)]


@dataclass(frozen=True, kw_only=True)
class _Outside:
    """The rows in no committed cell are counted by the reason."""

    beyond: int
    waiting: int
    before: int
    younger: int
    stray: np.ndarray  # says of each row whether it is one

    @classmethod
    def of(
        cls,
        cells: _Cells,
        known: Sequence[CellRecord],
        start: datetime | None,
        numbers: Int64s,
    ) -> "_Outside":
        """Sorts the rows: one between synced windows, in a cell without a record, is not ours."""
        committed = np.isin(numbers, np.array(list(cells.committed), np.int64))
        named = np.array(sorted({cells.number(record) for record in known}), np.int64)
        is_named = np.isin(numbers, named)
        windows = np.floor_divide(numbers, cells.slices)
        first = last = 0
        if len(named):
            first, last = int(named[0]) // cells.slices, int(named[-1]) // cells.slices
        if start is not None:
            first = max(first, micros_at(start) // cells.window_micros)
        is_before = ~is_named & (windows < first)
        is_younger = ~is_named & ~is_before & (windows > last)
        return cls(
            beyond=int(committed.sum()),
            waiting=int((is_named & ~committed).sum()),
            before=int(is_before.sum()),
            younger=int(is_younger.sum()),
            stray=~is_named & ~is_before & ~is_younger,
        )


def time_ranges(records: Sequence[CellRecord]) -> Iterator[tuple[datetime, datetime, int]]:
    """Yields the windows of committed cells with their rows; small neighbours become one range."""
    windows: dict[datetime, tuple[datetime, int]] = {}
    for record in records:
        if record.commit:
            end, rows = windows.get(record.cell.window_start, (record.cell.window_start, 0))
            more = rows + record.commit.rows
            windows[record.cell.window_start] = (max(end, record.commit.upto), more)
    joined: tuple[datetime, datetime, int] | None = None
    for start, (end, rows) in sorted(windows.items()):
        if joined and start == joined[1] and joined[2] + rows <= ROWS_PER_REQUEST:
            joined = (joined[0], end, joined[2] + rows)
            continue
        if joined:
            yield joined
        joined = (start, end, rows)
    if joined:
        yield joined

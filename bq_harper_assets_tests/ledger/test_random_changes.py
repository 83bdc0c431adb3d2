"""Random plans, marks, endings and slice counts against a model that keeps every mark by itself."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bq_harper_assets.ledger.errors import PlanRefused
from bq_harper_assets.ledger.ledger import Ledger, open_ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import Batch, CellKey, CellState, Mark, Mode, Wanted
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    START,
    TTL,
    T,
    cell,
    commit_cell,
    result,
)

MINUTE = timedelta(minutes=1)
MINUTES = st.lists(st.sampled_from([0, 20, 40]), max_size=2)
LATER = st.sampled_from([0, 1])
ENDINGS = st.sampled_from(["commit", "commit", "commit", "fail", "refuse", ""])
_number = count()


@dataclass(frozen=True)
class Marked:
    """A mark as it was given."""

    cell: CellKey
    t: datetime
    row_time: datetime

    def outlives(self, batch: Batch) -> bool:
        return self.cell != batch.cell or self.t > batch.t or self.row_time >= batch.upto


class Change(RuleBasedStateMachine):
    """One owner, whose leases stay live: what is left are the rules of cells, marks and modes."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        name = f"table{next(_number)}"
        self.table = ledger.register_route(
            replace(FACTS, name=name, table=name, target=name, slices=2)
        )
        ledger.record_schema(self.table, {"columns": ["ts"]}, 0)
        self.t = T
        self.states: dict[CellKey, CellState] = {}
        self.upto: dict[CellKey, datetime] = {}
        self.marks: set[Marked] = set()
        self.planned: dict[CellKey, Batch] = {}
        self._acquire()

    def _acquire(self) -> None:
        slices = range(self.table.facts.slices)
        self.leases = self.ledger.acquire(self.table, slices, "ann", TTL)

    def _draw_cell(self, data: st.DataObject) -> CellKey:
        slices = self.table.facts.slices
        return cell(slice=data.draw(st.integers(0, slices - 1), "slice"))

    @precondition(lambda self: not self.planned)
    @rule()
    def time_goes_on(self) -> None:
        self.t += MINUTE

    @rule(
        data=st.data(),
        mode=st.sampled_from([Mode.COPY, Mode.NUMBER, Mode.TOPUP, Mode.TOPUP]),
        minute=st.sampled_from([20, 40, 60]),
        since=st.sampled_from([20, 40]),
        meanwhile=MINUTES,
        later=LATER,
        ending=ENDINGS,
    )
    def move(
        self,
        data: st.DataObject,
        mode: Mode,
        minute: int,
        since: int,
        meanwhile: list[int],
        later: int,
        ending: str,
    ) -> None:
        key = self._draw_cell(data)
        upto = key.window_start + minute * MINUTE
        held = key.window_start + since * MINUTE
        wanted = [
            Wanted(
                cell=key,
                mode=mode,
                fingerprint="fp",
                upto=upto,
                since=held if mode is Mode.TOPUP else None,
            )
        ]
        if key in self.upto and self.upto[key] > upto:
            with pytest.raises(PlanRefused):
                self.ledger.plan(self.leases, self.t, 1, wanted, "run")
            return
        (batch,) = self.ledger.plan(self.leases, self.t, 1, wanted, "run")
        can_top_up = (
            self.states.get(key) is CellState.SYNCED
            and self.upto[key] == held
            and upto < key.window_end
            and all(mark.cell != key for mark in self.marks)
        )
        if mode is Mode.TOPUP:
            assert batch.mode is (Mode.TOPUP if can_top_up else Mode.RECONCILE)
        else:
            assert batch.mode is (Mode.RECONCILE if key in self.states else mode)
        self.planned[key], self.states[key] = batch, CellState.PLANNED
        self._mark(key, later, meanwhile)
        self._end(key, ending)

    @rule(data=st.data(), later=LATER, minutes=MINUTES)
    def mark(self, data: st.DataObject, later: int, minutes: list[int]) -> None:
        self._mark(self._draw_cell(data), later, minutes)

    def _mark(self, key: CellKey, later: int, minutes: list[int]) -> None:
        t = self.t + later * MINUTE
        times = [key.window_start + minute * MINUTE for minute in minutes]
        self.ledger.mark(
            self.leases, InstantPosition(t), [Mark(key, time, "moved") for time in times]
        )
        self.marks |= {Marked(key, t, time) for time in times}
        if minutes:
            self.states.setdefault(key, CellState.TOUCHED)

    @precondition(lambda self: self.planned)
    @rule(data=st.data(), ending=ENDINGS)
    def end(self, data: st.DataObject, ending: str) -> None:
        self._end(data.draw(st.sampled_from(sorted(self.planned))), ending)

    def _end(self, key: CellKey, ending: str) -> None:
        if not ending:
            return
        batch = self.planned.pop(key)
        if ending == "fail":
            self.ledger.fail_batch(batch, "Harper went away")
            self.states[batch.cell] = CellState.FAILED
        elif ending == "refuse":
            self.ledger.refuse_batch(batch, "too many deletes")
            self.states[batch.cell] = CellState.REFUSED
        else:
            commit_cell(self.ledger, self.leases, batch, result())
            self.states[batch.cell] = CellState.SYNCED
            self.upto[batch.cell] = batch.upto
            self.marks = {mark for mark in self.marks if mark.outlives(batch)}

    @rule(slices=st.sampled_from([1, 2, 2, 2, 3]))
    def change_slices(self, slices: int) -> None:
        if slices == self.table.facts.slices:
            return
        self.ledger.release(self.leases)
        self.table = self.ledger.change_slices(self.table, slices)
        self._acquire()
        remade = range(slices) if self.states else ()
        self.states = {cell(slice=slice): CellState.TOUCHED for slice in remade}
        self.upto, self.marks, self.planned = {}, set(), {}

    @invariant()
    def ledger_equals_model(self) -> None:
        records = self.ledger.cells(self.table, START, START + HOUR)
        assert {record.cell: record.state for record in records} == self.states
        dirty = {record.cell for record in records if record.marks}
        assert dirty == {mark.cell for mark in self.marks}
        uptos = {record.cell: record.commit.upto for record in records if record.commit}
        assert uptos == self.upto


@pytest.fixture
def sqlite_ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as opened:
        yield opened


def test_marks_and_touched_cells_survive_whatever_does_not_make_them_good(
    sqlite_ledger: Ledger,
) -> None:
    run_state_machine_as_test(
        lambda: Change(sqlite_ledger),
        settings=settings(deadline=None, max_examples=25, stateful_step_count=25),
    )

"""Random owners, stalls, failures and late calls against a model of the lease and plan rules."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

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

from bq_harper_assets.ledger.errors import LeaseHeld, LeaseLost, LedgerConflict, PlanRefused
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import (
    Batch,
    BatchState,
    CellKey,
    CellState,
    Leases,
    Mode,
    Wanted,
)
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    START,
    TTL,
    LetTimePass,
    T,
    cell,
    commit_cell,
    result,
)

MINUTE = timedelta(minutes=1)
SLICES, HOURS = 2, 2
CELLS = [cell(hour, slice) for hour in range(HOURS) for slice in range(SLICES)]
_number = count()


@dataclass(kw_only=True)
class Slice:
    """What the ledger must know of a slice."""

    owner: str | None = None
    epoch: int = 0
    left: timedelta = timedelta(0)
    t: datetime | None = None
    schema_version: int | None = None

    def is_owned(self, leases: Leases, slice: int) -> bool:
        return self.owner == leases.owner and self.epoch == leases.epochs[slice]

    def is_live(self, leases: Leases, slice: int) -> bool:
        return self.is_owned(leases, slice) and self.left > timedelta(0)


@dataclass(kw_only=True)
class Model:
    """The rules, written a second time and without a database."""

    slices: list[Slice] = field(default_factory=lambda: [Slice() for _ in range(SLICES)])
    schemas: int = 1
    batches: dict[int, BatchState] = field(default_factory=dict)
    cells: dict[CellKey, CellState] = field(default_factory=dict)
    committed: dict[CellKey, int] = field(default_factory=dict)

    def planned(self, batches: list[Batch], key: CellKey) -> list[Batch]:
        return [
            batch
            for batch in batches
            if batch.cell == key and self.batches[batch.seq] is BatchState.PLANNED
        ]


class Protocol(RuleBasedStateMachine):
    """Every call either does what the model says or is refused with the error the model names."""

    def __init__(self, ledger: Ledger, let_time_pass: LetTimePass) -> None:
        super().__init__()
        self.ledger, self.let_time_pass = ledger, let_time_pass
        name = f"table{next(_number)}"
        self.table = ledger.register_route(
            replace(FACTS, name=name, table=name, target=name, slices=SLICES)
        )
        ledger.record_schema(self.table, {"number": 1}, 0)
        self.model = Model()
        self.leases: list[Leases] = []  # all ever given out: their owners may wake up late
        self.batches: list[Batch] = []  # likewise

    @rule(slices=st.sets(st.integers(0, SLICES - 1), min_size=1), owner=st.sampled_from("ab"))
    def acquire(self, slices: set[int], owner: str) -> None:
        mine = [self.model.slices[number] for number in sorted(slices)]
        if any(slice.owner and slice.left > timedelta(0) for slice in mine):
            with pytest.raises(LeaseHeld):
                self.ledger.acquire(self.table, sorted(slices), owner, TTL)
            return
        self.leases.append(self.ledger.acquire(self.table, sorted(slices), owner, TTL))
        for slice in mine:
            slice.owner, slice.epoch, slice.left = owner, slice.epoch + 1, TTL

    @rule(minutes=st.sampled_from([4, 7]))
    def time_passes(self, minutes: int) -> None:
        self.let_time_pass(minutes * MINUTE)
        for slice in self.model.slices:
            slice.left -= minutes * MINUTE

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        leases = data.draw(st.sampled_from(self.leases))
        if all(self.model.slices[number].is_live(leases, number) for number in leases.slices):
            self.leases.append(self.ledger.renew(leases, TTL))
            for number in leases.slices:
                self.model.slices[number].left = TTL
        else:
            with pytest.raises(LeaseLost):
                self.ledger.renew(leases, TTL)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        leases = data.draw(st.sampled_from(self.leases))
        owned = [n for n in leases.slices if self.model.slices[n].is_owned(leases, n)]
        if len(owned) == len(leases.slices):
            self.ledger.release(leases)
        else:
            with pytest.raises(LeaseLost):
                self.ledger.release(leases)
        for number in owned:
            self.model.slices[number].owner = None

    @rule()
    def schema_changes(self) -> None:
        self.ledger.record_schema(
            self.table, {"number": self.model.schemas + 1}, self.model.schemas
        )
        self.model.schemas += 1

    @precondition(lambda self: self.leases)
    @rule(
        data=st.data(),
        minutes=st.integers(0, 3),
        age=st.integers(0, 1),
        keys=st.sets(st.sampled_from(CELLS), min_size=1),
        mode=st.sampled_from([Mode.COPY, Mode.COPY, Mode.NUMBER]),
    )
    def plan(
        self, data: st.DataObject, minutes: int, age: int, keys: set[CellKey], mode: Mode
    ) -> None:
        leases = data.draw(st.sampled_from(self.leases))
        wanted = [Wanted(cell=key, mode=mode, fingerprint="fp") for key in sorted(keys)]
        t, version = T + minutes * MINUTE, max(1, self.model.schemas - age)
        refusal = self._refusal(leases, {key.slice for key in keys}, t, version)
        if refusal:
            with pytest.raises(refusal):
                self.ledger.plan(leases, t, version, wanted, "run")
            return
        for batch in self.ledger.plan(leases, t, version, wanted, "run"):
            touched = batch.cell in self.model.cells
            assert batch.mode == (Mode.RECONCILE if touched else mode)
            for left in self.model.planned(self.batches, batch.cell):
                self.model.batches[left.seq] = BatchState.FAILED
            slice = self.model.slices[batch.cell.slice]
            slice.t, slice.schema_version = t, version
            self.model.batches[batch.seq] = BatchState.PLANNED
            self.model.cells[batch.cell] = CellState.PLANNED
            self.batches.append(batch)

    def _refusal(
        self, leases: Leases, numbers: set[int], t: datetime, version: int
    ) -> type[Exception] | None:
        if not numbers <= set(leases.slices):
            return PlanRefused
        if not all(self.model.slices[number].is_live(leases, number) for number in numbers):
            return LeaseLost
        for number in numbers:
            slice = self.model.slices[number]
            if slice.t is None or slice.schema_version is None:
                continue
            moving = any(
                batch.epoch == slice.epoch
                for key in CELLS
                if key.slice == number
                for batch in self.model.planned(self.batches, key)
            )
            if t < slice.t or version < slice.schema_version or (t != slice.t and moving):
                return PlanRefused
        return None

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        batch = data.draw(st.sampled_from(self.batches))
        leases = data.draw(
            st.sampled_from([taken for taken in self.leases if batch.cell.slice in taken.slices])
        )
        if not self.model.slices[batch.cell.slice].is_live(leases, batch.cell.slice):
            with pytest.raises(LeaseLost):
                commit_cell(self.ledger, leases, batch, result())
        elif (
            leases.epochs[batch.cell.slice] != batch.epoch
            or self.model.batches[batch.seq] is not BatchState.PLANNED
        ):
            with pytest.raises(LedgerConflict):
                commit_cell(self.ledger, leases, batch, result())
        else:
            commit_cell(self.ledger, leases, batch, result())
            self.model.batches[batch.seq] = BatchState.APPLIED
            self.model.cells[batch.cell] = CellState.SYNCED
            self.model.committed[batch.cell] = batch.seq

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        batch = data.draw(st.sampled_from(self.batches))
        if self.model.batches[batch.seq] is not BatchState.PLANNED:
            with pytest.raises(LedgerConflict):
                self.ledger.fail_batch(batch, "failed")
            return
        self.ledger.fail_batch(batch, "failed")
        self.model.batches[batch.seq] = BatchState.FAILED
        self.model.cells[batch.cell] = CellState.FAILED

    @invariant()
    def ledger_equals_model(self) -> None:
        leases = self.ledger.leases(self.table)
        assert [(lease.owner, lease.epoch, lease.t, lease.schema_version) for lease in leases] == [
            (slice.owner, slice.epoch, slice.t, slice.schema_version) for slice in self.model.slices
        ]
        cells = self.ledger.cells(self.table, START, START + HOURS * HOUR)
        assert {record.cell: record.state for record in cells} == self.model.cells
        commits = {record.cell: record.commit.batch for record in cells if record.commit}
        assert commits == self.model.committed
        states = {batch.seq: batch.state for batch in self.ledger.history(self.table)}
        assert states == self.model.batches


def test_the_ledger_keeps_the_rules_whatever_its_owners_do(
    ledger: Ledger, let_time_pass: LetTimePass
) -> None:
    run_state_machine_as_test(
        lambda: Protocol(ledger, let_time_pass),
        settings=settings(deadline=None, max_examples=15, stateful_step_count=25),
    )

"""Random histories: what may happen to a source, its runs and their requests, drawn from a seed."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets_tests.fault_proxy import Seen
from bq_harper_assets_tests.history.changes import Changes
from bq_harper_assets_tests.history.stage import StagedRun
from bq_harper_assets_tests.history.stand_ins import made_world
from bq_harper_assets_tests.history.world import D_S, START, TTL_S, WINDOW, Servers, World

# Where a run can be killed; a history kills the first that comes to each of two its seed names.
STOPS = (
    *("begin", "before acquire", "after acquire", "before record_schema", "before plan"),
    *("after plan", "read", "job", "before mark", "after mark", "answer", "wait"),
    *("before commit_cells", "after commit_cells", "before refuse_batch", "before fail_batch"),
    "before release",
)
BETWEEN_WRITES = ("answer", "wait", "before commit_cells")  # where a pause does most harm
STEPS = 100


class History:
    """One seed, played on one world."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        world.seed = seed
        self._kill_at = {STOPS[(2 * seed + n) % len(STOPS)] for n in (0, 1)}
        self._is_busy = seed % 2 == 1  # requests get lost more often, runs stall for longer
        self._unsettled: set[int] = set()  # windows of runs that stall, or wait for an answer
        self.changes = Changes(world, self.random, self._unsettled)
        world.fate = self._fate
        world.late_s = lambda: self.random.uniform(1, D_S - 1)
        world.task_dies = lambda: self._chance(0.03)
        world.slow_ledger_s = lambda: self.random.uniform(0, 25) if self._chance(0.1) else 0.0

    def play(self) -> None:
        """Everything at once; then quiet, one pass over what is due, and all must be equal."""
        self.changes.fill(5)
        for _ in range(STEPS):
            self._happen()
        self._end()

    def _happen(self) -> None:
        world, chance = self.world, self.random
        world.move_clock(chance.choice((0.5, 1, 2, 5, 10)))
        alive = [staged for staged in world.runs if not staged.is_over]
        ready = [staged for staged in alive if self._is_ready(staged)]
        x = chance.random()
        if x < 0.25:
            self.changes.change()
        elif not alive or (len(alive) < 2 and x < 0.35):
            self._start()
        elif not ready:
            world.move_clock(chance.uniform(20, 60))
        elif x < 0.32:
            world.kill(chance.choice(ready))
        elif x < 0.36:
            self._stall(chance.choice(ready))
        else:
            self._go_on(chance.choice(ready))

    def _go_on(self, staged: StagedRun) -> None:
        for _ in range(self.random.randint(1, 5)):
            if staged.is_over or not self._is_ready(staged):
                return
            if staged.at in self._kill_at:
                self._kill_at.remove(staged.at)
                self.world.kill(staged)
                return
            if self._is_busy and staged.at in BETWEEN_WRITES and self._chance(0.1):
                self._stall(staged)
                return
            self.world.step(staged)

    def _is_ready(self, staged: StagedRun) -> bool:
        if staged.stalled_until is not None:
            if staged.stalled_until > self.world.clock.now:
                return False
            staged.stalled_until = None
        if staged.at != "before acquire":
            return True
        table = self.world.watch.table
        held = table is not None and any(each.is_live for each in self.world.ledger.leases(table))
        return not held or self._chance(0.05)

    def _start(self) -> None:
        windows = self._windows()
        if self._unsettled and self._chance(0.7):
            windows = sorted(self._unsettled)
            self._unsettled.clear()
            self.changes.change_in(windows)
        some = self.random.sample(windows, min(len(windows), self.random.randint(1, 2)))
        cells = [cell for window in sorted(some) for cell in self.world.cells(window, window)]
        if self._chance(0.2):
            part = self.random.randrange(self.world.contract.slices)
            cells = [cell for cell in cells if cell.slice == part]
        self.world.start(cells, allow_deletes=self._chance(0.3))

    def _windows(self) -> list[int]:
        """Mostly those that have or had rows: the others are soon done."""
        due = range(self.world.begun_windows())
        x = self.random.random()
        if x < 0.1:
            return list(due)
        if x < 0.3 or (self._was_open() and x < 0.7):
            return [due[-1]]
        times = {row.ts for _, _, rows in self.world.source.versions for row in rows.values()}
        busy = {(ts - START) // WINDOW for ts in times if ts is not None}
        return sorted(busy & set(due)) or list(due)

    def _was_open(self) -> bool:
        """Whether the last run has left an open window that can be topped up."""
        done = [staged for staged in self.world.runs if staged.report is not None]
        return bool(done) and any(b.upto < b.cell.window_end for b in done[-1].batches)

    def _unsettle(self, staged: StagedRun) -> None:
        starts = [batch.cell.window_start for batch in staged.batches]
        self._unsettled |= {(start - START) // WINDOW for start in starts}

    def _stall(self, staged: StagedRun) -> None:
        self._unsettle(staged)
        shortest, longest = (1.5 * TTL_S, 3 * TTL_S) if self._is_busy else (10, TTL_S)
        seconds = self.random.uniform(shortest, longest)
        staged.stalled_until = self.world.clock.now + timedelta(seconds=seconds)
        self.world.watch.say(f"{staged.name} stalls at {staged.at!r} for {seconds:.0f} s")
        self.world.counts["run stalled"] += 1

    def _fate(self, staged: StagedRun, seen: Seen) -> str:
        x = self.random.random() ** (0.6 if self._is_busy else 1.0)
        bounds = ((0.8, "answered"), (0.86, "unanswered"), (0.9, "lost"))
        fate = next((fate for bound, fate in bounds if x < bound), "late")
        if fate != "answered":
            self._unsettle(staged)
        return fate

    def _end(self) -> None:
        world = self.world
        world.watch.say("quiet")
        world.fate = lambda staged, seen: "answered"
        world.task_dies = lambda: False
        world.t_behind_s = lambda: 0.0
        for staged in world.runs:
            staged.stalled_until = None
        for staged in world.runs:
            while not staged.is_over:
                world.move_clock(1)
                world.step(staged)
        if world.watch.is_keyed:
            self.changes.restore()
        world.move_clock(TTL_S + 3 * WINDOW.total_seconds())
        if due := world.due_cells():
            last = world.sync(due, allow_deletes=True)
            if last.error is not None:
                world.watch.violate(f"the last pass failed: {last.error!r}")
        world.watch.at_end(world.clock.now)
        world.watch.raise_violations()

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability


def play(
    servers: Servers,
    folder: Path,
    seed: int,
    counts: Counter[str],
    *,
    broken: Callable[[pytest.MonkeyPatch], None] = lambda patch: None,
    is_jittery: bool = False,
) -> None:
    """One history; Violation, with its trace, if something was not as it must be."""
    keyed = seed % 3 != 2
    slices = 2 if keyed and seed % 4 == 0 else 1
    made = made_world(servers, folder, keyed=keyed, slices=slices)
    with made as world, pytest.MonkeyPatch.context() as patch:
        broken(patch)
        world.watch.say(f"seed {seed}: {'keyed' if keyed else 'keyless'}, {slices} slices")
        try:
            history = History(world, seed)
            if is_jittery:
                world.t_behind_s = lambda: history.random.uniform(0, 40)
            history.play()
        finally:
            counts.update(world.counts)
            counts["run"] += len(world.runs)

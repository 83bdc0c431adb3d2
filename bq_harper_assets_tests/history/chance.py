"""Plays random histories: what may happen to a source, its runs and their requests."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bq_harper_assets_tests.fault_proxy import Seen
from bq_harper_assets_tests.history.changes import Changes
from bq_harper_assets_tests.history.races import BETWEEN_WRITES, Races
from bq_harper_assets_tests.history.script import Script
from bq_harper_assets_tests.history.stage import STOPS, StagedRun
from bq_harper_assets_tests.history.stand_ins import made_world
from bq_harper_assets_tests.history.world import D_S, START, TTL_S, WINDOW, Servers, World

REPLAY = "bq_harper_assets_tests.history.replay"


class History:
    """One script, played on one world."""

    def __init__(self, world: World, script: Script) -> None:
        self.world = world
        self.script = script
        self.random = random.Random(script.number)
        world.seed = script.number
        self._is_busy = script.is_busy
        self._is_faulty = False
        self._unsettled: set[int] = set()  # windows of runs that stall, or wait for an answer
        self.changes = Changes(world, self.random, self._unsettled)
        self._races = Races(world, self.random, self.changes)
        world.fate = self._fate
        world.late_s = lambda: self.random.uniform(1, D_S - 1)
        world.task_dies = lambda: self._is_faulty and self._chance(0.06)
        world.slow_ledger_s = lambda: (
            self.random.uniform(0, 25) if self._is_faulty and self._chance(0.2) else 0.0
        )

    def play(self) -> None:
        """Everything at once; then quiet, one pass over what is due, and all must be equal."""
        self.changes.fill(5)
        self._races.poll()
        for step in self.script.steps:
            self.random.seed(step.chance)
            self._is_faulty = step.is_faulty
            if step.act == "kill":
                self.world.kill_at.add(STOPS[step.chance % len(STOPS)])
            else:
                self._happen(step.act)
        self.random.seed(self.script.number)
        self._is_faulty = False
        self._end()

    def _happen(self, act: str) -> None:
        world, chance = self.world, self.random
        world.move_clock(chance.choice((0.5, 1, 2, 5, 10, 40)))
        alive = [staged for staged in world.runs if not staged.is_over]
        ready = [staged for staged in alive if self._is_ready(staged)]
        if act == "change":
            for _ in range(chance.randint(1, 2)):
                self.changes.change()
        elif act in ("poll", "race", "loss"):
            for staged in ready:
                world.finish(staged)
            if act == "poll":
                self._races.poll()
            elif act == "race":
                self._races.race(chance.choice(self._windows()))
            else:
                self._races.loss(chance.choice(self._windows()), chance.choice(self._windows()))
        elif not alive or (len(alive) < 2 and act == "start"):
            self._start()
        elif not ready:
            world.move_clock(chance.uniform(20, 60))
        elif act == "stall":
            self._stall(chance.choice(ready))
        else:
            self._go_on(chance.choice(ready))

    def _go_on(self, staged: StagedRun) -> None:
        for _ in range(self.random.randint(2, 8)):
            if staged.is_over or not self._is_ready(staged):
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
        if not self._is_faulty:
            return "answered"
        x = self.random.random() ** (0.6 if self._is_busy else 1.0)
        bounds = ((0.5, "answered"), (0.65, "unanswered"), (0.75, "lost"))
        fate = next((fate for bound, fate in bounds if x < bound), "late")
        if fate != "answered":
            self._unsettle(staged)
        return fate

    def _end(self) -> None:
        world = self.world
        world.watch.say("quiet")
        world.kill_at.clear()
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
        world.pass_over_due()

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability


def play(
    servers: Servers,
    folder: Path,
    script: Script,
    counts: Counter[str],
    *,
    broken: Callable[[pytest.MonkeyPatch], None] = lambda patch: None,
    is_jittery: bool = False,
) -> None:
    """One history; Violation, with its trace, if something was not as it must be."""
    made = made_world(servers, folder, script.setting)
    with made as world, pytest.MonkeyPatch.context() as patch:
        broken(patch)
        world.watch.say(f"history {script.number}: {script.setting}")
        try:
            history = History(world, script)
            if is_jittery:
                world.t_behind_s = lambda: history.random.uniform(0, 40)
            history.play()
        except Exception as error:
            error.add_note(f"python -m {REPLAY} '{script}'")
            raise
        finally:
            counts.update(world.counts)
            counts.update({"history": 1, "run": len(world.runs)})

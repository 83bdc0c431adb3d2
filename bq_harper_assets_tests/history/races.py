"""Two runs that meet over one window: what stalls, dies and comes late, all at the worst moment."""

import random
from datetime import timedelta

from bq_harper_assets_tests.fault_proxy import Seen
from bq_harper_assets_tests.history.changes import Changes
from bq_harper_assets_tests.history.stage import StagedRun
from bq_harper_assets_tests.history.world import TTL_S, World

BETWEEN_WRITES = ("after upsert", "wait", "before commit_cells")  # where a pause does most harm
# Before another run starts; around a lease's last seconds most is decided.
_PAUSES_S = (0.0, 15.0, TTL_S - 50, TTL_S - 10, TTL_S + 1)


class Races:
    """Drawn from the history's own chances."""

    def __init__(self, world: World, chance: random.Random, changes: Changes) -> None:
        self.world, self.random, self._changes = world, chance, changes

    def race(self, window: int) -> None:
        """A run is left behind by the source, and by another run; then it goes on, or not."""
        world, chance = self.world, self.random
        self._changes.stir(window)
        first = world.start(world.cells(window, window))
        fate = chance.choice(("late", "late", "unanswered", "answered"))
        self._with_fates(first, *[fate] * chance.choice((1, 3)))
        self._until(first, chance.choice((*BETWEEN_WRITES, "end")))
        if not first.is_over and chance.random() < 0.3:
            world.kill(first)
        self._rest(first, chance.choice(_PAUSES_S))
        for _ in range(chance.randint(0, 1)):
            if not first.is_over:
                self._with_fates(first, "late")
                world.step(first)
        if chance.random() < 0.4:
            self._changes.move_from(window)
        else:
            self._changes.change_in([window], every=True)
        self._rest(first, chance.choice((0.0, 11.0, 50.0)))
        world.finish(world.start(world.cells(window, window)))
        if chance.random() < 0.7:
            self._until(first, "end")

    def poll(self) -> None:
        """The open window again and again: rows come; where none is lost one goes and returns."""
        world, changes = self.world, self._changes
        self._await_leases()
        last = world.begun_windows() - 1
        happen = [changes.arrive, changes.arrive]
        if world.contract.deletes != "mirror":
            happen += [changes.lose_newest, changes.return_newest]
        for change in happen:
            world.move_clock(self.random.uniform(10, 40))
            change()
            world.finish(world.start(world.cells(last, last)))

    def loss(self, window: int, other: int) -> None:
        """All rows of a window are gone: refused, then allowed; and back before it is done."""
        world, chance, changes = self.world, self.random, self._changes
        both = [cell for each in {window, other} for cell in world.cells(each, each)]
        changes.stir(window)
        changes.stir(other)
        self._await_leases()
        world.finish(world.start(both))
        changes.move_from(other)
        gone = changes.lose_all(window)
        self._await_leases()
        world.finish(world.start(both))
        if chance.random() < 0.6:
            self._await_leases()
            allowed = world.start(world.cells(window, window), allow_deletes=True)
            fate = chance.choice(("late", "late", "unanswered", "lost"))
            self._with_fates(allowed, *[fate] * chance.choice((1, 3)))
            world.finish(allowed)
        if chance.random() < 0.6:
            changes.bring_back(gone)
        world.finish(world.start(world.cells(window, window)))

    def _await_leases(self) -> None:
        table = self.world.watch.table
        if table is not None and any(each.is_live for each in self.world.ledger.leases(table)):
            self.world.move_clock(TTL_S + 1)

    def _until(self, staged: StagedRun, at: str) -> None:
        while not staged.is_over and self.world.step(staged) != at:
            pass

    def _rest(self, staged: StagedRun, seconds: float) -> None:
        """As a process that gets no time: its lease is not renewed."""
        staged.stalled_until = self.world.clock.now + timedelta(days=1)
        self.world.move_clock(seconds)
        staged.stalled_until = None

    def _with_fates(self, staged: StagedRun, *fates: str) -> None:
        """Of its next writes; three are all that is tried for one request."""
        usual, left = self.world.fate, list(fates)

        def given(run: StagedRun, seen: Seen) -> str:
            return left.pop() if left and run is staged else usual(run, seen)

        self.world.fate = given

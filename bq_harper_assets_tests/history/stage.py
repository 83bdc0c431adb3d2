"""Runs that are stopped at every step, so that anything may happen between two of them.

Each is a thread that goes on only when it is told to: until its next call of the ledger, answer of
Harper, job of Spark or wait. Nothing else runs meanwhile, so a history repeats from its seed.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from bq_harper_assets.contract.connections import HarperConnection
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LedgerUnavailable
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import Batch
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets_tests.fault_proxy import Fault, FaultProxy, NoAnswer, Reset, Seen
from bq_harper_assets_tests.history.clock import Beats
from bq_harper_assets_tests.history.local_frames import Attempt, LocalSpark

LONGEST_STEP_S = 120.0
# With what a run changes the ledger.
VERBS = (
    *("register_route", "acquire", "renew", "record_schema", "plan", "note_mirrored"),
    *("intend_deletes", "mark", "commit_cells", "refuse_batch", "fail_batch", "release"),
)
WRITES = ("upsert", "delete")
READS = ("search_by_conditions", "search_by_id")
# Where a run can be killed; random histories have to kill one at each of them.
STOPS = (
    *("begin", "before job", "after job", "read", "wait"),
    *(f"{when} {verb}" for verb in VERBS for when in ("before", "after")),
    *(f"after {write}" for write in WRITES),
)


def killed_at(stop: str) -> str:
    """As kills are counted."""
    return f"killed at {stop!r}"


class ProcessDied(BqhError):
    """The run's process was killed; nothing it does reaches anybody."""


class StageBroken(Exception):
    """The stage or a mutant does not fit the code any more: that is no failure of the protocol."""


class StagedRun:
    """One run as a process of its own; `at` says before or after what it stands."""

    def __init__(self, name: str, work: Callable[["StagedRun"], TurnReport]) -> None:
        self.name = name
        self.at = "begin"
        self.is_over = False
        self.is_dead = False
        self.stalled_until: datetime | None = None
        self.t: datetime | None = None  # of its plan
        self.batches: Sequence[Batch] = ()
        self.beats: Beats | None = None  # while it holds leases
        self.renewed_at: datetime | None = None
        self.report: TurnReport | None = None
        self.error: BaseException | None = None
        self._work = work
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def step(self) -> str:
        """On to the next stop; where that is."""
        assert not self.is_over, f"{self.name} is over"
        self._go.release()
        assert self._back.acquire(timeout=LONGEST_STEP_S), f"{self.name} hangs after {self.at!r}"
        if self.is_over:
            self._thread.join()
            if isinstance(self.error, (TypeError, AttributeError, NameError, StageBroken)):
                raise StageBroken(f"{self.name}: {self.error!r}") from self.error
        elif self.at not in STOPS:
            raise StageBroken(f"{self.at!r} is not one of STOPS, so that no run is killed there")
        return self.at

    def kill(self) -> None:
        """Ends it here, as kill -9 does: leases stay, what is under way stays under way."""
        self.is_dead = True
        while not self.is_over:
            self.step()

    def pause(self, at: str) -> None:
        """For the run's own threads, of which only one is ever at work."""
        if not self.is_dead:
            self.at = at
            self._back.release()
            self._go.acquire()

    def must_live(self) -> None:
        """For what only a living process can do."""
        if self.is_dead:
            raise ProcessDied(f"{self.name} was killed at {self.at!r}")

    def wait(self, seconds: float) -> None:
        """In the place of time.sleep between two tries."""
        self.pause("wait")

    def spark(self, attempt: Attempt, dies: Callable[[], bool]) -> LocalSpark:
        """Its Spark."""
        return LocalSpark(attempt, self._job, dies)

    def _job(self, when: str) -> None:
        self.must_live()
        self.pause(f"{when} job")
        self.must_live()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self.must_live()
            self.report = self._work(self)
        except BaseException as error:
            self.error = error
        finally:
            self.is_over = True
            self.at = "end"
            self._back.release()


class StagedLedger:
    """A run's ledger: it stops before and after every verb that changes something.

    Not at renewals, which have a thread of their own: there only a kill can come between.
    """

    def __init__(
        self,
        ledger: Ledger,
        run: StagedRun,
        done: Callable[[StagedRun, str, tuple[Any, ...]], None],
    ) -> None:
        self._ledger = ledger
        self._run = run
        self._done = done  # told of each change

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        method = getattr(self._ledger, verb)
        changes = verb in VERBS
        stops = changes and verb != "renew"
        if not changes and "writing" in method.__code__.co_names:
            raise StageBroken(f"{verb!r} changes the ledger and is not one of VERBS")

        def call(*args: Any, **named: Any) -> Any:
            if stops:
                self._run.pause(f"before {verb}")
            if self._run.is_dead:
                raise LedgerUnavailable("the ledger", "the process was killed")
            result = method(*args, **named)
            if verb == "plan":
                self._run.t, self._run.batches = args[1], result
            if changes:
                self._done(self._run, verb, args)
            if stops:
                self._run.pause(f"after {verb}")
            return result

        return call

    def alone(self, table: Any) -> AbstractContextManager[None]:
        """Without a stop: others would wait for the transaction, and nobody would go on."""
        return self._ledger.alone(table)


class StagedProxy(FaultProxy):
    """Between one run and Harper; a fate is decided for each write the moment it is sent."""

    def __init__(
        self,
        harper: HarperConnection,
        run: StagedRun,
        target: str,
        fate: Callable[[StagedRun, Seen], str],
        applied: Callable[[StagedRun, Seen, datetime | None], None],
    ) -> None:
        super().__init__(harper.url)
        self._run, self._table, self._fate, self._applied = run, target, fate, applied
        self.connection = harper.model_copy(update={"url": self.url, "requests_in_flight": 2})

    def __enter__(self) -> "StagedProxy":
        super().__enter__()
        return self

    def fault_for(self, seen: Seen, *, has_body: bool) -> Fault | None:
        """What becomes of a request; "late" ones are kept by whoever decides so."""
        if not has_body:
            return None
        if self._run.is_dead:
            return Reset("after")
        if seen.table == self._table and seen.operation in READS:
            self._run.pause("read")
            return Reset("after") if self._run.is_dead else None
        if seen.table == self._table and seen.operation in WRITES:
            seen.fault = _FAULTS[self._fate(self._run, seen)]
            return seen.fault
        return None

    def forward(self, seen: Seen) -> Any:
        """To the real Harper; then everybody may go on before the answer is heard."""
        answer = super().forward(seen)
        if seen.table == self._table and seen.operation in WRITES:
            self._applied(self._run, seen, self._run.t)
            if seen.fault is None:
                self._run.pause(f"after {seen.operation}")
        return answer

    def deliver(self, seen: Seen, t: datetime | None) -> None:
        """A late request reaches Harper, whatever became of its run."""
        super().forward(seen)
        self._applied(self._run, seen, t)


_FAULTS: dict[str, Fault | None] = {
    "answered": None,
    "unanswered": NoAnswer(),
    "lost": Reset("after"),
    "late": Reset("after"),
}

"""A source, a target, a ledger, their clock, and runs that move step by step; all is watched."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bq_harper_assets.contract.connections import BigQueryConnection, HarperConnection
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.retries.retry import RetryPolicy
from bq_harper_assets.routes.bigquery_to_harper import BigQueryToHarper, Stores
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets.sync.lease.keeper import LeaseTimes
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.turn.report import TurnReport
from bq_harper_assets.sync.turn.turn import Turn
from bq_harper_assets_tests.fault_proxy import Seen
from bq_harper_assets_tests.history.clock import Clock
from bq_harper_assets_tests.history.local_frames import Attempt
from bq_harper_assets_tests.history.source import Source
from bq_harper_assets_tests.history.stage import (
    STOPS,
    StagedLedger,
    StagedProxy,
    StagedRun,
    killed_at,
)
from bq_harper_assets_tests.history.watch import LAG, Watch
from bq_harper_assets_tests.stores.small_tables import SmallTables

START = datetime(2026, 1, 5, tzinfo=UTC)
WINDOW = timedelta(minutes=5)
TIMES = LeaseTimes()  # as shipped
D_S = TIMES.effect_within.total_seconds()
TTL_S = TIMES.ttl.total_seconds()
RENEWALS_EVERY = TIMES.ttl / 6


@dataclass(frozen=True)
class Servers:
    """Shared by all worlds."""

    bigquery: BigQueryConnection
    harper: HarperConnection
    tables: SmallTables


@dataclass(frozen=True)
class Late:
    """A request that its client has given up and Harper has not applied yet."""

    due: datetime
    proxy: StagedProxy
    seen: Seen
    t: datetime | None


@dataclass(kw_only=True)
class World:
    """What has happened so far, and what can happen next."""

    servers: Servers
    clock: Clock
    source: Source
    contract: TableContract
    ledger: Ledger
    watch: Watch
    counts: Counter[str] = field(default_factory=Counter)
    runs: list[StagedRun] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    attempt: Attempt = field(default_factory=Attempt)
    kill_at: set[str] = field(default_factory=set)  # stops whose next run is killed there
    seed: int = 0  # of the order in which rows are read
    sessions: int = 0  # opened to read the source
    fate: Callable[[StagedRun, Seen], str] = lambda run, seen: "answered"
    late_s: Callable[[], float] = lambda: D_S - 1
    task_dies: Callable[[], bool] = lambda: False
    slow_ledger_s: Callable[[], float] = lambda: 0.0
    t_behind_s: Callable[[], float] = lambda: 0.0  # by how much BigQuery's clock is behind
    _proxies: dict[str, StagedProxy] = field(default_factory=dict)

    def start(self, cells: Sequence[Cell], *, allow_deletes: bool = False) -> StagedRun:
        """A new run; it has not done anything yet."""
        name = f"run {len(self.runs) + 1}"

        def work(staged: StagedRun) -> TurnReport:
            target = self.contract.target.table
            with StagedProxy(self.servers.harper, staged, target, self._send, self._wrote) as proxy:
                self._proxies[name] = proxy
                ledger: Any = StagedLedger(self.ledger, staged, self._recorded)
                spark: Any = staged.spark(self.attempt, self._task_dies)
                return Turn(
                    route=BigQueryToHarper(
                        Stores(self.servers.bigquery, proxy.connection, ledger), self.contract
                    ),
                    spark=spark,
                    run_id=name,
                    times=TIMES,
                    retry=RetryPolicy(max_retries=2, sleep=staged.wait),
                    allow_deletes=allow_deletes,
                ).sync(cells)

        staged = StagedRun(name, work)
        self.runs.append(staged)
        self.watch.say(f"{name} is started for {', '.join(cell.key for cell in cells)}")
        return staged

    def step(self, staged: StagedRun) -> str:
        """The run goes on to its next stop, or is killed where it stands."""
        if staged.at in self.kill_at:
            self.kill(staged)
            return staged.at
        at = staged.step()
        if at == "end":
            told = f"{type(staged.error).__name__}: {staged.error}" if staged.error else "done"
            self.watch.say(f"{staged.name} ends: {told[:300]}")
        self.watch.raise_violations()
        return at

    def run_until(self, staged: StagedRun, at: str) -> None:
        """To its next stop of that name."""
        assert at in STOPS, f"{at!r} is no stop"
        while self.step(staged) != at:
            assert not staged.is_over, f"{staged.name} never came to {at!r}: {staged.error!r}"

    def finish(self, staged: StagedRun) -> None:
        """To its end."""
        while not staged.is_over:
            self.step(staged)

    def sync(self, cells: Sequence[Cell], *, allow_deletes: bool = False) -> StagedRun:
        """A whole run."""
        staged = self.start(cells, allow_deletes=allow_deletes)
        self.finish(staged)
        return staged

    def kill(self, staged: StagedRun, at: str | None = None) -> None:
        """kill -9; `at` tells of a stop that is another thread's."""
        at = at or staged.at
        self.watch.say(f"{staged.name} is killed at {at!r}")
        self.counts[killed_at(at)] += 1
        self.kill_at.discard(at)
        staged.kill()
        self.watch.raise_violations()

    def move_clock(self, seconds: float) -> None:
        """Renewals happen on the way, and late requests reach Harper."""
        until = self.clock.now + timedelta(seconds=seconds)
        while True:
            due = min((late.due for late in self.late), default=until)
            then = min(until, due, self.clock.now + RENEWALS_EVERY)
            self.clock.now = max(self.clock.now, then)
            self._deliver()
            self._renew()
            if self.clock.now >= until:
                return

    def close(self) -> None:
        """No thread stays behind."""
        for staged in self.runs:
            if not staged.is_over:
                staged.kill()

    def named(self, name: str) -> StagedRun:
        """The run of that name."""
        return next(staged for staged in self.runs if staged.name == name)

    def cells(self, first: int, last: int) -> list[Cell]:
        """All slices of some windows, counted from the start."""
        windows = windows_between(START + first * WINDOW, START + (last + 1) * WINDOW, WINDOW)
        return [Cell(window, part) for window in windows for part in range(self.contract.slices)]

    def begun_windows(self) -> int:
        """How many have begun by T - lag; the last is open."""
        return -((START - (self.clock.now - LAG)) // WINDOW)

    def due_cells(self) -> list[Cell]:
        """Closed ones that ledger and fingerprints do not show to equal their source."""
        closed = self.cells(0, self.begun_windows() - 1)
        closed = [cell for cell in closed if cell.window.end <= self.clock.now - LAG]
        known = {record.cell: record for record in self.watch.records()}
        prints = self.source.fingerprints(
            self.source.real_instant(self.clock.now),
            START,
            closed[-1].window.end,
            WINDOW,
            keyed=self.watch.is_keyed,
        )

        def is_equal(cell: Cell) -> bool:
            record = known.get(cell_key(cell))
            if record is None or record.commit is None:
                return False
            same = record.commit.fingerprint == prints[cell.window.start].text
            return record.is_clean and record.commit.is_closed and same

        return [cell for cell in closed if not is_equal(cell)]

    def pass_over_due(self) -> None:
        """Runs all that is due; then Harper must equal BigQuery.

        A kept or flagged row that is back in another window leaves its old cell marked: a second
        pass finds that.
        """
        for _ in range(1 if self.contract.deletes == "mirror" else 2):
            if due := self.due_cells():
                last = self.sync(due, allow_deletes=True)
                if last.error is not None:
                    self.watch.violate(f"the last pass failed: {last.error!r}")
        self.watch.at_end(self.clock.now)
        self.watch.raise_violations()

    def _renew(self) -> None:
        for staged in self.runs:
            is_still = staged.stalled_until is not None and staged.stalled_until > self.clock.now
            if staged.is_dead or is_still or staged.beats is None or staged.renewed_at is None:
                continue
            if self.clock.now - staged.renewed_at < RENEWALS_EVERY:
                continue
            if "before renew" in self.kill_at:
                self.kill(staged, "before renew")
                continue
            staged.renewed_at = self.clock.now
            staged.beats.beat()
            if staged.is_dead:
                self.kill(staged, "after renew")

    def _deliver(self) -> None:
        for late in [late for late in self.late if late.due <= self.clock.now]:
            self.late.remove(late)
            self.watch.say(f"a late {late.seen.operation} reaches Harper")
            late.proxy.deliver(late.seen, late.t)
        self.watch.raise_violations()

    def _send(self, staged: StagedRun, seen: Seen) -> str:
        fate = self.fate(staged, seen)
        self.watch.say(f"{staged.name} sends {seen.operation} of {seen.records}: {fate}")
        self.counts[f"{seen.operation} {fate}"] += 1
        if fate == "late":
            due = self.clock.now + timedelta(seconds=self.late_s())
            self.late.append(Late(due, self._proxies[staged.name], seen, staged.t))
        return fate

    def _wrote(self, staged: StagedRun, seen: Seen, t: datetime | None) -> None:
        try:
            assert t is not None
            self.watch.after_write(staged.name, t)
        except Exception as error:  # in a thread of the proxy, where nobody would hear of it
            self.watch.violate(f"the watch failed: {error!r}")

    def _recorded(self, staged: StagedRun, verb: str, args: tuple[Any, ...]) -> None:
        """After every change of the ledger."""
        say, name = self.watch.say, staged.name
        if verb in ("acquire", "renew"):
            self._note_takeover(verb)
            self.clock.move(self.slow_ledger_s())
            if verb == "renew" and "after renew" in self.kill_at:
                staged.is_dead = True  # before it tells Harper; _renew does the rest
        elif verb == "plan":
            modes = [batch.mode.value for batch in staged.batches]
            say(f"{name} plans {', '.join(modes)} at {staged.t:%T.%f}")
            self.counts.update(f"mode {mode}" for mode in modes)
            if "topup" in modes:
                self.counts[f"top-up of a {self._kind} table"] += 1
        elif verb == "mark":
            say(f"{name} marks {', '.join(str(mark.cell) for mark in args[2])}")
            self.counts.update(mark.reason for mark in args[2])
        elif verb == "intend_deletes":
            say(f"{name} is about to delete {sum(intent.rows for intent in args[1])} rows")
            self.watch.after_intents(args[1])
        elif verb == "refuse_batch":
            self.counts["refused by the guard"] += 1
            self.watch.after_refusal(name, args[0], staged.batches)
        elif verb == "commit_cells" and args[1]:
            self.counts["cell committed"] += len(args[1])
            self.counts[f"commit where deletes is {self.contract.deletes}"] += 1
            self.counts[f"commit of a {self._kind} table in {self.contract.slices}"] += 1
            say(f"{name} committed {', '.join(str(batch.cell) for batch, _ in args[1])}")
            self.watch.after_commit(name, args[1])
        self.watch.check_clean_cells()

    @property
    def _kind(self) -> str:
        return "keyed" if self.watch.is_keyed else "keyless"

    def _note_takeover(self, verb: str) -> None:
        (newest,) = self.ledger.audit(self.watch.table, 1, kind="lease")
        if verb == "acquire" and newest.outcome == "taken over":
            self.counts["lease taken over"] += 1

    def _task_dies(self) -> bool:
        dies = self.task_dies()
        self.counts["task tried twice"] += dies
        return dies

"""A keeper has a turn's leases: it renews them during the work, mirrors and releases them.

Two clocks are used on purpose. The ledger's clock decides who has a lease. The owner's deadline
counts on its own clock from when it asked, so that it never lasts longer than the ledger's lease.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType

from bq_harper_assets.activity import doing
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LeaseHeld, LedgerError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import Leases, LedgerRoute
from bq_harper_assets.retries.waiting import WAITS, clock_text
from bq_harper_assets.sync.errors import LeaseRanOut
from bq_harper_assets.sync.protocols import LeaseMirror, LeaseTerms
from bq_harper_assets.sync.stop_request import Stop

RENEWALS_PER_TTL = 6
RENEW_AGAIN_S = 5.0  # after a renewal that failed, or that was not mirrored
LEASE_LASTS = timedelta(minutes=3)
ASK_EVERY_S = 1.0  # for a lease of another run; less than the pause between two polls of a live run
RENEWAL_ENDS_WITHIN_S = 2.0  # where the run was asked to stop
CLUSTER_CLOCK_SKEW = timedelta(seconds=2)


@dataclass(frozen=True)
class LeaseTimes:
    """Lease times are how long a lease lasts, how far clocks may differ, and how long to wait.

    `effect_within` is the longest time from a request to its effect, because a target may queue.
    """

    ttl: timedelta = LEASE_LASTS
    effect_within: timedelta = timedelta(seconds=45)
    max_clock_skew: timedelta = timedelta(0)
    patience: timedelta = timedelta(0)  # how long to wait for leases of another run


def lease_times(spark_master: str, patience: timedelta = timedelta(0)) -> LeaseTimes:
    """Returns the lease times for a Spark master; clocks may differ only on a cluster."""
    one_machine = spark_master.startswith("local")
    skew = timedelta(0) if one_machine else CLUSTER_CLOCK_SKEW
    return LeaseTimes(max_clock_skew=skew, patience=patience)


class Keeper:
    """A keeper has the leases of some slices of a table for as long as its `with` block runs.

    A target whose tasks must learn of renewals has a `mirror`; a transactional one needs none.
    """

    def __init__(
        self,
        ledger: Ledger,
        mirror: LeaseMirror | None,
        table: LedgerRoute,
        slices: Sequence[int],
        owner: str,
        times: LeaseTimes,
        *,
        stop: Stop | None = None,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._mirror = mirror
        self._table = table
        self._slices = slices
        self._owner = owner
        self._times = times
        self._stop = stop or Stop()
        self._wall = wall
        self._monotonic = monotonic
        self._ended = threading.Event()
        self._lock = threading.Lock()
        # Only one copy is sent at a time: a target may merge each into the row it read before.
        self._mirroring = threading.Lock()
        self._may_release = True

    def __enter__(self) -> "Keeper":
        if self._mirror is not None:
            self._mirror.create()
        self.leases = self.acquire()
        try:
            self._show()
        except BaseException:
            self._release()
            raise
        self._renewing = threading.Thread(target=self._renew, daemon=True)
        self._renewing.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        # A renewal that the target does not answer must not delay a run that is to end.
        self._renewing.join(RENEWAL_ENDS_WITHIN_S if self._stop.is_asked else None)
        is_unanswered = self._mirror is not None and self._mirror.is_unanswered
        if not self._may_release or is_unanswered or self._renewing.is_alive():
            return
        if kind is not None or self._mirror is None:
            self._release()
        elif (batch := self._mirror_end()) is not None:
            self._release(batch)
        # Otherwise that copy may still take effect. If it overwrote the next owner's, the target
        # would look as if it was restored from a backup.

    def leave_to_expire(self) -> None:
        """Lets the leases expire after the block, because a request may still take effect.

        Nobody else may begin before it has.
        """
        self._may_release = False

    def give_back(self) -> None:
        """Lets the leases be released after the block, because every request was answered."""
        self._may_release = True

    def note_planned(self) -> None:
        """Writes the newest batch into the target's copies, and notes that in the ledger.

        This happens before the first write: a run that is killed leaves no other trace that
        distinguishes a target restored from a backup from one that nobody wrote to.
        """
        if self._mirror is None:
            return
        batch = self._ledger.newest(self._table).batch
        with self._mirroring:
            self._show_batch(self._mirror, batch)
        self._ledger.note_mirrored(self.leases, batch)

    @property
    def terms(self) -> LeaseTerms:
        """Returns what the tasks must know of the leases."""
        with self._lock:
            return LeaseTerms(
                target=self._table.facts.target,
                epochs=self.leases.epochs,
                deadline=self._wall_deadline(self.leases),
                effect_within_s=self._times.effect_within.total_seconds(),
                max_clock_skew_s=self._times.max_clock_skew.total_seconds(),
            )

    def acquire(self) -> Leases:
        """Asks the ledger for the leases, and again while others hold them and patience lasts."""
        patience_s = self._times.patience.total_seconds()
        give_up = self._monotonic() + patience_s
        try:
            return self._ask()
        except LeaseHeld as error:
            if not patience_s:
                raise
            held = error
        then = f"asks every {ASK_EVERY_S:g} s, gives up at {clock_text(patience_s)}"
        # The text is made anew each time, because a live owner renews its lease.
        with doing("waiting for the lease"), WAITS.waiting(lambda: held.what, then, at_once=True):
            while True:
                self._stop.sleep(ASK_EVERY_S)
                try:
                    return self._ask()
                except LeaseHeld as error:
                    held = error
                    if self._monotonic() >= give_up:
                        raise

    def _ask(self) -> Leases:
        return self._ledger.acquire(self._table, self._slices, self._owner, self._times.ttl)

    def _wall_deadline(self, leases: Leases) -> float:
        return self._wall() + leases.deadline - self._monotonic()

    def _release(self, mirrored_batch: int | None = None) -> None:
        # A lease that cannot be released expires; the work done under it stays done.
        with suppress(LedgerError):
            self._ledger.release(self.leases, mirrored_batch)

    def _mirror_end(self) -> int | None:
        """Mirrors the newest batch and returns it; returns None if that failed.

        The batch shows later whether ledger and target still belong together. The deadline is set
        to now, so that nobody waits for this run.
        """
        assert self._mirror is not None
        with suppress(BqhError):
            batch = self._ledger.newest(self._table).batch
            self._show_batch(self._mirror, batch, self._wall())
            return batch
        return None

    def _show_batch(self, mirror: LeaseMirror, batch: int, deadline: float | None = None) -> None:
        """Sends copies that name a batch, if their latest effect comes before the lease ends.

        Raises LeaseRanOut if it would come later, when another owner may write.
        """
        if self._monotonic() + self._times.effect_within.total_seconds() >= self.leases.deadline:
            raise LeaseRanOut(
                f"the lease of {self._table.name} could not be renewed in time. Rows written so far"
                f" are safe and nothing else is sent. Next: bqh sync {self._table.name}"
            )
        mirror.show_batch(self.leases, batch, deadline)

    def _renew(self) -> None:
        usual_s = self._times.ttl.total_seconds() / RENEWALS_PER_TTL
        pause_s = usual_s
        while not self._ended.wait(pause_s):
            pause_s = usual_s
            try:
                renewed = self._ledger.renew(self.leases, self._times.ttl)
                with self._lock:
                    self.leases = renewed
                # The ledger's lease must not run out while a copy waits for a target that is busy.
                if self._mirroring.acquire(blocking=False):
                    try:
                        self._show(at_once=True)
                    finally:
                        self._mirroring.release()
                else:
                    pause_s = min(usual_s, RENEW_AGAIN_S)
            except BqhError:
                # The tasks stop by themselves when the deadline is near.
                pause_s = min(usual_s, RENEW_AGAIN_S)

    def _show(self, *, at_once: bool = False) -> None:
        if self._mirror is not None:
            self._mirror.show(self.leases, self._wall_deadline(self.leases), at_once=at_once)

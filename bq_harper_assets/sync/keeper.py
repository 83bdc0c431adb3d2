"""Holds a run's leases: renews them beside the work, mirrors them to Harper, gives them back.

Two clocks are used on purpose. The ledger's decides who holds a lease; the owner's own deadline
counts from when it asked, so that it never believes longer than the ledger does.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.errors import LeaseHeld, LedgerError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import Leases, LogicalTable
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.lease_terms import LeaseTerms, mirror_id
from bq_harper_assets.sync.system_tables import LEASES

RENEWALS_PER_TTL = 6
ASK_EVERY_S = 1.0  # for a lease that another run holds; less than a live run pauses
CLUSTER_CLOCK_SKEW = timedelta(seconds=2)


class AnotherLedger(BqhError):
    """The target belongs to another ledger: two of them cannot know of each other's leases."""


@dataclass(frozen=True)
class LeaseTimes:
    """`effect_within` is the longest time from a request to its effect: Harper queues writes."""

    ttl: timedelta = timedelta(seconds=180)
    effect_within: timedelta = timedelta(seconds=45)
    max_clock_skew: timedelta = timedelta(0)
    patience: timedelta = timedelta(0)  # to wait for leases that another run holds


def lease_times(spark_master: str, patience: timedelta = timedelta(0)) -> LeaseTimes:
    """The machines of a cluster do not agree on the time to the millisecond."""
    one_machine = spark_master.startswith("local")
    skew = timedelta(0) if one_machine else CLUSTER_CLOCK_SKEW
    return LeaseTimes(max_clock_skew=skew, patience=patience)


class Keeper:
    """The leases of some slices of a table, for as long as the block runs."""

    def __init__(
        self,
        ledger: Ledger,
        harper: HarperClient,
        table: LogicalTable,
        slices: Sequence[int],
        owner: str,
        times: LeaseTimes,
        *,
        say: Callable[[str], None] = lambda line: None,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._harper = harper
        self._table = table
        self._slices = slices
        self._owner = owner
        self._times = times
        self._say = say
        self._wall = wall
        self._monotonic = monotonic
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._may_release = True

    def __enter__(self) -> "Keeper":
        self._refuse_another_ledger()
        self.leases = self._acquire()
        try:
            self._mirror()
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
        self._renewing.join()
        if self._may_release:
            self._release()

    def leave_to_expire(self) -> None:
        """A request may still take effect: nobody else may begin before it did."""
        self._may_release = False

    def give_back(self) -> None:
        """All that was sent is answered: the leases are free at the end of the block."""
        self._may_release = True

    @property
    def terms(self) -> LeaseTerms:
        """What the tasks must know."""
        with self._lock:
            return LeaseTerms(
                self._table.facts.target,
                self.leases.epochs,
                self._wall_deadline(self.leases),
                self._times.effect_within.total_seconds(),
                self._times.max_clock_skew.total_seconds(),
            )

    def _acquire(self) -> Leases:
        give_up = self._monotonic() + self._times.patience.total_seconds()
        is_told = False
        while True:
            try:
                return self._ledger.acquire(self._table, self._slices, self._owner, self._times.ttl)
            except LeaseHeld as error:
                if self._monotonic() >= give_up:
                    raise
                if not is_told:
                    self._say(f"waits up to {self._times.patience} for another run: {error}")
                    is_told = True
            time.sleep(ASK_EVERY_S)

    def _wall_deadline(self, leases: Leases) -> float:
        return self._wall() + leases.deadline - self._monotonic()

    def _release(self) -> None:
        # What cannot be given back expires; what was done with it is done.
        with suppress(LedgerError):
            self._ledger.release(self.leases)

    def _renew(self) -> None:
        while not self._ended.wait(self._times.ttl.total_seconds() / RENEWALS_PER_TTL):
            try:
                renewed = self._ledger.renew(self.leases, self._times.ttl)
                with self._lock:
                    self.leases = renewed
                self._mirror()
            except BqhError:
                continue  # the tasks stop by themselves when the deadline is near

    def _mirror(self) -> None:
        deadline = self._wall_deadline(self.leases)
        self._harper.upsert(
            LEASES.name,
            [
                {
                    "id": mirror_id(self._table.facts.target, lease.slice),
                    "ledger": str(self._ledger.identity()),
                    "owner": self._owner,
                    "epoch": lease.epoch,
                    "deadline": deadline,
                }
                for lease in self.leases.held
            ],
        )

    def _refuse_another_ledger(self) -> None:
        LEASES.create(self._harper)
        target = self._table.facts.target
        ids = [mirror_id(target, part) for part in range(self._table.facts.slices)]
        for row in self._harper.search_by_id(LEASES.name, ids, ("id", "ledger")):
            if row["ledger"] != str(self._ledger.identity()):
                raise AnotherLedger(
                    f"Harper's table {target} is kept by the ledger {row['ledger']}, and this is "
                    f"the ledger {self._ledger.identity()}. Nothing was written. Point ledger.url "
                    f"to that ledger; if it is gone for good, delete the rows of {target} in "
                    f"Harper's table {LEASES.name}, then run it again"
                )

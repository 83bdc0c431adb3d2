"""A task may send until the deadline of its turn's leases, and reads later deadlines from Harper.

A request is sent only if its effect, however late, comes before the deadline. The driver renews
the leases and mirrors each new deadline to Harper; a task that runs out of time reads it there.
Missing a renewal only stops work, so the mirror need not be trusted.

The deadline must be in the future by two clocks. If the wall clock is set back, an expired lease
would seem to last longer; the monotonic clock shows that it does not. If the wall clock is set
forward, a ledger on this machine ends the lease at once, so the task stops too.
"""

import time
from collections.abc import Callable

from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.errors import LeaseRanOut
from bq_harper_assets.sync.protocols import LeaseTerms


def mirror_id(target: str, slice_number: int) -> str:
    """Returns the id of the row that mirrors the lease of one slice."""
    return f"{target}|s{slice_number:02}"


class Deadline:
    """A deadline is called directly before each send, and raises LeaseRanOut if it is too late."""

    def __init__(
        self,
        terms: LeaseTerms,
        mirror: HarperClient,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._terms = terms
        self._mirror = mirror
        self._now = now
        self._monotonic = monotonic
        self._deadline = self._seen = terms.deadline
        self._ends = self._by_monotonic(terms.deadline)

    def __call__(self) -> None:
        if self._is_early_enough():
            return
        self._learn(self._mirrored())
        if not self._is_early_enough():
            raise LeaseRanOut(
                f"the lease of {self._terms.target} could not be renewed in time. Rows written "
                "so far are safe and nothing else is sent; the next run does these cells again"
            )

    def _learn(self, mirrored: float) -> None:
        """Extends the time by as much as the mirrored deadline was moved on since the last look.

        A copy that was not moved on is no renewal, however far away its deadline seems by a wall
        clock that was set back.
        """
        renewed = self._ends + mirrored - self._seen
        self._deadline, self._seen = max(self._deadline, mirrored), mirrored
        self._ends = max(self._ends, min(renewed, self._by_monotonic(mirrored)))

    def _is_early_enough(self) -> bool:
        terms = self._terms
        left_s = min(self._deadline - self._now(), self._ends - self._monotonic())
        return terms.effect_within_s < left_s - terms.max_clock_skew_s

    def _by_monotonic(self, deadline: float) -> float:
        return self._monotonic() + deadline - self._now()

    def _mirrored(self) -> float:
        """Returns the earliest mirrored deadline; 0 if a slice's lease has another epoch by now."""
        ids = {
            mirror_id(self._terms.target, slice_number): e
            for slice_number, e in self._terms.epochs.items()
        }
        rows = self._mirror.search_by_id(
            MIRRORED_LEASES.name, list(ids), ("id", "epoch", "deadline")
        )
        ours = [row["deadline"] for row in rows if row["epoch"] == ids[row["id"]]]
        return min(ours) if len(ours) == len(ids) else 0.0

"""Plans which rows come when in a stream, whose batches are whole intervals since 1970.

Rows are pure functions of their number, so the stored rows show which are still to come, and a
restart needs to know nothing but the plan.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.maritime import chance
from bq_harper_assets.maritime.disorder import LATE, ORDERLY, Disorder
from bq_harper_assets.maritime.itinerary import Ints, build_itineraries
from bq_harper_assets.maritime.reports import Reports, Schedule


@dataclass(frozen=True, kw_only=True)
class StreamPlan:
    """A stream plan has `batch` rows per `interval` microseconds, and sends those after `since`."""

    seed: int
    vessels: int
    interval: int
    batch: int
    since: int
    late_batches: int = 5  # a late row comes with one of this many batches after its own
    disorder: Disorder = ORDERLY

    @cached_property
    def reports(self) -> Reports:
        """Returns the rows of the stream; row n belongs to batch n // `batch`."""
        schedule = Schedule(
            seed=self.seed, vessels=self.vessels, origin=0, span=self.interval, rows=self.batch
        )
        return Reports(build_itineraries(self.seed, self.vessels), schedule, self.disorder)

    def numbers(self, first: int, last: int) -> Ints:
        """Returns the numbers of the rows of batches first..last-1."""
        number = np.arange(first * self.batch, last * self.batch, dtype=np.int64)
        return number[self.reports.times(number) > self.since]

    def overdue(self, first: int, last: int) -> Ints:
        """Returns the numbers of the late rows that come with batches first..last-1."""
        late = self.reports.of_kind(self.numbers(first - self.late_batches, last), LATE)
        wait = chance.bits(self.seed, "late by", late) % np.uint64(self.late_batches)
        comes = late // self.batch + 1 + wait.astype(np.int64)
        return late[(comes >= first) & (comes < last)]

    def pending(self, upto: int) -> Ints:
        """Returns the numbers of late rows from batches before `upto` that come with later ones."""
        late = self.overdue(upto, upto + self.late_batches)
        return late[late < upto * self.batch]

    def load(self, first: int, last: int) -> Any:
        """Returns what arrives with batches first..last-1 as a pyarrow Table, late rows last."""
        fresh = self.reports.fresh(self.numbers(first, last))
        return pa.concat_tables([fresh, self.reports.rows(self.overdue(first, last))])

"""Keeps the sample tables growing on the clock, from exactly where they end, until stopped.

The batches of a stream are whole intervals since 1970. Rows are pure functions of their number, so
the stored rows show which are still to come, and a restart needs to know nothing but the plan.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime import chance
from bq_harper_assets.maritime.disorder import LATE, ORDERLY, Disorder
from bq_harper_assets.maritime.initialize import fleet_labels
from bq_harper_assets.maritime.itinerary import Ints, build_itineraries
from bq_harper_assets.maritime.port_calls import events_between
from bq_harper_assets.maritime.register import register_rows
from bq_harper_assets.maritime.reports import DAY, Reports, Schedule, microseconds, moment
from bq_harper_assets.maritime.tables import EVENTS, POSITIONS, REGISTER
from bq_harper_assets.maritime.warehouse import Warehouse

_ROWS_PER_LOAD = 50_000  # it loads so many while it catches up
TRIM_EVERY = timedelta(hours=1)


class TimestampRequired(BqhError):
    """Rows without a timestamp were asked for, of a table that cannot store them."""


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

    def load(self, first: int, last: int) -> Any:
        """Returns what arrives with batches first..last-1 as a pyarrow Table, late rows last."""
        fresh = self.reports.fresh(self.numbers(first, last))
        return pa.concat_tables([fresh, self.reports.rows(self.overdue(first, last))])


class Sink(Protocol):
    """A sink is where a feed sends its rows; a Warehouse is one."""

    def append(self, table: str, rows: Any) -> None:
        """Appends all of the rows, or none."""

    def change(self, reports: Reports, number: Ints) -> None:
        """Updates, moves in time and deletes those of the appended rows that are to be changed."""

    def trim(self, older_than: datetime) -> int:
        """Deletes rows from before that time."""


@dataclass(kw_only=True)
class Feed:
    """A feed sends the rows that are due.

    `batch` is the next batch to send, and `events_after` is the time of the newest event.
    """

    sink: Sink
    plan: StreamPlan
    batch: int
    events_after: int
    retention: timedelta
    say: Callable[[str], None]
    trimmed: datetime | None = None

    def catch_up(self, now: datetime) -> int:
        """Sends all batches that have ended by now; returns the number of positions."""
        sent = 0
        ended = microseconds(now) // self.plan.interval
        # A late row must come in another load than its neighbours, so batches are then sent singly.
        stride = 1 if self.plan.disorder.late else max(1, _ROWS_PER_LOAD // self.plan.batch)
        while self.batch < ended:
            sent += self._send(min(ended, self.batch + stride))
        if self.trimmed is None or now - self.trimmed >= TRIM_EVERY:
            if gone := self.sink.trim(now - self.retention):
                self.say(f"{gone:,} rows older than {self.retention.days} days deleted")
            self.trimmed = now
        return sent

    def _send(self, upto: int) -> int:
        end = upto * self.plan.interval
        events = events_between(self.plan.reports.plan, self.events_after + 1, end)
        if events.num_rows:
            self.sink.append(EVENTS.name, events)
            self.events_after = microseconds(events["event_time"][-1].as_py())
        rows = self.plan.load(self.batch, upto)
        if rows.num_rows:
            self.sink.append(POSITIONS.name, rows)
            self.sink.change(self.plan.reports, self.plan.numbers(self.batch, upto))
        self.batch = upto
        self.say(
            f"{rows.num_rows:,} positions and {events.num_rows:,} events up to {moment(end):%F %T}"
        )
        return int(rows.num_rows)

    def run(
        self,
        clock: Callable[[], datetime],
        wait: Callable[[float], bool],
        until: datetime | None = None,
    ) -> int:
        """Sends until `wait` says to stop, or until `until`; no load stays half done."""
        sent = 0
        while True:
            now = clock()
            sent += self.catch_up(now)
            next_due = moment((microseconds(now) // self.plan.interval + 1) * self.plan.interval)
            if until is not None and next_due > until:
                return sent
            if wait((next_due - now).total_seconds()):
                return sent


def _pace(plan: StreamPlan) -> str:
    """Returns what decides which row comes when, as a label; BigQuery's labels take no dots."""
    late = str(float(plan.disorder.late)).replace(".", "_")
    return f"{plan.batch}-{plan.interval}-{late}-{plan.late_batches}"


def fleet_of(warehouse: Warehouse) -> tuple[int, int] | None:
    """Returns seed and size of the fleet whose register is stored, None if there is none."""
    labels = warehouse.dataset.labels(REGISTER.name) or {}
    return (int(labels["seed"]), int(labels["vessels"])) if "seed" in labels else None


def resume(
    warehouse: Warehouse,
    asked: StreamPlan,
    now: datetime,
    retention: timedelta,
    say: Callable[[str], None],
) -> Feed:
    """Makes a feed that continues the stored rows, or begins with the batch that has just ended.

    A stream of another pace begins anew after the newest row; the old one's late rows stay out.
    """
    warehouse.make(null_timestamps=bool(asked.disorder.nulls))
    # The emulator would take such rows, but BigQuery refuses the whole load.
    if asked.disorder.nulls and "timestamp" in warehouse.dataset.required_columns(POSITIONS.name):
        raise TimestampRequired(
            f"{POSITIONS.name} was made with a timestamp that cannot be NULL. Nothing was sent;"
            " make it anew with `bqh maritime reset --nulls N`, or start without --nulls."
        )
    if warehouse.newest(REGISTER.name, now) is None:
        warehouse.dataset.label(REGISTER.name, fleet_labels(asked.seed, asked.vessels))
        itineraries = build_itineraries(asked.seed, asked.vessels)
        end = microseconds(now)
        warehouse.append(REGISTER.name, register_rows(itineraries, end - DAY, end))
    just_ended = (microseconds(now) // asked.interval - 1) * asked.interval - 1
    oldest_kept = microseconds(now - retention)
    found = warehouse.newest(POSITIONS.name, now)
    newest = max(microseconds(found), oldest_kept) if found else just_ended
    plan, labels = replace(asked, since=newest), warehouse.dataset.labels(POSITIONS.name) or {}
    if labels.get("pace") == _pace(asked) and found is not None and newest > oldest_kept:
        plan = replace(asked, since=int(labels["since"]))
    warehouse.dataset.label(POSITIONS.name, {"pace": _pace(plan), "since": str(plan.since)})
    events = warehouse.newest(EVENTS.name, now)
    return Feed(
        sink=warehouse,
        plan=plan,
        batch=newest // plan.interval + (newest > plan.since),
        events_after=max(microseconds(events), oldest_kept) if events else plan.since,
        retention=retention,
        say=say,
    )

"""Keeps the sample tables growing on the clock, from exactly where they end, until stopped."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import numpy as np

from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime.disorder import DELETE, MOVE, UPDATE, Disorder
from bq_harper_assets.maritime.initialize import fleet_labels
from bq_harper_assets.maritime.itinerary import Ints, build_itineraries
from bq_harper_assets.maritime.port_calls import events_between
from bq_harper_assets.maritime.register import register_rows
from bq_harper_assets.maritime.reports import DAY, Reports, microseconds, moment
from bq_harper_assets.maritime.stream import StreamPlan
from bq_harper_assets.maritime.tables import EVENTS, POSITIONS, REGISTER
from bq_harper_assets.maritime.warehouse import Warehouse

_ROWS_PER_LOAD = 50_000  # it loads so many while it catches up
TRIM_EVERY = timedelta(hours=1)


class TimestampRequired(BqhError):
    """Rows without a timestamp were asked for, of a table that cannot store them."""


class Sink(Protocol):
    """A sink is where a feed sends its rows; a Warehouse is one."""

    def append(self, table: str, rows: Any) -> None:
        """Appends all of the rows, or none."""

    def change(self, reports: Reports, updates: Ints, moves: Ints, deletes: Ints) -> int:
        """Updates, moves in time and deletes rows that were appended."""

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
            numbers, reports = self.plan.numbers(self.batch, upto), self.plan.reports
            touched = [reports.of_kind(numbers, kind) for kind in (UPDATE, MOVE, DELETE)]
            self.sink.change(reports, *touched)
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


def _plan_labels(plan: StreamPlan) -> dict[str, str]:
    """Makes the labels that record a plan; BigQuery's labels take no dots."""
    return {
        "interval": str(plan.interval),
        "batch": str(plan.batch),
        "since": str(plan.since),
        "late_batches": str(plan.late_batches),
        "late": str(float(plan.disorder.late)).replace(".", "_"),
    }


def _recorded_plan(asked: StreamPlan, labels: dict[str, str]) -> StreamPlan | None:
    if not labels.get("since"):
        return None
    return replace(
        asked,
        interval=int(labels["interval"]),
        batch=int(labels["batch"]),
        since=int(labels["since"]),
        late_batches=int(labels["late_batches"]),
        disorder=Disorder(late=float(labels["late"].replace("_", "."))),
    )


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
    """Makes a feed that continues the stored rows, or begins with the batch that has just ended."""
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
    recorded = _recorded_plan(asked, warehouse.dataset.labels(POSITIONS.name) or {})
    plan = replace(asked, since=newest)
    if recorded is not None and found is not None and newest > oldest_kept:
        same_pace = replace(asked, since=recorded.since)
        if _plan_labels(same_pace) == _plan_labels(recorded):
            plan = same_pace
        else:
            _send_pending(warehouse, recorded, newest)
    warehouse.dataset.label(POSITIONS.name, _plan_labels(plan))
    events = warehouse.newest(EVENTS.name, now)
    return Feed(
        sink=warehouse,
        plan=plan,
        batch=newest // plan.interval + (newest > plan.since),
        events_after=max(microseconds(events), oldest_kept) if events else plan.since,
        retention=retention,
        say=say,
    )


def _send_pending(warehouse: Warehouse, recorded: StreamPlan, newest: int) -> None:
    """Sends the late rows of the old pace that are still to come, before the pace changes."""
    numbers = recorded.pending(newest // recorded.interval + 1)
    times = [moment(time) for time in recorded.reports.times(numbers)]
    stored = warehouse.stored(times)
    out = numbers[np.array([time not in stored for time in times], dtype=bool)]
    if len(out):
        warehouse.append(POSITIONS.name, recorded.reports.rows(out))

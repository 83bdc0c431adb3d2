"""Fills empty tables with one scenario: the register, the events, the positions, oldest first.

A scenario says how much sample data there is: three have names, and others derive from them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime.disorder import LATE, ORDERLY, Disorder
from bq_harper_assets.maritime.fleet import MAX_VESSELS
from bq_harper_assets.maritime.itinerary import SECOND, Ints, Itineraries, build_itineraries
from bq_harper_assets.maritime.port_calls import last_events
from bq_harper_assets.maritime.register import register_rows
from bq_harper_assets.maritime.reports import Reports, Schedule
from bq_harper_assets.maritime.tables import EVENTS, POSITIONS, REGISTER
from bq_harper_assets.maritime.warehouse import Warehouse

_ROWS_PER_LOAD = 262_144  # BigQuery takes 1,500 loads of a table per day

_Progress = Callable[[str, int, int], None]  # it gets table, rows loaded, rows in all


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario is a size of the sample data.

    The positions cover `span` microseconds, and the events are the newest at its end.
    """

    positions: int
    events: int
    vessels: int
    span: int


_HOUR = 3600 * SECOND
SCENARIOS = {
    "small": Scenario(positions=100, events=10, vessels=20, span=_HOUR),
    "realistic": Scenario(positions=10_000, events=500, vessels=100, span=24 * _HOUR),
    "stress": Scenario(positions=100_000, events=5_000, vessels=1_000, span=7 * 24 * _HOUR),
}


def sized(scenario: Scenario, rows: int | None = None, vessels: int | None = None) -> Scenario:
    """Returns the scenario with other positions (the rest in proportion) or another fleet size."""
    if rows is not None:
        fleet = min(MAX_VESSELS, max(scenario.vessels, rows // 100))
        scenario = replace(scenario, positions=rows, events=rows // 20, vessels=fleet)
    return scenario if vessels is None else replace(scenario, vessels=vessels)


class AlreadyFilled(BqhError):
    """The tables have rows already; a second scenario on top would mix two fleets."""


@dataclass(frozen=True)
class Sample:
    """A sample is the data of one scenario that ends at `end` (microseconds since 1970)."""

    scenario: Scenario
    seed: int
    end: int
    disorder: Disorder = ORDERLY

    @cached_property
    def plan(self) -> Itineraries:
        """Returns the itineraries of the sample's vessels."""
        return build_itineraries(self.seed, self.scenario.vessels)

    @cached_property
    def reports(self) -> Reports:
        """Returns the sample's positions, by row number."""
        size = self.scenario
        start = self.end - size.span
        schedule = Schedule(
            seed=self.seed, vessels=size.vessels, origin=start, span=size.span, rows=size.positions
        )
        return Reports(self.plan, schedule, self.disorder)

    def register(self) -> Any:
        """Returns the rows of vessel_metadata."""
        return register_rows(self.plan, self.end - self.scenario.span, self.end)

    def events(self) -> Any:
        """Returns the rows of port_events."""
        return last_events(self.plan, self.scenario.events, self.end)

    def numbers(self) -> Iterator[Ints]:
        """Yields the numbers of all positions, those of one load at a time."""
        rows = self.scenario.positions
        for first in range(0, rows, _ROWS_PER_LOAD):
            yield np.arange(first, min(first + _ROWS_PER_LOAD, rows), dtype=np.int64)

    def positions(self) -> Iterator[Any]:
        """Yields the rows of vessel_positions in order of time, without those that come late."""
        for numbers in self.numbers():
            yield self.reports.fresh(numbers)


def initialize(warehouse: Warehouse, sample: Sample, progress: _Progress) -> None:
    """Loads the sample into tables that are missing or empty."""
    if not warehouse.missing() and (filled := [s for s in warehouse.stats() if s.rows]):
        raise AlreadyFilled(
            f"{warehouse.dataset.id} already holds sample data"
            f" ({', '.join(f'{s.table}: {s.rows:,} rows' for s in filled)}). It was not touched;"
            " replace it with `bqh maritime reset`, or go on from it with `bqh maritime start`."
        )
    size, reports = sample.scenario, sample.reports
    sample.disorder.counts(size.positions, 0)  # it raises an error if there are too many
    warehouse.make(null_timestamps=bool(sample.disorder.nulls))
    warehouse.dataset.label(REGISTER.name, fleet_labels(sample.seed, size.vessels))
    warehouse.dataset.label(POSITIONS.name, {"pace": ""})  # a stream into earlier rows ends here
    warehouse.append(REGISTER.name, sample.register())
    progress(REGISTER.name, size.vessels, size.vessels)
    if size.events:
        warehouse.append(EVENTS.name, sample.events())
    progress(EVENTS.name, size.events, size.events)
    late = (reports.rows(reports.of_kind(numbers, LATE)) for numbers in sample.numbers())
    done = 0
    for rows in chain(sample.positions(), late):
        if rows.num_rows:
            warehouse.append(POSITIONS.name, rows)
            done += rows.num_rows
            progress(POSITIONS.name, done, size.positions)
    for numbers in sample.numbers():
        warehouse.change(reports, numbers)


def fleet_labels(seed: int, vessels: int) -> dict[str, str]:
    """Makes the register's labels, by which a later `start` goes on with the same vessels."""
    return {"seed": str(seed), "vessels": str(vessels)}

"""Fills empty tables with one scenario: the register, the events, the positions, oldest first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from bq_harper_assets.errors import BqhError
from bq_harper_assets.maritime.disorder import DELETE, LATE, MOVE, ORDERLY, UPDATE, Disorder
from bq_harper_assets.maritime.itinerary import Ints, Itineraries, build_itineraries
from bq_harper_assets.maritime.port_calls import last_events
from bq_harper_assets.maritime.register import register_rows
from bq_harper_assets.maritime.reports import Reports, Schedule
from bq_harper_assets.maritime.scenarios import Scenario
from bq_harper_assets.maritime.tables import EVENTS, POSITIONS, REGISTER
from bq_harper_assets.maritime.warehouse import Warehouse

_ROWS_PER_LOAD = 250_000
_ROWS_AT_ONCE = 65_536  # so many stay in the processor's cache

_Progress = Callable[[str, int, int], None]  # it gets table, rows loaded, rows in all


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

    def positions(self, batch: int = _ROWS_AT_ONCE) -> Iterator[Any]:
        """Yields the rows of vessel_positions in order of time, without those that come late."""
        for numbers in _cut(np.arange(self.scenario.positions, dtype=np.int64), batch):
            yield self.reports.fresh(numbers)

    def of_kind(self, *kinds: int) -> list[Ints]:
        """Returns, for each of these kinds, the numbers of all its rows."""
        numbers = _cut(np.arange(self.scenario.positions, dtype=np.int64), _ROWS_PER_LOAD)
        found = [(some, self.reports.kinds(some)) for some in numbers]
        return [np.concatenate([some[are == kind] for some, are in found]) for kind in kinds]


def _cut(numbers: Ints, size: int) -> Iterator[Ints]:
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size]


def initialize(warehouse: Warehouse, sample: Sample, progress: _Progress) -> None:
    """Loads the sample into tables that are missing or empty."""
    if not warehouse.missing() and (filled := [s for s in warehouse.stats() if s.rows]):
        raise AlreadyFilled(
            f"{warehouse.dataset.id} already holds sample data"
            f" ({', '.join(f'{s.table}: {s.rows:,} rows' for s in filled)}). It was not touched;"
            " replace it with `bqh maritime reset`, or go on from it with `bqh maritime start`."
        )
    size, reports = sample.scenario, sample.reports
    late, updates, moves, deletes = sample.of_kind(LATE, UPDATE, MOVE, DELETE)
    warehouse.make(null_timestamps=bool(sample.disorder.nulls))
    warehouse.dataset.label(REGISTER.name, fleet_labels(sample.seed, size.vessels))
    warehouse.dataset.label(POSITIONS.name, {"since": ""})  # a stream into earlier rows ends here
    warehouse.append(REGISTER.name, sample.register())
    progress(REGISTER.name, size.vessels, size.vessels)
    if size.events:
        warehouse.append(EVENTS.name, sample.events())
    progress(EVENTS.name, size.events, size.events)
    done, waiting = 0, []
    for rows in sample.positions():
        waiting.append(rows)
        done += rows.num_rows
        if sum(part.num_rows for part in waiting) >= _ROWS_PER_LOAD:
            warehouse.append(POSITIONS.name, pa.concat_tables(waiting))
            waiting = []
            progress(POSITIONS.name, done, size.positions)
    if waiting:
        warehouse.append(POSITIONS.name, pa.concat_tables(waiting))
    for numbers in _cut(late, _ROWS_PER_LOAD):
        warehouse.append(POSITIONS.name, reports.rows(numbers))
        done += len(numbers)
    warehouse.change(reports, updates, moves, deletes)
    progress(POSITIONS.name, done, size.positions)


def fleet_labels(seed: int, vessels: int) -> dict[str, str]:
    """Makes the register's labels, by which a later `start` goes on with the same vessels."""
    return {"seed": str(seed), "vessels": str(vessels)}

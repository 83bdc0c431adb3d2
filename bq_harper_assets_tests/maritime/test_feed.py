"""The stream: every row once, on the clock, across batches and restarts; no server needed."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.maritime.disorder import Disorder
from bq_harper_assets.maritime.feed import Feed, StreamPlan
from bq_harper_assets.maritime.itinerary import SECOND, Ints, build_itineraries
from bq_harper_assets.maritime.port_calls import events_between
from bq_harper_assets.maritime.reports import Reports, microseconds
from bq_harper_assets.maritime.vessel_types import VESSEL_TYPES
from bq_harper_assets_tests.maritime.great_circle import distance_km

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
MINUTE = 60 * SECOND


@dataclass
class Recorder:
    """A sink that keeps what it is sent."""

    loads: list[tuple[str, Any]] = field(default_factory=list)
    trims: list[datetime] = field(default_factory=list)

    def append(self, table: str, rows: Any) -> None:
        self.loads.append((table, rows))

    def change(self, reports: Reports, number: Ints) -> None:
        pass

    def trim(self, older_than: datetime) -> int:
        self.trims.append(older_than)
        return 0

    def table(self, name: str) -> Any:
        return pa.concat_tables([rows for table, rows in self.loads if table == name])


@dataclass
class Clock:
    """Time that passes only by waiting, and a little more than asked."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += timedelta(seconds=seconds + 0.25)
        return False


def plan(since: datetime = NOON, **changes: Any) -> StreamPlan:
    settings = {"seed": 7, "vessels": 100, "interval": MINUTE, "batch": 100}
    return StreamPlan(**settings | changes, since=microseconds(since) - 1)


def feed(sink: Recorder, stream: StreamPlan, begin: datetime = NOON) -> Feed:
    first = microseconds(begin)
    return Feed(
        sink=sink,
        plan=stream,
        batch=first // stream.interval,
        events_after=first - 1,
        retention=timedelta(days=30),
        say=lambda _: None,
    )


def times(table: Any, column: str = "timestamp") -> np.ndarray:
    return table[column].cast(pa.int64()).to_numpy()


@pytest.mark.promise("K7")
def test_a_day_on_the_clock_brings_144_000_rows_without_a_gap() -> None:
    sink, clock = Recorder(), Clock(NOON)
    sent = feed(sink, plan()).run(clock, clock.wait, NOON + timedelta(days=1))
    stamped = times(sink.table("vessel_positions"))
    assert sent == len(stamped) == 144_000
    assert stamped[0] >= microseconds(NOON)
    assert (np.diff(stamped) > 0).all()
    assert np.diff(stamped).max() < 2 * 600_000
    per_minute = Counter((stamped // MINUTE).tolist())
    assert set(per_minute.values()) == {100}
    assert len(per_minute) == 1440
    day = (microseconds(NOON), microseconds(NOON + timedelta(days=1)))
    events = sink.table("port_events").combine_chunks()
    assert events.equals(events_between(build_itineraries(7, 100), *day))


@pytest.mark.promise("K7")
def test_restarts_and_pauses_change_nothing() -> None:
    straight, broken = Recorder(), Recorder()
    feed(straight, plan()).catch_up(NOON + timedelta(hours=3))
    for begin, end in [(0, 7), (7, 7.9), (7, 8), (8, 95), (95, 180)]:
        part = feed(broken, plan(), NOON + timedelta(minutes=begin))
        part.catch_up(NOON + timedelta(minutes=end))
    for table in ("vessel_positions", "port_events"):
        assert straight.table(table).equals(broken.table(table).combine_chunks())
    assert straight.table("port_events").num_rows > 3


@pytest.mark.promise("K5")
def test_no_vessel_jumps_from_batch_to_batch() -> None:
    sink = Recorder()
    feed(sink, plan(vessels=37, batch=20)).catch_up(NOON + timedelta(hours=6))
    table = sink.table("vessel_positions").sort_by(
        [("mmsi", "ascending"), ("timestamp", "ascending")]
    )
    mmsi, hours = table["mmsi"].to_numpy(), np.diff(times(table)) / SECOND / 3600
    lat, lon = table["latitude"].to_numpy(), table["longitude"].to_numpy()
    most = {kind.name: kind.speed_knots[1] for kind in VESSEL_TYPES}
    limit = np.array([most[kind] for kind in table["vessel_type"].to_pylist()])[1:]
    same = mmsi[1:] == mmsi[:-1]
    knots = distance_km(lat[:-1], lon[:-1], lat[1:], lon[1:])[same] / 1.852 / hours[same]
    assert (knots <= limit[same] * 1.05).all()
    assert knots.max() > 10


@pytest.mark.promise("K8")
def test_late_rows_come_in_a_later_load_within_their_delay_and_none_is_lost() -> None:
    tidy, sink = Recorder(), Recorder()
    feed(tidy, plan()).catch_up(NOON + timedelta(hours=2))
    late = plan(disorder=Disorder(late=0.07), late_batches=4)
    feed(sink, late).catch_up(NOON + timedelta(hours=2))
    loads = [rows for table, rows in sink.loads if table == "vessel_positions"]
    assert len(loads) == 120
    delays: Counter[int] = Counter()
    for number, rows in enumerate(loads):
        batch = (times(rows) - microseconds(NOON)) // MINUTE
        delays.update((number - batch).tolist())
    assert set(delays) == {0, 1, 2, 3, 4}
    assert delays[0] == 120 * 93
    end = microseconds(NOON + timedelta(hours=2)) // MINUTE
    still_out = late.overdue(end, end + 4)
    out = late.reports.rows(still_out[still_out < end * late.batch])
    everything = pa.concat_tables([*loads, out]).sort_by("timestamp")
    assert 0 < out.num_rows < 28
    assert everything.equals(tidy.table("vessel_positions").combine_chunks())


@pytest.mark.promise("K8")
def test_a_restart_between_late_rows_neither_loses_nor_repeats_one() -> None:
    straight, broken = Recorder(), Recorder()
    late = plan(disorder=Disorder(late=0.2))
    feed(straight, late).catch_up(NOON + timedelta(minutes=40))
    for begin, end in [(0, 3), (3, 4), (4, 21), (21, 40)]:
        part = feed(broken, late, NOON + timedelta(minutes=begin))
        part.catch_up(NOON + timedelta(minutes=end))
    table = broken.table("vessel_positions").combine_chunks()
    assert straight.table("vessel_positions").equals(table)
    assert len(set(times(table))) == table.num_rows


@pytest.mark.promise("K6")
def test_old_rows_are_trimmed_at_the_start_and_then_once_an_hour() -> None:
    sink, clock = Recorder(), Clock(NOON)
    feed(sink, plan()).run(clock, clock.wait, NOON + timedelta(hours=5, minutes=30))
    assert len(sink.trims) == 6
    assert sink.trims[0] == NOON - timedelta(days=30)
    assert min(b - a for a, b in zip(sink.trims, sink.trims[1:], strict=False)) >= timedelta(
        hours=1
    )


def test_it_stops_when_told_so_between_two_loads() -> None:
    sink, told = Recorder(), []

    def wait(seconds: float) -> bool:
        told.append(seconds)
        return True

    sent = feed(sink, plan()).run(lambda: NOON + timedelta(seconds=90), wait)
    assert sent == 100
    assert told == [30.0]


@pytest.mark.promise("K7")
@pytest.mark.parametrize(("batch", "interval"), [(1, 7), (7, 1), (33, 50), (1000, 60)])
def test_any_rate_has_exactly_its_rows(batch: int, interval: int) -> None:
    sink = Recorder()
    stream = plan(batch=batch, interval=interval * SECOND)
    whole = feed(sink, stream, datetime(2026, 11, 16, 12, tzinfo=UTC))
    first = whole.batch
    whole.catch_up(NOON + timedelta(seconds=20 * interval))
    batches = whole.batch - first
    stamped = times(sink.table("vessel_positions"))
    before = stream.since // stream.interval * stream.interval < stream.since
    assert (batches - before) * batch <= len(stamped) <= batches * batch
    assert (np.diff(stamped) > 0).all()

"""The sample tables in a real BigQuery emulator: what is generated is what is stored."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.maritime.disorder import DELETE, LATE, MOVE, UPDATE, Disorder
from bq_harper_assets.maritime.feed import Feed, StreamPlan, TimestampRequired, fleet_of, resume
from bq_harper_assets.maritime.initialize import SCENARIOS, AlreadyFilled, Sample, initialize, sized
from bq_harper_assets.maritime.reports import microseconds
from bq_harper_assets.maritime.warehouse import NoSampleData, Warehouse
from bq_harper_assets.stores.bigquery.client import connect

pytestmark = pytest.mark.bigquery

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
END = microseconds(NOON)
MONTH = timedelta(days=30)
SLOW = StreamPlan(seed=7, vessels=20, interval=60_000_000, batch=10, since=0)


def quiet(*_: Any) -> None:
    """No progress shown."""


@pytest.fixture
def warehouse(
    bigquery_connection: BigQueryConnection, request: pytest.FixtureRequest
) -> Iterator[Warehouse]:
    place = Warehouse(bigquery_connection, re.sub(r"\W", "_", request.node.name)[-60:])
    yield place
    place.clean(quiet)


def stored(warehouse: Warehouse, table: str) -> Any:
    """All rows, as Arrow."""
    client = connect(warehouse.dataset.connection)
    rows = client.list_rows(client.get_table(f"{warehouse.dataset.id}.{table}"))
    return rows.to_arrow(create_bqstorage_client=False)


def rows_of(table: Any) -> Counter[tuple[Any, ...]]:
    names = sorted(table.column_names)
    return Counter(tuple(row[name] for name in names) for row in table.to_pylist())


@pytest.mark.promise("K1")
@pytest.mark.promise("K3")
def test_what_was_generated_is_read_back_equal(warehouse: Warehouse) -> None:
    sample = Sample(SCENARIOS["small"], 7, END)
    initialize(warehouse, sample, quiet)
    expected = {
        "vessel_positions": pa.concat_tables(list(sample.positions())),
        "port_events": sample.events(),
        "vessel_metadata": sample.register(),
    }
    for name, rows in expected.items():
        found = stored(warehouse, name)
        assert found.column_names == rows.column_names
        assert rows_of(found) == rows_of(rows)
    described = connect(warehouse.dataset.connection).get_table(
        f"{warehouse.dataset.id}.vessel_positions"
    )
    assert described.time_partitioning.field == "timestamp"
    assert described.time_partitioning.type_ == "DAY"
    assert described.clustering_fields == ["vessel_type", "mmsi", "report_date"]
    assert len(described.schema) == 18
    assert [f.name for f in described.schema if f.mode != "REQUIRED"] == ["destination", "eta"]


@pytest.mark.promise("K1")
def test_a_second_scenario_is_refused_until_the_first_is_cleared(warehouse: Warehouse) -> None:
    sample = Sample(SCENARIOS["small"], 7, END)
    initialize(warehouse, sample, quiet)
    with pytest.raises(AlreadyFilled, match="vessel_positions: 100 rows"):
        initialize(warehouse, sample, quiet)
    said: list[str] = []
    warehouse.clear(said.append)
    assert said[-1] == "vessel_positions: 100 rows deleted"
    assert [table.rows for table in warehouse.stats()] == [0, 0, 0]
    initialize(warehouse, replace(sample, seed=8), quiet)
    assert [table.rows for table in warehouse.stats()] == [100, 10, 20]
    assert fleet_of(warehouse) == (8, 20)
    warehouse.clean(quiet)
    with pytest.raises(NoSampleData, match="bqh maritime initialize small"):
        warehouse.stats()


@pytest.mark.promise("K8")
def test_every_disorder_ends_in_the_table_as_asked(warehouse: Warehouse) -> None:
    disorder = Disorder(
        late=0.05, ties=0.1, duplicates=6, updates=7, moves=5, deletes=9, nulls=3, futures=4
    )
    sample = Sample(sized(SCENARIOS["small"], rows=200), 7, END, disorder)
    initialize(warehouse, sample, quiet)
    reports = sample.reports
    late, updates, moves, deletes = (
        reports.of_kind(np.arange(200), kind) for kind in (LATE, UPDATE, MOVE, DELETE)
    )
    loaded = pa.concat_tables([*sample.positions(), reports.rows(late)])
    expected = rows_of(loaded)
    for numbers in (updates, moves, deletes):
        expected -= rows_of(reports.rows(numbers))
    found = stored(warehouse, "vessel_positions")
    assert found.num_rows == 200 + 6 - 9
    changed = rows_of(found) - expected
    assert expected - rows_of(found) == Counter()
    names = sorted(found.column_names)
    changed_rows = [dict(zip(names, row, strict=True)) for row in changed.elements()]
    before = {(row["mmsi"], row["timestamp"]): row for row in reports.rows(updates).to_pylist()} | {
        (row["mmsi"], row["timestamp"] - timedelta(hours=3)): row
        for row in reports.rows(moves).to_pylist()
    }
    assert len(changed_rows) == len(before) == 12
    for row in changed_rows:
        was = before[row["mmsi"], row["timestamp"]]
        differing = {name for name in names if row[name] != was[name]}
        assert differing in ({"draft"}, {"timestamp"}, {"timestamp", "report_date"})
        assert row["report_date"] == row["timestamp"].strftime("%Y%m%d")
    assert sum(row["timestamp"] is None for row in found.to_pylist()) == 3


def test_late_rows_come_in_a_load_of_their_own(warehouse: Warehouse) -> None:
    sample = Sample(SCENARIOS["small"], 7, END, Disorder(late=0.1))
    loads: list[int] = []
    append = warehouse.append

    def counting(table: str, rows: Any) -> None:
        append(table, rows)
        loads.append(rows.num_rows)

    warehouse.append = counting  # type: ignore[method-assign]
    initialize(warehouse, sample, quiet)
    assert loads == [20, 10, 90, 10]
    assert warehouse.stats()[0].rows == 100


def begin(warehouse: Warehouse, plan: StreamPlan, now: datetime) -> Feed:
    return resume(warehouse, plan, now, MONTH, quiet)


@pytest.mark.promise("K7")
def test_a_restart_goes_on_where_the_stored_rows_end(warehouse: Warehouse) -> None:
    initialize(warehouse, Sample(SCENARIOS["small"], 7, END), quiet)
    newest = warehouse.newest("vessel_positions", NOON)
    assert newest is not None
    for minutes in (3, 3.5, 4, 30):
        now = NOON + timedelta(minutes=minutes)
        begin(warehouse, SLOW, now).catch_up(now)
    plan = replace(SLOW, since=microseconds(newest))
    first, last = plan.since // plan.interval, END // plan.interval + 30
    expected = rows_of(plan.load(first, last))
    found = stored(warehouse, "vessel_positions")
    assert rows_of(found) - expected == rows_of(
        pa.concat_tables(list(Sample(SCENARIOS["small"], 7, END).positions()))
    )
    assert expected - rows_of(found) == Counter()


@pytest.mark.promise("K7")
def test_a_start_on_nothing_makes_tables_and_register_and_begins_now(warehouse: Warehouse) -> None:
    now = NOON + timedelta(seconds=20)
    assert begin(warehouse, SLOW, now).catch_up(now) == 10
    assert fleet_of(warehouse) == (7, 20)
    positions, events, register = warehouse.stats()
    assert (positions.rows, events.rows, register.rows) == (10, 0, 20)
    assert positions.oldest is not None
    assert positions.oldest >= NOON - timedelta(minutes=1)


@pytest.mark.promise("K7")
def test_another_pace_begins_after_the_newest_row_without_a_gap_and_repeats_none(
    warehouse: Warehouse,
) -> None:
    late = replace(SLOW, batch=20, disorder=Disorder(late=0.3))
    for minutes in (1, 9, 10):
        now = NOON + timedelta(minutes=minutes)
        begin(warehouse, late, now).catch_up(now)
    before = stored(warehouse, "vessel_positions")["timestamp"].to_pylist()
    assert len(before) == len(set(before)) < 10 * 20  # some late ones are still out, and stay so
    now = NOON + timedelta(minutes=12)
    for _ in range(2):
        begin(warehouse, SLOW, now).catch_up(now)
    after = stored(warehouse, "vessel_positions")["timestamp"].to_pylist()
    assert len(set(after)) == len(after)
    slow = replace(SLOW, since=microseconds(max(before)))
    due = slow.load(slow.since // slow.interval, microseconds(now) // slow.interval)
    assert set(after) - set(before) == set(due["timestamp"].to_pylist())


def test_a_stream_into_rows_that_were_cleared_is_forgotten(warehouse: Warehouse) -> None:
    late = replace(SLOW, disorder=Disorder(late=0.3))
    now = NOON + timedelta(minutes=5)
    begin(warehouse, late, now).catch_up(now)
    warehouse.clear(quiet)
    initialize(warehouse, Sample(SCENARIOS["small"], 7, microseconds(now)), quiet)
    newest = warehouse.newest("vessel_positions", now)
    assert newest is not None
    assert begin(warehouse, late, now).plan.since == microseconds(newest)
    assert begin(warehouse, late, now).plan.since == microseconds(newest)


@pytest.mark.promise("K8")
def test_rows_without_timestamp_are_sent_only_to_tables_that_may_hold_them(
    warehouse: Warehouse,
) -> None:
    plan, now = replace(SLOW, disorder=Disorder(nulls=1)), NOON + timedelta(minutes=2)
    initialize(warehouse, Sample(SCENARIOS["small"], 7, END), quiet)
    with pytest.raises(TimestampRequired, match="bqh maritime reset --nulls N"):
        begin(warehouse, plan, now)
    assert warehouse.stats()[0].rows == 100
    warehouse.clean(quiet)
    begin(warehouse, plan, now).catch_up(now)
    assert stored(warehouse, "vessel_positions")["timestamp"].null_count == 1


def test_rows_from_the_future_do_not_stop_a_restart(warehouse: Warehouse) -> None:
    plan = replace(SLOW, disorder=Disorder(futures=1))
    for minutes in (2, 4):
        now = NOON + timedelta(minutes=minutes)
        begin(warehouse, plan, now).catch_up(now)
    rows = warehouse.stats()[0].rows
    begin(warehouse, plan, now + timedelta(minutes=1)).catch_up(now + timedelta(minutes=1))
    assert warehouse.stats()[0].rows == rows + 10


@pytest.mark.promise("K6")
def test_retention_deletes_old_positions_and_events_and_keeps_the_register(
    warehouse: Warehouse,
) -> None:
    sample = Sample(SCENARIOS["small"], 7, END)
    initialize(warehouse, sample, quiet)
    cutoff = NOON - timedelta(minutes=20)
    old = [
        sum(row[column] < cutoff for row in table.to_pylist())
        for table, column in (
            (pa.concat_tables(list(sample.positions())), "timestamp"),
            (sample.events(), "event_time"),
        )
    ]
    assert old[0] > 50
    assert warehouse.trim(cutoff) == sum(old)
    positions, events, register = warehouse.stats()
    assert (positions.rows, events.rows, register.rows) == (100 - old[0], 10 - old[1], 20)
    assert positions.oldest is not None
    assert positions.oldest >= cutoff
    assert warehouse.trim(cutoff) == 0


@pytest.mark.promise("K6")
def test_a_start_after_a_long_pause_fills_no_more_than_it_would_keep(warehouse: Warehouse) -> None:
    initialize(warehouse, Sample(SCENARIOS["small"], 7, END), quiet)
    now = NOON + timedelta(days=3)
    hourly = replace(SLOW, interval=3_600_000_000)
    feed = resume(warehouse, hourly, now, timedelta(days=1), quiet)
    assert feed.catch_up(now) == 240
    assert warehouse.stats()[0].rows == 240


@pytest.mark.promise("K3")
def test_the_queries_of_the_manual_run(warehouse: Warehouse) -> None:
    initialize(warehouse, Sample(SCENARIOS["small"], 7, END), quiet)
    page = Path(__file__).resolve().parents[2] / "docs" / "sample-data.md"
    queries = re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(queries) >= 3
    answers = [
        warehouse.dataset.query(query.replace("`maritime.", "`{dataset}.")) for query in queries
    ]
    assert [len(answer) > 0 for answer in answers] == [True] * len(queries)

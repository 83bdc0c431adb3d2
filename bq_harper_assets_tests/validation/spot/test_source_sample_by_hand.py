"""Which times are asked for together, and what a query for a sample says."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.stores.bigquery.fingerprint import SourceAtInstant
from bq_harper_assets.stores.bigquery.queries import Queries
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.validation.spot import source_sample
from bq_harper_assets.validation.spot.source_sample import (
    read_together,
    rows_at,
    times_of,
    uncrowded,
)
from bq_harper_assets_tests.stores.bigquery.by_hand import Asked, BigQueryByHand
from bq_harper_assets_tests.validation.committed import DAY, MINUTE

TS = Column(name="ts", kind=Kind.TIMESTAMP)
SOURCE = SourceAtInstant(
    table=TableRef("p", "sea", "ships"), columns=(TS,), time_column=TS, row_filter="n > 3"
)
TIMES = [DAY + n * MINUTE for n in range(5)]


@contextmanager
def asking(*answers: list[dict[str, Any]]) -> Iterator[tuple[Queries, list[Asked]]]:
    """Queries answered in turn, and what they said."""
    left = iter(answers)
    with BigQueryByHand(lambda asked: next(left)) as service, service.queries() as queries:
        yield queries, service.asked


def test_each_time_is_counted_in_one_query_of_several_and_one_without_rows_is_counted_as_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_sample, "TIMES_PER_QUERY", 2)
    some = [{"moment": TIMES[0], "n": 7}], [{"moment": TIMES[3], "n": 1}], []
    with asking(*some) as (queries, asked):
        found = rows_at(queries, SOURCE, [*reversed(TIMES), TIMES[0]])
    assert found == dict(zip(TIMES, [7, 0, 0, 1, 0], strict=True))
    minutes = [sorted({int(at) for at in re.findall(r" 00:0(\d)", each.sql)}) for each in asked]
    assert minutes == [[0, 1], [2, 3], [4]]
    assert all("(n > 3)" in each.sql and "GROUP BY `ts`" in each.sql for each in asked)


def test_times_are_picked_of_each_window_up_to_where_it_is_committed() -> None:
    until = {
        DAY + 10 * MINUTE: DAY + 15 * MINUTE,
        DAY: DAY + 5 * MINUTE,
        DAY + 5 * MINUTE: DAY + 7 * MINUTE,
    }
    picked = [{"m": micros_at(moment)} for moment in (TIMES[2], TIMES[1])]
    with asking(picked) as (queries, asked):
        assert times_of(queries, SOURCE, until, 5 * MINUTE, 3, 42) == TIMES[1:3]
    [query] = asked
    bounds = re.findall(r" 00:(\d\d):00", query.sql)
    assert bounds == ["00", "07", "10", "15"]  # windows that follow each other are one range
    assert "LIMIT 3)" in query.sql
    assert "(n > 3)" in query.sql


def test_no_query_is_sent_for_no_window() -> None:
    with asking() as (queries, asked):
        assert times_of(queries, SOURCE, {}, timedelta(minutes=5), 3, 42) == []
    assert asked == []


def test_times_with_few_rows_are_read_and_one_too_many_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 10)
    counts = dict(zip(TIMES, [7, 1, 2, 8, 0], strict=True))
    assert uncrowded(counts) == [TIMES[4], TIMES[1], TIMES[2], TIMES[0]]
    assert uncrowded({TIMES[0]: 11}) == []


def test_one_session_reads_as_many_rows_and_times_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 10)
    full = dict(zip(reversed(TIMES), [4, 9, 1, 6, 4], strict=True))
    assert list(read_together(full)) == [TIMES[:2], TIMES[2:4], [TIMES[4]]]
    counts = dict(zip(reversed(TIMES), [4, 6, 1, 0, 12], strict=True))
    assert list(read_together(counts)) == [[TIMES[0]], [TIMES[2], TIMES[3]], [TIMES[4]]]
    monkeypatch.setattr(source_sample, "MOST_SAMPLED_ROWS", 100)
    monkeypatch.setattr(source_sample, "TIMES_PER_QUERY", 2)
    assert list(read_together(counts)) == [[TIMES[0], TIMES[2]], [TIMES[3], TIMES[4]]]
    assert list(read_together({TIMES[0]: 0})) == []

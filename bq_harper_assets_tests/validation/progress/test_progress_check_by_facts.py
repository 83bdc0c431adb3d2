"""Progress judged by facts alone: what is due, what is synced, and which word that deserves."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.ledger.questions.progress import Checkpoint
from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState, LedgerRoute, RouteFacts
from bq_harper_assets.validation.progress.due_rows import Waiting, in_words
from bq_harper_assets.validation.progress.progress_check import (
    MOST_RANGES,
    ProgressFacts,
    gaps,
    judge_progress,
    slices_behind,
    without_time,
)
from bq_harper_assets_tests.stores.small_tables import utc

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TICK = timedelta(microseconds=1)
NONE = timedelta(0)
BASE = utc(2026, 1, 5)


@pytest.mark.promise("M1")
@pytest.mark.parametrize(
    ("overdue", "since_commit", "word"),
    [
        (NONE, NONE, "healthy"),
        (10 * MINUTE, 5 * HOUR, "healthy"),
        (10 * MINUTE + TICK, NONE, "lagging"),
        (HOUR, 10 * MINUTE, "lagging"),
        (HOUR + TICK, 10 * MINUTE, "severely_lagging"),
        (10 * MINUTE + TICK, 10 * MINUTE + TICK, "stalled"),
        (5 * HOUR, 5 * HOUR, "stalled"),
    ],
)
def test_exactly_ten_minutes_and_an_hour_belong_to_the_calmer_word(
    overdue: timedelta, since_commit: timedelta, word: str
) -> None:
    assert judge_progress(ProgressFacts(overdue, since_commit)) == word


def declared(**keys: object) -> TableContract:
    known = {"id": "t", "dataset": "d", "table": "t", "timestampColumn": "ts", "targetTable": "T"}
    return TableContract.model_validate(known | keys)


def test_a_row_is_overdue_from_the_moment_on_at_which_it_is_due() -> None:
    live, row = declared(window="60m"), utc(2026, 1, 5, 10, 20)
    assert Waiting(1, row).overdue(live, utc(2026, 1, 5, 10, 20, 59)) == NONE
    assert Waiting(1, row).overdue(live, utc(2026, 1, 5, 10, 23)) == 2 * MINUTE
    assert Waiting(0).overdue(live, utc(2026, 1, 5, 10, 23)) == NONE
    assert Waiting().rows == 0


def test_a_duration_is_told_in_whole_seconds() -> None:
    assert in_words(timedelta(hours=1, seconds=2, milliseconds=999)) == "1:00:02"


def _table(slices: int) -> LedgerRoute:
    return LedgerRoute(
        1,
        1,
        RouteFacts(
            name="t",
            table="t",
            source="s",
            target="T",
            timestamp_column="ts",
            key=(),
            window=HOUR,
            slices=slices,
        ),
    )


def _synced(hour: int, part: int, minutes: int = 60) -> CellRecord:
    begin = BASE + hour * HOUR
    commit = CellCommit(
        batch=1,
        t=begin + HOUR,
        schema_version=1,
        rows=5,
        digest="digest",
        fingerprint="fingerprint",
        committed_at=begin + HOUR,
        upto=begin + minutes * MINUTE,
        is_closed=minutes == 60,
    )
    cell = CellKey.of_window(begin, begin + HOUR, part)
    return CellRecord(cell=cell, state=CellState.SYNCED, commit=commit, marks=0)


def _gaps(cells: Sequence[CellRecord], start: int, until: int, slices: int = 1) -> list[list[int]]:
    """In minutes after BASE."""
    found = gaps(_table(slices), cells, BASE + start * MINUTE, BASE + until * MINUTE)
    return [[(moment - BASE) // MINUTE for moment in gap] for gap in found]


@pytest.mark.parametrize("ahead", [0, 1])
def test_of_an_open_window_only_what_every_slice_has_counts_as_synced(ahead: int) -> None:
    cells = [_synced(0, part, 30 if part == ahead else 10) for part in (0, 1)]
    assert _gaps(cells, 0, 40, slices=2) == [[10, 40]]


def test_a_window_of_which_a_slice_is_missing_is_a_gap() -> None:
    cells = [_synced(0, 0), _synced(0, 1), _synced(1, 0), _synced(2, 0), _synced(2, 1)]
    assert _gaps(cells, 0, 180, slices=2) == [[60, 120]]


def test_a_cell_that_was_never_committed_is_a_gap() -> None:
    key = CellKey.of_window(BASE, BASE + HOUR, 0)
    planned = CellRecord(cell=key, state=CellState.PLANNED, commit=None, marks=0)
    assert _gaps([planned], 0, 60) == [[0, 60]]


@pytest.mark.parametrize(
    ("until", "found"),
    [
        (60, []),
        (61, [[60, 61]]),
        (120, [[60, 120]]),
        (180, [[60, 120]]),
        (181, [[60, 120], [180, 181]]),
    ],
)
def test_a_gap_ends_where_the_next_committed_window_begins_or_nothing_is_due(
    until: int, found: list[list[int]]
) -> None:
    assert _gaps([_synced(0, 0), _synced(2, 0)], 0, until) == found
    assert _gaps([_synced(2, 0), _synced(0, 0)], 0, until) == found


def test_what_lies_before_the_start_is_no_gap() -> None:
    assert _gaps([_synced(0, 0), _synced(2, 0)], 90, 180) == [[90, 120]]
    assert _gaps([_synced(2, 0), _synced(0, 0)], 90, 180) == [[90, 120]]
    assert _gaps([_synced(0, 0)], 90, 180) == [[90, 180]]


def test_too_many_gaps_become_one() -> None:
    every_second = [_synced(hour, 0) for hour in range(1, 2 * MOST_RANGES, 2)]
    assert len(_gaps(every_second, 0, 2 * MOST_RANGES * 60)) == MOST_RANGES == 50
    one_more = [*every_second, _synced(2 * MOST_RANGES + 1, 0)]
    end = (2 * MOST_RANGES + 2) * 60
    assert _gaps(one_more, 0, end) == [[0, end - 60]]


def test_a_slice_is_behind_if_it_lags_more_than_ten_minutes_behind_the_furthest() -> None:
    points = [
        Checkpoint(0, BASE, 5),
        Checkpoint(1, BASE + 10 * MINUTE + TICK, 5),
        Checkpoint(2, BASE + TICK, 5),
    ]
    assert slices_behind(points) == ("s00",)


def test_rows_without_a_time_are_counted_in_words() -> None:
    assert without_time(declared(), 1).startswith("1 row of BigQuery without ts will never be")
    assert without_time(declared(), 2_000).startswith("2,000 rows of BigQuery without ts")

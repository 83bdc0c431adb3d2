"""Windows whose rows changed since their sync are found, and no others."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bq_harper_assets.instants import micros_at
from bq_harper_assets.schema.logical import Column, Kind
from bq_harper_assets.sync.errors import TurnFailed
from bq_harper_assets.sync.revisit.changed_windows import SourceChanges, look
from bq_harper_assets_tests.sync.memory_source import COLUMNS, DAY, HOUR, Small, ship

MORE = Column(name="more", kind=Kind.STRING)


def looked(small: Small, spans: Sequence[tuple[int, int]] = ((0, 24),)) -> SourceChanges:
    small.source.now += timedelta(seconds=1)
    ranges = [(micros_at(DAY + a * HOUR), micros_at(DAY + b * HOUR)) for a, b in spans]
    return look(small.ledger, small.source, small.route.contract, ranges)


def changed(small: Small, spans: Sequence[tuple[int, int]] = ((0, 24),)) -> set[int]:
    """The hours whose rows have changed."""
    return {(at - DAY) // HOUR for at in looked(small, spans).changed}


def synced(small: Small, *hours: int, **declared: Any) -> None:
    small.declare(**declared)
    small.source.put(*(ship(hour, 60 * hour + 5) for hour in hours))
    small.run(*hours)


def test_a_table_that_was_never_synced_has_no_changes(small: Small) -> None:
    assert looked(small) == SourceChanges({}, 0, 0)
    assert SourceChanges() == SourceChanges({}, 0, 0)
    assert small.source.asked == []


def test_windows_with_the_rows_of_their_sync_have_not_changed(small: Small) -> None:
    synced(small, 0, 1, 2)
    found = looked(small)
    assert (found.changed, found.windows, found.bytes_billed) == ({}, 3, 10)


def test_new_changed_and_deleted_rows_are_each_found_in_their_window(small: Small) -> None:
    synced(small, 0, 1, 2, 3, 4)
    small.source.put(ship(0, 5), ship(1, 65, "y"), ship(2, 125), ship(3, 185), ship(7, 186))
    assert changed(small) == {1, 3, 4}
    small.run(1, 3, 4)
    assert changed(small) == set()


def test_only_the_asked_ranges_are_compared_and_each_costs_one_query(small: Small) -> None:
    synced(small, 0, 1, 2, 3)
    small.source.put()
    small.source.asked.clear()
    found = looked(small, [(0, 1), (2, 3), (10, 12)])
    assert {(at - DAY) // HOUR for at in found.changed} == {0, 2}
    assert (found.windows, found.bytes_billed) == (2, 20)
    spans = [what for how, what in small.source.asked if how == "fingerprints"]
    assert small.source.pinned_from[-2:] == spans
    assert spans == [(DAY, DAY + HOUR), (DAY + 2 * HOUR, DAY + 3 * HOUR)]


def test_a_change_is_told_with_its_fingerprint_and_when_it_was_seen(small: Small) -> None:
    synced(small, 0)
    small.source.put()
    [(at, seen)] = looked(small).changed.items()
    assert (at, seen.fingerprint, seen.at) == (DAY, "0:0:0000000000000000:0:0", small.source.now)


def test_windows_that_the_source_says_are_unchanged_are_not_read(small: Small) -> None:
    synced(small, 0, 1)
    small.source.put()
    small.source.unchanged_since = DAY
    assert looked(small).windows == 0
    small.declare(backfill=True)
    assert changed(small) == {0, 1}


def test_an_added_column_says_nothing_of_a_window_unless_it_is_filled_in(small: Small) -> None:
    synced(small, 0, 1)
    small.source.columns = (*COLUMNS, MORE)
    small.source.put({**ship(0, 5), "more": "new"}, ship(1, 65))
    assert changed(small) == set()
    small.declare(backfill=True)
    assert 0 in changed(small)


@pytest.mark.parametrize("has_past", [True, False])
def test_a_column_that_is_gone_is_left_out_of_both_sides(small: Small, has_past: bool) -> None:
    synced(small, 0, 1)
    small.source.columns = COLUMNS[:2]
    small.source.has_past = has_past
    # Of an instant that is not kept, the old fingerprint cannot be computed without the column.
    assert changed(small) == (set() if has_past else {0, 1})
    small.source.put({"n": 0, "ts": ship(0, 6)["ts"]}, ship(1, 65))
    assert changed(small) == ({0} if has_past else {0, 1})


def test_fingerprints_told_anew_are_kept_once_the_change_is_recorded(small: Small) -> None:
    synced(small, 0, 1)
    small.source.columns = COLUMNS[:2]
    looked(small)
    small.source.put(*small.source.rows_at(small.source.now), ship(2, 125))
    small.run(2)  # it records the version without the column
    small.source.asked.clear()
    assert changed(small) == set()
    assert [how for how, _ in small.source.asked].count("at") == 1
    small.source.asked.clear()
    assert changed(small) == set()
    assert [how for how, _ in small.source.asked].count("at") == 0


def test_a_column_that_was_away_for_a_moment_has_changed_nothing(small: Small) -> None:
    synced(small, 0, 1)
    small.source.columns = COLUMNS[:2]
    assert changed(small) == set()
    small.source.columns = COLUMNS
    assert changed(small) == set()


def test_a_range_of_many_windows_is_pinned_whole(small: Small) -> None:
    synced(small, 2, 4, 3)
    looked(small)
    assert small.source.pinned_from[-1] == (DAY + 2 * HOUR, DAY + 5 * HOUR)


def test_a_refused_window_is_due_again_only_when_its_source_changed(small: Small) -> None:
    small.declare(slices=1)
    small.source.put(*(ship(n, n / 100) for n in range(1_100)))
    small.run(0)
    small.source.put(ship(0, 0))
    with pytest.raises(TurnFailed):
        small.run(0)
    assert changed(small) == set()
    small.source.put(ship(0, 0), ship(1, 1))
    assert changed(small) == {0}


def test_equal_rows_that_a_gone_column_numbered_are_synced_again(small: Small) -> None:
    synced(small, 0, 1, key=None)
    small.source.columns = (*COLUMNS, MORE)
    same = ship(0, 5)
    small.source.put({**same, "more": "a"}, {**same, "more": "b"}, ship(1, 65))
    small.run(0)
    small.source.columns = COLUMNS
    found = looked(small)
    assert set(found.changed) == {DAY}
    assert "numbers its equal rows by a column that is gone" in found.changed[DAY].fingerprint
    small.source.unchanged_since = DAY
    assert changed(small) == {0}


def test_different_rows_of_a_keyless_table_are_not_numbered_by_a_gone_column(
    small: Small,
) -> None:
    synced(small, 0, key=None)
    small.source.columns = (*COLUMNS, MORE)
    small.source.put({**ship(0, 5), "more": "a"}, {**ship(1, 6), "more": "b"})
    small.run(0)
    small.source.columns = COLUMNS
    assert changed(small) == set()


@pytest.mark.parametrize("key", [None, ["n"]])
def test_equal_rows_whose_columns_are_all_there_are_not_numbered_otherwise(
    small: Small, key: list[str] | None
) -> None:
    small.declare(key=key)
    same = ship(0, 5)
    small.source.put(same, *([same] if key is None else []))
    small.run(0)
    assert changed(small) == set()
    small.source.unchanged_since = DAY
    assert looked(small).windows == 0


def test_a_column_that_came_back_may_have_left_old_values(small: Small) -> None:
    synced(small, 0, 1)
    small.source.columns = COLUMNS[:2]
    small.run(1)
    small.source.columns = COLUMNS
    small.run(0)
    small.declare(backfill=True)
    found = looked(small)
    assert set(found.changed) == {DAY + HOUR}


def test_an_open_window_is_compared_up_to_where_it_is_committed(small: Small) -> None:
    small.declare(slices=1, live=True, safety_lag="0s")
    small.source.now = DAY + timedelta(minutes=20)
    small.source.put(ship(1, 5))
    small.run(0)
    assert replace(looked(small), bytes_billed=0).changed == {}

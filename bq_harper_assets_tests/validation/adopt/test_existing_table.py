"""What a table that others filled holds outside of all windows, and where its windows begin."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bq_harper_assets.contract.connections import BigQueryConnection
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.schema.logical import Kind
from bq_harper_assets.stores.bigquery.fingerprint import Outside
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.validation.adopt import existing_table
from bq_harper_assets.validation.adopt.existing_table import (
    WindowDiff,
    held_outside,
    oldest_held,
    start_where_others_began,
    take_over,
)
from bq_harper_assets_tests.empty_ledger import empty_ledger
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper, client_of, harper_with
from bq_harper_assets_tests.validation.committed import DAY, MINUTE, at, ships

FIRST = Window(DAY, DAY + 5 * MINUTE)
SECOND = Window(DAY + 5 * MINUTE, DAY + 10 * MINUTE)


def holding(*times: object) -> MemoryHarper:
    """Harper with a row of each time, in minutes or as it is stored."""
    shown = [at(each) if isinstance(each, int | float) else each for each in times]
    return harper_with({"Orders": [{"id": n, "event_time": t} for n, t in enumerate(shown)]})


def test_rows_outside_of_all_windows_are_counted_by_their_side() -> None:
    harper = holding(None, None, None, -2, -0.5, 0, 5, 9.9, 10)
    with client_of(harper) as client:
        now = DAY + 10 * MINUTE
        found = held_outside(client, ships(), Kind.TIMESTAMP, DAY, now)
    assert found == Outside(without_time=3, before_start=2, in_future=1)
    assert {each["limit"] for each in harper.of("search_by_conditions")} == {1_001}


def test_a_count_ends_behind_the_number_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existing_table, "COUNTED", 2)
    with client_of(holding(*[None] * 5)) as client:
        found = held_outside(client, ships(), Kind.TIMESTAMP, DAY, DAY + MINUTE)
    assert found == Outside(3, 0, 0)


def test_the_oldest_row_is_by_its_time_and_not_by_its_id() -> None:
    with client_of(holding(3, None, 1, 2)) as client:
        assert oldest_held(client, ships()) == at(1)
    with client_of(holding(None)) as client:
        assert oldest_held(client, ships()) is None


@pytest.mark.parametrize(
    ("in_source", "start"),
    [
        (None, DAY + 5 * MINUTE),
        (DAY + 300 * MINUTE, DAY + 5 * MINUTE),  # of the same day
        (DAY + timedelta(days=2, hours=3), DAY + timedelta(days=2)),
        (DAY - timedelta(days=2), DAY + 5 * MINUTE),
    ],
)
def test_windows_begin_where_others_began_and_none_before_the_sources_oldest_day(
    in_source: datetime | None, start: datetime
) -> None:
    assert start_where_others_began(ships(), DAY + 7 * MINUTE, in_source) == start


def some(count: int) -> Any:
    return np.arange(count, dtype=np.uint64)


def _of(*cells: CellDiff) -> WindowDiff:
    return WindowDiff.of(FIRST, cells)


def test_a_windows_differences_are_those_of_its_cells_together() -> None:
    diff = _of(
        CellDiff(ids=1, read=10, equal=7, missing=some(1), changed=some(2)),
        CellDiff(ids=1, read=20, equal=20, vanished=["a", "b", "c", "d"]),
    )
    assert diff == WindowDiff(window=FIRST, rows=30, equal=27, missing=1, changed=2, phantom=4)
    nothing = WindowDiff(window=FIRST)
    assert nothing == _of()
    assert (nothing.rows, nothing.equal, nothing.missing, nothing.changed, nothing.phantom) == (
        (0,) * 5
    )


@pytest.mark.parametrize(
    ("cells", "is_equal"),
    [
        ([CellDiff(ids=9, read=9, equal=9)], True),
        ([CellDiff(ids=9, read=9, equal=9, vanished=["a"])], False),
        ([CellDiff(ids=9, read=9, equal=8)], False),
        ([], True),
    ],
)
def test_a_window_is_equal_if_each_row_is_and_there_is_none_besides(
    cells: Sequence[CellDiff], is_equal: bool
) -> None:
    assert _of(*cells).is_equal == is_equal


def test_a_table_that_is_taken_over_is_on_record_with_what_was_compared(tmp_path: Path) -> None:
    known = ships(sync={})
    diffs = [
        WindowDiff(window=FIRST, rows=3, equal=3),
        WindowDiff(window=SECOND, rows=5, equal=2, missing=1, changed=2, phantom=4),
    ]
    with open_ledger(empty_ledger(tmp_path / "ledger.db")) as ledger:
        route = take_over(ledger, BigQueryConnection(project="p"), known, DAY, diffs)
        assert ledger.find_route(known.id) == route
        assert route.facts.source == known.source.name_in("p")
        assert ledger.start_of(known.id) == DAY
        [note] = ledger.audit(route, kind="adopt")
        assert (note.subject, note.outcome) == ("Orders", "adopted")
        assert note.detail == {
            "start": "2026-01-05T00:00:00+00:00",
            "windows": 2,
            "windows_equal": 1,
            "rows": 8,
            "equal": 5,
            "missing": 1,
            "changed": 2,
            "phantom": 4,
        }
        empty = ships(sync={}, id="more", target_table="More")
        route = take_over(ledger, BigQueryConnection(project="p"), empty, None, [])
        assert ledger.start_of("more") is None
        assert ledger.audit(route, kind="adopt")[0].detail["start"] is None

"""The partition budget: exact at its edges, and its advice really helps."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.contract.budget import JUDGED_SPAN, BudgetVerdict, judge_budget
from bq_harper_assets.contract.fields.quantities import WINDOW_MINUTES
from bq_harper_assets.contract.table import Sync, TableContract
from bq_harper_assets.instants import count_windows
from bq_harper_assets_tests.contract.conftest import NOW, Disk

HOUR = timedelta(hours=1)


def contract(window: str | timedelta, slices: int, start: datetime | str | None) -> TableContract:
    return TableContract.model_validate(
        {
            "id": "a",
            "dataset": "b",
            "table": "c",
            "timestampColumn": "d",
            "targetTable": "E",
            "window": window,
            "slices": slices,
            "sync": Sync.model_validate({"startTimestamp": start}) if start else Sync(),
        }
    )


@pytest.mark.parametrize(
    ("hours", "cells", "refused", "warned"),
    [
        (19_999, 79_996, False, False),
        (20_000, 80_000, False, True),
        (25_000, 100_000, False, True),
        (25_001, 100_004, True, False),
    ],
)
def test_the_limit_is_exact(hours: int, cells: int, refused: bool, warned: bool) -> None:
    verdict = judge_budget(contract("1h", 4, NOW - hours * HOUR), NOW)
    assert (verdict.cells, bool(verdict.refused), bool(verdict.warning)) == (cells, refused, warned)


def test_the_window_that_is_open_now_counts() -> None:
    assert count_windows(NOW - HOUR, NOW, HOUR) == 1
    assert count_windows(NOW - HOUR, NOW + timedelta(seconds=1), HOUR) == 2
    assert count_windows(NOW - timedelta(seconds=1), NOW, HOUR) == 1
    before_1970 = datetime(1969, 12, 31, 23, 30, tzinfo=UTC)
    assert count_windows(before_1970, datetime(1970, 1, 1, 0, 30, tzinfo=UTC), HOUR) == 2


def test_the_warning_names_the_day_the_limit_is_reached() -> None:
    start = NOW - 20_000 * HOUR
    warning = judge_budget(contract("1h", 4, start), NOW).warning
    assert warning is not None
    assert f"is reached on {(start + 25_000 * HOUR):%Y-%m-%d}" in warning


@pytest.mark.parametrize(
    ("window", "slices", "fits"), [("60m", 4, True), ("30m", 4, True), ("15m", 4, False)]
)
def test_without_a_start_a_year_is_judged(window: str, slices: int, fits: bool) -> None:
    verdict = judge_budget(contract(window, slices, None), NOW)
    assert (verdict.refused is None) == fits
    if verdict.refused:
        assert "in one year (no startTimestamp is given)" in verdict.refused
    assert "holds 416 days" in str(judge_budget(contract("30m", 5, None), NOW).warning)


def test_a_year_is_365_days_up_to_now() -> None:
    assert judge_budget(contract("60m", 1, None), NOW).cells == 365 * 24


@pytest.mark.parametrize(
    ("window", "slices", "days", "ways"),
    [
        ("5m", 4, None, "window: 30m, or sync.startTimestamp: 2026-04-24"),
        ("5m", 64, None, "window: 1d, or sync.startTimestamp: 2026-06-28"),
        ("1h", 64, 20_000, "window: 1d and slices: 3, or sync.startTimestamp: 2026-05-11"),
        ("1d", 64, 2_000, "slices: 39, or sync.startTimestamp: 2023-01-30"),
    ],
)
def test_the_smallest_larger_window_is_advised_and_fewer_slices_where_none_is_enough(
    window: str, slices: int, days: int | None, ways: str
) -> None:
    start = None if days is None else NOW - timedelta(days=days)
    refused = str(judge_budget(contract(window, slices, start), NOW).refused)
    assert refused.partition("Set ")[2] == ways
    span = f"from {start:%Y-%m-%d} to now" if start else "in one year (no startTimestamp is given)"
    assert span in refused


def test_a_start_at_this_moment_is_not_in_the_future() -> None:
    assert judge_budget(contract("1h", 4, NOW), NOW) == BudgetVerdict(0)
    later = judge_budget(contract("1h", 4, NOW + timedelta(seconds=1)), NOW)
    assert (later.cells, later.warning is None) == (0, False)


def test_a_start_in_the_future_is_a_warning(disk: Disk) -> None:
    disk.tables(
        "tables: [{id: a, dataset: b, table: c, timestampColumn: d, targetTable: E, "
        "sync: {startTimestamp: 2027-01-01}}]"
    )
    (warning,) = disk.load().warnings
    assert "nothing is synced before 2027-01-01" in str(warning)


@given(
    window=st.sampled_from(WINDOW_MINUTES),
    slices=st.integers(1, 64),
    days=st.one_of(st.none(), st.integers(1, 20_000)),
    minutes=st.integers(0, 1439),
)
@settings(deadline=None, max_examples=200)
def test_each_way_out_really_fits(window: int, slices: int, days: int | None, minutes: int) -> None:
    now = NOW + timedelta(minutes=minutes)
    start = None if days is None else now - timedelta(days=days)
    refused = judge_budget(contract(timedelta(minutes=window), slices, start), now).refused
    if refused is None:
        return
    ways = re.split(", or ", refused.partition("Set ")[2])
    assert ways != [""]
    for way in ways:
        said = dict(re.findall(r"([\w.]+): (\S+)", way))
        changed = contract(
            said.get("window", timedelta(minutes=window)),
            int(said.get("slices", slices)),
            said.get("sync.startTimestamp", start or now - JUDGED_SPAN),
        )
        verdict = judge_budget(changed, now)
        assert verdict.refused is None
        assert verdict.warning is None or verdict.cells == 80_000


def test_a_table_over_the_budget_is_refused_when_it_is_loaded(disk: Disk) -> None:
    told = disk.tables(
        "tables: [{id: a, dataset: b, table: c, timestampColumn: d, targetTable: E, window: 5m}]"
    ).refusal()
    assert "the limit is 100,000" in told

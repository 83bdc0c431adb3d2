"""Cells and Dagster partitions are the same thing under two names."""

from datetime import timedelta, timezone
from typing import Any

import pytest
from dagster import MultiPartitionKey, MultiPartitionsDefinition, TimeWindowPartitionsDefinition

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.defs.partitions import (
    build_partitions,
    cells_of,
    newest_closed,
    range_tags,
    window_cron,
)
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window, windows_between
from bq_harper_assets_tests.stores.small_tables import utc

START = utc(2026, 11, 15)


def contract(**declared: Any) -> TableContract:
    known = {
        "id": "ships",
        "dataset": "sea",
        "table": "ships",
        "timestamp_column": "ts",
        "target_table": "Ships",
    }
    return TableContract.model_validate(known | declared)


def time_dimension(partitions: MultiPartitionsDefinition) -> TimeWindowPartitionsDefinition:
    found = partitions.get_partitions_def_for_dimension("time_window")
    assert isinstance(found, TimeWindowPartitionsDefinition)
    return found


@pytest.mark.promise("O1")
def test_there_are_two_dimensions_and_the_time_comes_first() -> None:
    partitions = build_partitions(contract(slices=3), START)
    assert [each.name for each in partitions.partitions_defs] == ["time_window", "worker_slice"]
    assert partitions.primary_dimension.name == "time_window"
    assert partitions.get_first_partition_key() == "2026-11-15T00:00|s00"
    slices = partitions.get_partitions_def_for_dimension("worker_slice").get_partition_keys()
    assert slices == ["s00", "s01", "s02"]


@pytest.mark.promise("O1")
@pytest.mark.parametrize("window", ["5m", "15m", "30m", "60m", "1d"])
def test_every_cell_has_a_partition_and_every_partition_a_cell(window: str) -> None:
    table = contract(window=window, slices=2, live=False)
    partitions = build_partitions(table, START)
    until = START + timedelta(days=2)
    expected = [
        Cell(each, number)
        for each in windows_between(START, until, table.window)
        for number in range(2)
    ]
    keys = partitions.get_partition_keys(current_time=until)
    assert sorted(cells_of(table, keys)) == expected
    assert sorted(keys) == sorted(cell.key for cell in expected)
    for key in keys[:3]:
        assert isinstance(key, MultiPartitionKey)
        shown = time_dimension(partitions).time_window_for_partition_key(
            key.keys_by_dimension["time_window"]
        )
        [cell] = cells_of(table, [key])
        assert (shown.start, shown.end) == (cell.window.start, cell.window.end)


def test_a_window_is_a_partition_once_it_has_ended() -> None:
    partitions = time_dimension(build_partitions(contract(window="15m", live=False), START))
    ended = partitions.get_partition_keys(current_time=START + timedelta(minutes=30))
    assert ended == ["2026-11-15T00:00", "2026-11-15T00:15"]
    just_before = START + timedelta(minutes=29, seconds=59)
    assert partitions.get_partition_keys(current_time=just_before) == ["2026-11-15T00:00"]


def test_the_open_window_of_a_live_table_is_a_partition_too() -> None:
    partitions = time_dimension(build_partitions(contract(window="15m"), START))
    begun = partitions.get_partition_keys(current_time=START + timedelta(minutes=16))
    assert begun == ["2026-11-15T00:00", "2026-11-15T00:15"]


def test_the_tags_of_a_range_name_its_corners() -> None:
    table = contract()
    windows = list(windows_between(START, START + timedelta(hours=3), table.window))
    cells = [Cell(window, number) for number in (2, 1) for window in reversed(windows)]
    assert range_tags(cells) == {
        "dagster/asset_partition_range_start": "2026-11-15T00:00|s01",
        "dagster/asset_partition_range_end": "2026-11-15T02:00|s02",
    }


@pytest.mark.parametrize("key", ["2026-11-15T00:07|s00", "2026-11-15T00:00|2", "2026-11-15T00:00"])
def test_a_key_that_names_no_cell_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=key.partition("|")[0]):
        cells_of(contract(), [key])


@pytest.mark.parametrize(
    ("window", "cron"),
    [("5m", "*/5 * * * *"), ("30m", "*/30 * * * *"), ("60m", "0 * * * *"), ("1d", "0 0 * * *")],
)
def test_a_window_ends_when_cron_says(window: str, cron: str) -> None:
    assert window_cron(contract(window=window).window) == cron


@pytest.mark.parametrize(
    ("hour", "minute", "second", "newest"),
    [(10, 1, 0, 9), (10, 0, 59, 8), (10, 0, 0, 8), (10, 59, 59, 9), (11, 1, 0, 10)],
)
def test_a_window_is_closed_once_no_row_should_arrive_any_more(
    hour: int, minute: int, second: int, newest: int
) -> None:
    table = contract(window="60m", safetyLag="60s")
    now = utc(2026, 11, 15, hour, minute, second).astimezone(timezone(timedelta(hours=2)))
    start = START + timedelta(hours=newest)
    assert newest_closed(table, now) == Window(start, start + timedelta(hours=1))

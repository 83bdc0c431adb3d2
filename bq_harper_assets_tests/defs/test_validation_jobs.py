"""Which cells a validation looks at: those its run names, the newest ones, or those of a day."""

from datetime import date, timedelta

import pytest
from dagster import RunRequest, build_schedule_context
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.defs.deep_proofs import (
    build_deep_proof_job,
    build_deep_proof_schedule,
    due_on,
)
from bq_harper_assets.defs.partitions import RANGE_END, RANGE_START
from bq_harper_assets.defs.validation_jobs import named_cells, newest_cells
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.windows import windows_between
from bq_harper_assets_tests.defs.test_partitions import contract
from bq_harper_assets_tests.stores.small_tables import utc

START = utc(2026, 11, 1)


def test_a_run_names_one_partition_or_the_corners_of_many_or_none() -> None:
    table = contract(slices=3)
    one = named_cells(table, {"dagster/partition": "2026-11-16T12:00|s01"})
    assert [cell.key for cell in one or ()] == ["2026-11-16T12:00|s01"]
    corners = {RANGE_START: "2026-11-16T23:00|s01", RANGE_END: "2026-11-17T00:00|s02"}
    assert [cell.key for cell in named_cells(table, corners) or ()] == [
        "2026-11-16T23:00|s01",
        "2026-11-16T23:00|s02",
        "2026-11-17T00:00|s01",
        "2026-11-17T00:00|s02",
    ]
    assert named_cells(table, {"other": "tag"}) is None
    with pytest.raises(ValueError, match="does not name a cell"):
        named_cells(table, {"dagster/partition": "2026-11-16T12:00|s1"})


def test_the_newest_closed_windows_are_taken_and_none_before_the_table_begins() -> None:
    table = contract(slices=2)
    newest = newest_cells(table, START, 2, utc(2026, 11, 16, 13, 0))  # 12:00 is not settled yet
    assert [cell.key for cell in newest] == [
        "2026-11-16T10:00|s00",
        "2026-11-16T10:00|s01",
        "2026-11-16T11:00|s00",
        "2026-11-16T11:00|s01",
    ]
    assert len(newest_cells(table, START, 24, utc(2026, 11, 1, 3, 30))) == 6


@pytest.mark.promise("M13")
@settings(deadline=None)
@given(
    window=st.sampled_from(["15m", "60m", "1d"]),
    days=st.integers(1, 20),
    scrub=st.integers(1, 9),
    today=st.dates(date(2026, 11, 1), date(2027, 2, 1)),
)
def test_each_cell_has_its_turn_once_within_the_scrub_period(
    window: str, days: int, scrub: int, today: date
) -> None:
    table = contract(window=window, scrub=f"{scrub}d", slices=2)
    cells = [
        Cell(each, part)
        for each in windows_between(START, START + timedelta(days=days), table.window)
        for part in range(2)
    ]
    turns = [due_on(table, cells, today + timedelta(days=ahead)) for ahead in range(scrub)]
    proved = [cell for stretches in turns for cells in stretches for cell in cells]
    assert sorted(proved) == cells
    for stretches in turns:
        for stretch in stretches:
            span = stretch[-1].window.end - stretch[0].window.start
            assert len(stretch) == 2 * (span // table.window)
        assert len(stretches) <= days // scrub + 1  # none is torn
    assert due_on(table, cells, today) == due_on(table, cells, today + timedelta(days=scrub))


def test_a_night_asks_for_the_turn_of_its_day() -> None:
    table = contract()
    schedule = build_deep_proof_schedule(table, build_deep_proof_job(table))
    request = schedule(build_schedule_context(scheduled_execution_time=utc(2026, 11, 16, 3, 30)))
    assert isinstance(request, RunRequest)
    assert request.run_key == "2026-11-16"
    assert request.run_config == {"ops": {"prove_deeply_ships": {"config": {"day": "2026-11-16"}}}}

"""The key of a cell leads back to it, and to no other."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.cells.cell import Cell, slice_key
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.sync.cells.test_window import HOUR, LENGTHS, MOMENTS


@pytest.mark.promise("H1")
@settings(deadline=None)
@given(MOMENTS, LENGTHS, st.integers(0, 120))
def test_a_cells_key_leads_back_to_it(moment: datetime, length: timedelta, number: int) -> None:
    window = next(windows_between(moment, moment + length, length))
    cell = Cell(window, number)
    assert Cell.parse(cell.key, length) == cell
    assert cell.key.endswith(f"|{slice_key(number)}")


@pytest.mark.parametrize(
    "key",
    [
        "2026-11-16T07:30|s02",
        "2026-11-16T07:00|02",
        "2026-11-16T07:00|s2",
        "2026-11-16T07:00|s002",
        "2026-11-16T07:00",
        "x|s01",
        "26-11-16T07:00|s01",
    ],
)
def test_a_key_that_names_no_cell_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"is not the start|does not name|does not match"):
        Cell.parse(key, HOUR)

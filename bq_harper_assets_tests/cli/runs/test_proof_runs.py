"""A long range is proved in parts."""

from bq_harper_assets.cli.runs import proof_runs
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.temporary_project import HOUR, hours_ago


def test_a_long_range_is_proved_in_parts_of_whole_windows_and_in_the_order_of_time() -> None:
    start = hours_ago(200)
    cells = [
        Cell(window, number)
        for window in windows_between(start, start + 200 * HOUR, HOUR)
        for number in range(3)
    ]
    parts = list(proof_runs.windows_at_once(cells, proof_runs.WINDOWS_AT_ONCE))
    assert [len(part) for part in parts] == [96 * 3, 96 * 3, 8 * 3]
    assert [cell for part in parts for cell in part] == cells
    assert list(proof_runs.windows_at_once([], 2)) == []

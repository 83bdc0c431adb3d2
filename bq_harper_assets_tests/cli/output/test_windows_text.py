"""Many windows in few words."""

from bq_harper_assets.cli.output.windows_text import some_windows
from bq_harper_assets.sync.cells.window import windows_between
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.temporary_project import HOUR

WINDOWS = list(windows_between(utc(2026, 1, 1), utc(2026, 3, 1), HOUR))


def test_the_first_five_are_named_in_the_order_of_time_and_each_once() -> None:
    one, two = WINDOWS[:2]
    assert some_windows([two, two]) == "1 window, 2026-01-01T01:00"
    assert some_windows([two, one]) == "2 windows, 2026-01-01T00:00, 2026-01-01T01:00"
    five = ", ".join(f"2026-01-01T0{hour}:00" for hour in range(5))
    assert some_windows(WINDOWS[:5]) == f"5 windows, {five}"
    assert some_windows(reversed(WINDOWS[:6])) == f"6 windows, {five} and 1 more"
    assert some_windows(WINDOWS) == f"1,416 windows, {five} and 1,411 more"

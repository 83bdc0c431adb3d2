"""When a row is due in Harper."""

from bq_harper_assets.validation.progress.due_rows import due_since, due_until
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.validation.progress.test_progress_check_by_facts import declared


def test_a_live_table_owes_a_row_after_the_safety_lag_and_others_when_its_window_closed() -> None:
    row, now = utc(2026, 1, 5, 10, 20), utc(2026, 1, 5, 12, 0, 30)
    live, closed = declared(window="60m"), declared(window="60m", live=False)
    assert due_since(live, row) == utc(2026, 1, 5, 10, 21)
    assert due_since(closed, row) == utc(2026, 1, 5, 11, 1)
    assert due_until(live, now) == utc(2026, 1, 5, 11, 59, 30)
    assert due_until(closed, now) == utc(2026, 1, 5, 11)

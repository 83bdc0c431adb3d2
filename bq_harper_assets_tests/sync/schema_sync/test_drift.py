"""What a look leaves to the next one can be read by every release that comes after."""

from datetime import timedelta

from bq_harper_assets.sync.schema_sync.drift import LastLook
from bq_harper_assets_tests.stores.small_tables import utc


def test_what_a_release_with_growing_waits_has_left_is_due_five_minutes_after_its_look() -> None:
    note = (
        '{"at": "2026-11-17T10:00:00Z", "next_look": "2026-11-17T10:30:00Z",'
        ' "pace": {"wait": "PT30M", "stable": 9}, "tables": ["orders"],'
        ' "problems": {"orders": "it is gone"}}'
    )
    last = LastLook.model_validate_json(note)
    assert last.next_look == utc(2026, 11, 17, 10) + timedelta(minutes=5)
    assert (last.tables, last.problems) == (("orders",), {"orders": "it is gone"})
    assert LastLook.model_validate_json(last.model_dump_json()) == last

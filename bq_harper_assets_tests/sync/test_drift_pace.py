"""The waits between looks for changed schemas, over a simulated day."""

from datetime import timedelta

import pytest

from bq_harper_assets.sync.schema_sync.drift_pace import Pace

MINUTE = timedelta(minutes=1)
BACK_OFF = [5, 5, 5, 7.5, 11.25, 16.875, 25.3125, 30, 30]


def _waits(pace: Pace, looks: int, changed_at: frozenset[int] = frozenset()) -> list[float]:
    """Before each look, in minutes; the state goes through a cursor, as in a daemon's restart."""
    waits = []
    for number in range(1, looks + 1):
        waits.append(pace.wait / MINUTE)
        pace = Pace.model_validate_json(pace.after(changed=number in changed_at).model_dump_json())
    return waits


@pytest.mark.promise("D7")
def test_the_waits_of_a_day_without_a_change() -> None:
    waits = _waits(Pace(), 53)
    assert waits == BACK_OFF + [30] * 44
    assert 23 * 60 < sum(waits) < 25 * 60


@pytest.mark.promise("D7")
@pytest.mark.parametrize("at", [1, 3, 5, 9])
def test_a_change_brings_the_short_waits_back_and_counts_anew(at: int) -> None:
    waits = _waits(Pace(), at + 9, frozenset({at}))
    assert waits == BACK_OFF[:at] + BACK_OFF

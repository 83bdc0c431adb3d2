"""How soon a table is looked at again."""

from datetime import timedelta

import pytest

from bq_harper_assets.contract.table import Sync
from bq_harper_assets.sync.phases import Phase
from bq_harper_assets.sync.revisit.pace import (
    poll_delay,
    tick_seconds,
)


@pytest.mark.promise("H6")
@pytest.mark.parametrize(
    ("phase", "interval", "seconds"),
    [
        (Phase.STEADY, 30_000, 30),
        (Phase.CATCHUP, 30_000, 10),
        (Phase.INITIAL, 30_000, 10),
        (Phase.CATCHUP, 12_000, 5),
        (Phase.CATCHUP, 3_000, 3),
        (Phase.STEADY, 3_000, 3),
    ],
)
def test_a_table_that_is_behind_is_looked_at_sooner(
    phase: Phase, interval: int, seconds: int
) -> None:
    assert poll_delay(phase, Sync(poll_interval=interval)) == timedelta(seconds=seconds)


def test_a_sensor_ticks_as_often_as_its_hastiest_phase_but_no_more_than_dagster() -> None:
    assert tick_seconds(Sync(poll_interval=30_000)) == 10
    assert tick_seconds(Sync(poll_interval=1_000)) == 5

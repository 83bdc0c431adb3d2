"""Phases: what a lag means, to the second."""

from datetime import timedelta

import pytest

from bq_harper_assets.contract.table import Sync
from bq_harper_assets.sync.phases import phase_of, rows_per_request


@pytest.mark.promise("H5")
@pytest.mark.parametrize(
    ("lag", "phase", "rows"),
    [
        (1e9, "initial", 10_000),
        (3601, "initial", 10_000),
        (3600.000001, "initial", 10_000),
        (3600, "catchup", 1_000),
        (601, "catchup", 1_000),
        (600, "steady", 500),
        (599, "steady", 500),
        (0, "steady", 500),
        (-5, "steady", 500),
    ],
)
def test_a_lag_of_a_threshold_belongs_to_the_calmer_phase(
    lag: float, phase: str, rows: int
) -> None:
    found = phase_of(timedelta(seconds=lag), Sync())
    assert found == phase
    assert rows_per_request(found, Sync()) == rows


def test_thresholds_and_batch_sizes_are_those_of_the_contract() -> None:
    sync = Sync(catchup_threshold=10, steady_threshold=5, catchup_batch_size=7)
    assert phase_of(timedelta(seconds=11), sync) == "initial"
    assert rows_per_request(phase_of(timedelta(seconds=10), sync), sync) == 7

"""Vessels: distinct, valid, and the same ones whatever the size of the fleet."""

import numpy as np
import pytest

from bq_harper_assets.maritime.fleet import build_fleet
from bq_harper_assets.maritime.vessel_types import FLAGS, VESSEL_TYPES


@pytest.mark.promise("K2")
def test_a_hundred_thousand_vessels_are_all_distinct() -> None:
    fleet = build_fleet(7, 100_000)
    for texts in (fleet.mmsi, fleet.imo, fleet.name, fleet.callsign):
        assert len(set(texts.to_pylist())) == 100_000


def test_mmsi_begins_with_the_flags_digits_and_imo_ends_with_its_check_digit() -> None:
    fleet = build_fleet(5, 2_000)
    for flag, mmsi, imo in zip(
        fleet.flag, fleet.mmsi.to_pylist(), fleet.imo.to_pylist(), strict=True
    ):
        assert len(mmsi) == 9
        assert mmsi.startswith(FLAGS[flag].mid)
        assert len(imo) == 7
        assert sum(int(d) * w for d, w in zip(imo, range(7, 1, -1), strict=False)) % 10 == int(
            imo[6]
        )


def test_types_and_flags_have_their_shares_and_sizes_their_limits() -> None:
    fleet = build_fleet(5, 50_000)
    shares = np.bincount(fleet.kind) / fleet.size
    np.testing.assert_allclose(shares, [t.share for t in VESSEL_TYPES], atol=0.01)
    assert len(np.unique(fleet.flag)) == len(FLAGS) == 12
    assert sum(flag.share for flag in FLAGS) == 100
    for number, kind in enumerate(VESSEL_TYPES):
        length, draft = fleet.length[fleet.kind == number], fleet.draft[fleet.kind == number]
        assert kind.length_m[0] <= length.min() <= length.max() <= kind.length_m[1]
        assert kind.draft_m[0] <= draft.min() <= draft.max() <= kind.draft_m[1]


def test_a_vessel_is_the_same_in_a_larger_fleet_and_another_with_another_seed() -> None:
    small, large, other = build_fleet(7, 100), build_fleet(7, 1_000), build_fleet(8, 100)
    assert small.mmsi == large.mmsi.slice(0, 100)
    assert small.name == large.name.slice(0, 100)
    assert (small.kind == large.kind[:100]).all()
    assert len(set(small.mmsi.to_pylist()) & set(other.mmsi.to_pylist())) < 5

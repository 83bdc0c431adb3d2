"""Randomness without state: the same number for the same question, whatever was asked before."""

import numpy as np
import pytest

from bq_harper_assets.maritime.chance import bits, choice, shuffle, uniform, uniform_between

MANY = np.arange(50_000)


def test_a_number_is_that_of_its_index_whatever_it_is_asked_with() -> None:
    together = bits(7, "speed", MANY[:100])
    alone = [int(bits(7, "speed", index)[0]) for index in reversed(range(100))]
    assert together.tolist() == alone[::-1]
    table = bits(7, "speed", MANY[:3, None], MANY[None, :4])
    assert table.shape == (3, 4)
    assert int(table[2, 1]) == int(bits(7, "speed", 2, 1)[0])


def test_seed_purpose_and_the_order_of_indices_each_make_other_numbers() -> None:
    asked = [(7, "speed", 1, 2), (8, "speed", 1, 2), (7, "course", 1, 2), (7, "speed", 2, 1)]
    assert len({int(bits(seed, purpose, *at)[0]) for seed, purpose, *at in asked}) == len(asked)
    assert len(set(bits(7, "speed", np.arange(-50, 50)).tolist())) == 100


def test_no_release_changes_a_number() -> None:
    assert bits(7, "speed", [0, 1]).tolist() == [13140378700545052438, 1514149369321911264]


def test_numbers_are_spread_evenly_within_their_bounds() -> None:
    drawn = uniform_between(-3.0, 5.0, 7, "course", MANY)
    assert drawn.min() >= -3.0
    assert drawn.max() < 5.0
    counts = np.histogram(uniform(7, "course", MANY), bins=20, range=(0, 1))[0]
    assert abs(counts - len(MANY) / 20).max() < 5 * (len(MANY) / 20) ** 0.5


def test_each_is_chosen_as_often_as_its_weight_says_and_never_without_one() -> None:
    counts = np.bincount(choice([1, 0, 3], 7, "port", MANY), minlength=3)
    assert counts[1] == 0
    assert counts[2] / counts[0] == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 97, 1000])
def test_a_shuffle_gives_every_number_once(size: int) -> None:
    found = shuffle(np.arange(size), size, 7, "names")
    assert sorted(found.tolist()) == list(range(size))
    if size >= 10:
        assert found.tolist() != list(range(size))

"""Mixing to 64 bits: numpy's way over many numbers is Python's way over one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.sync.arrays.arrow_memory import offsets_of
from bq_harper_assets.sync.arrays.splitmix import (
    hash_bytes,
    mix,
    mix_one,
    position_keys,
    positions_in_runs,
    seed_of,
    sums_of_runs,
)
from bq_harper_assets_tests.sync import reference_hash

NUMBERS = st.lists(st.integers(0, 2**64 - 1), max_size=8)
LANE = st.sampled_from([0, 1])
# Around the word of 8 bytes, and around the 64 up to which strings are hashed column by column.
LENGTHS = st.sampled_from([0, 1, 7, 8, 9, 63, 64, 65, 71, 72, 73, 200])
STRINGS = st.lists(
    LENGTHS.flatmap(lambda size: st.binary(min_size=size, max_size=size)), max_size=6
)


@settings(deadline=None)
@given(NUMBERS)
def test_many_numbers_are_mixed_as_each_alone(numbers: list[int]) -> None:
    mixed = mix(np.array(numbers, np.uint64)).tolist()
    assert mixed == [reference_hash.mix(number) for number in numbers]
    assert mixed == [mix_one(number) for number in numbers]


@settings(deadline=None)
@given(STRINGS, LANE)
def test_strings_of_every_length_are_hashed_together_as_each_alone(
    strings: list[bytes], lane: int
) -> None:
    lengths = np.array([len(each) for each in strings], np.int64)
    data = np.frombuffer(b"".join(strings), np.uint8)
    found = hash_bytes(offsets_of(lengths)[:-1], lengths, data, lane).tolist()
    assert found == [reference_hash.value_of(each, lane) for each in strings]


def test_strings_that_differ_only_in_zero_bytes_at_the_end_have_other_hashes() -> None:
    strings = [b"", b"\0", b"\0" * 8, b"\0" * 9, b"a", b"a\0"]
    assert len({_alone(each) for each in strings}) == len(strings)


def test_the_two_lanes_share_neither_seeds_nor_positions() -> None:
    assert seed_of("name", 0) != seed_of("name", 1)
    positions = np.arange(100, dtype=np.int64)
    first, second = (position_keys(positions, lane).tolist() for lane in (0, 1))
    assert len({*first, *second}) == 200
    assert first == [reference_hash.key(position, 0) for position in range(100)]


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=6))
def test_runs_are_summed_modulo_2_to_the_64_and_counted_from_nought(runs: list[list[int]]) -> None:
    lengths = np.array([len(run) for run in runs], np.int64)
    flat = np.array([number for run in runs for number in run], np.uint64)
    assert sums_of_runs(flat, offsets_of(lengths)).tolist() == [sum(run) % 2**64 for run in runs]
    counted = [position for run in runs for position in range(len(run))]
    assert positions_in_runs(lengths).tolist() == counted


def _alone(text: bytes) -> int:
    starts, lengths = np.array([0], np.int64), np.array([len(text)], np.int64)
    return int(hash_bytes(starts, lengths, np.frombuffer(text, np.uint8), 0)[0])

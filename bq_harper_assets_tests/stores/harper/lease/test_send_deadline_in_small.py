"""Until when a task may send, by both of its clocks and the copies that Harper has."""

from collections.abc import Callable
from typing import Any

import pytest

from bq_harper_assets.stores.harper.lease.send_deadline import Deadline, mirror_id
from bq_harper_assets.stores.harper.mirror.tables import MIRRORED_LEASES
from bq_harper_assets.sync.errors import LeaseRanOut
from bq_harper_assets.sync.protocols import LeaseTerms
from bq_harper_assets_tests.stores.harper_clients import Clock
from bq_harper_assets_tests.stores.memory_harper import MemoryHarper

START = 1000.0


class Two:
    """A task's two clocks, and what it asks before each send."""

    def __init__(self, memory: MemoryHarper, **terms: Any) -> None:
        self.wall, self.monotonic = Clock(), Clock()
        self.monotonic.now = 5.0
        given = {"epochs": {2: 7, 3: 8}, "deadline": START + 100, "max_clock_skew_s": 3.0} | terms
        lease = LeaseTerms(target="Ships", effect_within_s=45, **given)
        self.ask: Callable[[], None] = Deadline(lease, memory.client(), self.wall, self.monotonic)

    def passes(self, seconds: float) -> None:
        self.wall.now += seconds
        self.monotonic.now += seconds


def show(memory: MemoryHarper, **by_slice: tuple[int, float]) -> None:
    rows = [
        {"id": f"Ships|{name}", "epoch": epoch, "deadline": deadline}
        for name, (epoch, deadline) in by_slice.items()
    ]
    memory.make(MIRRORED_LEASES.name, *rows)


def is_late(two: Two) -> bool:
    try:
        two.ask()
    except LeaseRanOut:
        return True
    return False


def test_the_row_of_a_slice_has_two_digits() -> None:
    assert (mirror_id("Ships", 2), mirror_id("Ships", 12)) == ("Ships|s02", "Ships|s12")


def test_a_task_in_time_asks_harper_nothing(memory: MemoryHarper) -> None:
    two = Two(memory)
    two.passes(51.9)
    two.ask()
    assert memory.asked == []


def test_a_request_whose_effect_and_skew_end_with_the_lease_is_too_late(
    memory: MemoryHarper,
) -> None:
    show(memory)
    two = Two(memory)
    two.passes(52)
    with pytest.raises(LeaseRanOut, match="the lease of Ships could not be renewed in time"):
        two.ask()


@pytest.mark.parametrize("clock", ["wall", "monotonic"])
def test_either_clock_alone_ends_the_time(memory: MemoryHarper, clock: str) -> None:
    show(memory)
    two = Two(memory)
    getattr(two, clock).now += 60
    assert is_late(two)


def test_the_earliest_renewal_of_all_slices_counts_and_is_remembered(memory: MemoryHarper) -> None:
    show(memory, s02=(7, START + 200), s03=(8, START + 150))
    two = Two(memory)
    two.passes(60)
    two.ask()
    two.passes(41.9)  # 48.1 s are left of the earlier one
    two.ask()
    assert len(memory.asked) == 1
    two.passes(0.2)
    assert is_late(two)


@pytest.mark.parametrize("copied", [START + 100, START + 100.01])
def test_a_copy_that_nobody_renewed_brings_no_time_after_the_wall_clock_was_set_back(
    memory: MemoryHarper, copied: float
) -> None:
    show(memory, s02=(7, copied), s03=(8, copied))
    two = Two(memory)
    two.passes(60)
    two.wall.now -= 3600
    assert is_late(two)
    assert is_late(two)


def test_a_renewal_lasts_as_long_as_it_moved_the_deadline_on(memory: MemoryHarper) -> None:
    """The clock is set back after it: by the wall clock alone it would last an hour longer."""
    show(memory, s02=(7, START + 130), s03=(8, START + 130))
    two = Two(memory)
    two.passes(60)
    two.wall.now -= 3600
    two.ask()
    two.passes(21.9)
    two.ask()
    two.passes(0.2)
    assert is_late(two)


def test_after_the_wall_clock_was_set_forward_a_renewal_by_the_new_time_counts(
    memory: MemoryHarper,
) -> None:
    show(memory, s02=(7, START + 3700), s03=(8, START + 3700))
    two = Two(memory)
    two.passes(10)
    two.wall.now += 3600
    two.ask()  # 90 s are left
    two.wall.now -= 3600
    two.passes(41.9)
    two.ask()
    two.passes(0.2)
    assert is_late(two)


def test_a_renewal_counts_by_the_monotonic_clock_too(memory: MemoryHarper) -> None:
    show(memory, s02=(7, START + 200), s03=(8, START + 200))
    two = Two(memory)
    two.passes(60)
    two.ask()
    two.monotonic.now += 100
    assert is_late(two)


@pytest.mark.parametrize(
    "copies",
    [
        {"s02": (7, START + 500)},
        {"s02": (7, START + 500), "s03": (9, START + 500)},
        {"s02": (7, START + 500), "s04": (8, START + 500)},
    ],
    ids=["one has no row", "another epoch", "another slice"],
)
def test_a_renewal_counts_only_if_all_slices_still_have_ones_own_epochs(
    memory: MemoryHarper, copies: dict[str, tuple[int, float]]
) -> None:
    show(memory, **copies)
    two = Two(memory)
    two.passes(60)
    assert is_late(two)


def test_an_earlier_deadline_in_harper_takes_nothing_away(memory: MemoryHarper) -> None:
    show(memory, s02=(7, START), s03=(8, START))
    two = Two(memory)
    two.passes(52)
    assert is_late(two)
    two.passes(-1)
    two.ask()

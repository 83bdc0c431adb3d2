"""What names a cell, what a route's facts say of its cut, and what leases together allow."""

from dataclasses import replace

import pytest

from bq_harper_assets.ledger.records import (
    CellKey,
    CellResult,
    CutBy,
    Lease,
    Leases,
    LedgerRoute,
    Mode,
    Wanted,
)
from bq_harper_assets_tests.ledger.sample import FACTS, HOUR, START, cell


def test_a_window_is_named_by_its_microseconds_and_shown_by_its_start() -> None:
    window = CellKey.of_window(START, START + HOUR, 3)
    assert (window.start, window.end) == (1_794_787_200_000_000, 1_794_790_800_000_000)
    assert (window.window_start, window.window_end) == (START, START + HOUR)
    assert str(window) == "2026-11-16T00:00|s03"
    assert not window.is_key_range


def test_a_key_range_is_named_and_shown_by_its_number() -> None:
    named = CellKey.of_range(7, 3)
    assert (named.start, named.end, named.slice) == (7, 8, 3)
    assert str(named) == "range 7|s03"
    assert named.is_key_range


def test_cells_are_in_the_order_of_their_ranges_and_then_of_their_slices() -> None:
    cells = [cell(1, 0), cell(0, 1), cell(0, 0)]
    assert sorted(cells) == [cell(0, 0), cell(0, 1), cell(1, 0)]


@pytest.mark.parametrize(
    ("window", "cut", "step"), [(HOUR, CutBy.TIME, 3_600_000_000), (None, CutBy.KEY, 1)]
)
def test_a_route_without_a_window_is_cut_by_key(window: object, cut: CutBy, step: int) -> None:
    facts = replace(FACTS, window=window)
    assert (facts.cut, facts.step) == (cut, step)


def test_an_owner_may_rely_on_its_leases_until_the_first_of_them_ends() -> None:
    held = tuple(Lease(part, 1, START, deadline) for part, deadline in ((0, 60.0), (1, 50.0)))
    assert Leases(LedgerRoute(1, 1, FACTS), "ann", held).deadline == 50.0


def test_leases_name_their_slices_and_the_epoch_of_each() -> None:
    held = tuple(Lease(part, 7 + part, START, 60.0) for part in (0, 3))
    leases = Leases(LedgerRoute(1, 2, FACTS), "ann", held)
    assert (leases.slices, leases.epochs) == ((0, 3), {0: 7, 3: 10})
    assert leases.route.name == FACTS.name


def test_a_batch_covers_its_range_to_the_end_unless_it_says_up_to_where() -> None:
    whole = Wanted(cell=cell(), mode=Mode.COPY, fingerprint="fp")
    assert whole.end == START + HOUR
    assert replace(whole, upto=START + HOUR / 2).end == START + HOUR / 2


def test_what_a_batch_does_not_count_it_has_not_done() -> None:
    done = CellResult(read=3, written=1, unchanged=2, quarantined=0, digest="digest")
    others = (done.deleted, done.moved, done.flagged, done.kept, done.held, done.bytes)
    assert (*others, done.seconds, done.rejections) == (0, 0, 0, 0, 0, 0, 0.0, ())

"""Where a spot check looks."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.ledger.status import CellCommit, CellRecord
from bq_harper_assets.validation.sample import Place, picks, places_of
from bq_harper_assets_tests.stores.small_tables import utc

NOON = utc(2026, 1, 5, 12)
HOUR = timedelta(hours=1)


def place(hour: int, rows: int) -> Place:
    """An hour after noon."""
    return Place(NOON + hour * HOUR, NOON + (hour + 1) * HOUR, NOON, 1, ((0, 1),), rows)


@settings(deadline=None)
@given(
    rows=st.lists(st.integers(0, 10**9), min_size=1, max_size=30),
    size=st.integers(1, 100),
    seed=st.integers(0, 2**32),
    by_rows=st.booleans(),
)
def test_every_instant_lies_in_its_place_and_a_seed_repeats_the_sample(
    rows: list[int], size: int, seed: int, by_rows: bool
) -> None:
    places = [place(hour, n) for hour, n in enumerate(rows)]
    found = picks(places, size, Random(seed), by_rows=by_rows)
    assert found == picks(places, size, Random(seed), by_rows=by_rows)
    assert len(found) == (0 if by_rows and not sum(rows) else size)
    for pick in found:
        assert pick.place.start <= pick.instant <= pick.place.until
        assert pick.place.rows or not by_rows


def test_instants_are_spread_evenly_over_rows_or_over_places() -> None:
    places = [place(0, 90), place(1, 10), place(2, 0)]
    by_rows = [pick.place for pick in picks(places, 100, Random(1), by_rows=True)]
    assert [by_rows.count(each) for each in places] == [90, 10, 0]
    by_places = [pick.place for pick in picks(places, 99, Random(1), by_rows=False)]
    assert [by_places.count(each) for each in places] == [33, 33, 33]
    inside = [pick.instant for pick in picks([place(0, 5)], 60, Random(1), by_rows=True)]
    assert [instant.minute for instant in inside] == list(range(60))


@pytest.mark.parametrize(
    ("state", "marks", "kept"),
    [
        (CellState.SYNCED, 0, True),
        (CellState.SYNCED, 1, False),
        (CellState.PLANNED, 0, False),
        (CellState.FAILED, 0, False),
    ],
)
def test_only_cells_that_hold_what_their_commit_says_are_looked_at(
    state: CellState, marks: int, kept: bool
) -> None:
    def cell(part: int, t_hours: int) -> CellRecord:
        commit = CellCommit(
            part + 7, NOON + t_hours * HOUR, 1, 5, "digest", "fp", NOON, NOON + HOUR, True
        )
        return CellRecord(CellKey(NOON, NOON + HOUR, part), state, commit, marks)

    found = places_of([cell(0, 1), cell(1, 1), cell(2, 2)])
    expected = [(((0, 7), (1, 8)), 10), (((2, 9),), 5)]
    assert [(each.batches, each.rows) for each in found] == (expected if kept else [])

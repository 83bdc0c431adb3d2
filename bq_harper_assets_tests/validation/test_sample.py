"""Where a spot check looks."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.validation.spot.sampled_cells import (
    CommittedCell,
    instants,
    of_some,
    places_of,
)
from bq_harper_assets_tests.stores.small_tables import utc

NOON = utc(2026, 1, 5, 12)
HOUR = timedelta(hours=1)


def place(hour: int, rows: int, part: int = 0) -> CommittedCell:
    """An hour after noon."""
    return CommittedCell(
        start=NOON + hour * HOUR,
        until=NOON + (hour + 1) * HOUR,
        slice=part,
        t=NOON,
        schema_version=1,
        batch=1,
        rows=rows,
    )


@settings(deadline=None)
@given(
    rows=st.lists(st.integers(0, 10**9), min_size=1, max_size=30),
    size=st.integers(1, 100),
    seed=st.integers(0, 2**32),
    by_rows=st.booleans(),
)
def test_so_many_rows_are_drawn_and_a_seed_repeats_the_sample(
    rows: list[int], size: int, seed: int, by_rows: bool
) -> None:
    places = [place(hour, n) for hour, n in enumerate(rows)]
    found = of_some(places, size, Random(seed), by_rows=by_rows)
    assert found == of_some(places, size, Random(seed), by_rows=by_rows)
    assert sum(found.values()) == (0 if by_rows and not sum(rows) else size)
    assert all(each.rows for each in found) or not by_rows


def test_rows_are_spread_evenly_over_rows_or_over_places() -> None:
    places = [place(0, 90), place(1, 10), place(2, 0)]
    assert of_some(places, 100, Random(1), by_rows=True) == {places[0]: 90, places[1]: 10}
    assert of_some(places, 99, Random(1), by_rows=False) == dict.fromkeys(places, 33)
    found = instants(NOON, NOON + HOUR, 60, Random(1))
    assert [instant.minute for instant in found] == list(range(60))


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
            batch=part + 7,
            t=NOON + t_hours * HOUR,
            schema_version=1,
            rows=5,
            digest="digest",
            fingerprint="fp",
            committed_at=NOON,
            upto=NOON + HOUR,
            is_closed=True,
        )
        return CellRecord(
            cell=CellKey(NOON, NOON + HOUR, part), state=state, commit=commit, marks=marks
        )

    found = places_of([cell(0, 1), cell(1, 2)])
    expected = [(0, 7, NOON + HOUR), (1, 8, NOON + 2 * HOUR)]
    assert [(each.slice, each.batch, each.t) for each in found] == (expected if kept else [])

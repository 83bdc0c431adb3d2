"""Where a spot check looks."""

from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.spot.sampled_cells import commits_of, instants, of_some
from bq_harper_assets.validation.spot.source_sample import MOST_SAMPLED_ROWS, read_together
from bq_harper_assets_tests.stores.small_tables import utc

NOON = utc(2026, 1, 5, 12)
HOUR = timedelta(hours=1)


def commit(rows: int, batch: int = 1, t: datetime = NOON) -> CellCommit:
    """A commit of so many rows."""
    return CellCommit(
        batch=batch,
        t=t,
        schema_version=1,
        rows=rows,
        digest="digest",
        fingerprint="fp",
        committed_at=NOON,
        upto=NOON + HOUR,
        is_closed=True,
    )


def commits(*rows: int) -> dict[Cell, CellCommit]:
    """An hour for each, from noon on."""
    starts = (NOON + hour * HOUR for hour in range(len(rows)))
    return {Cell(Window(at, at + HOUR), 0): commit(n) for at, n in zip(starts, rows, strict=True)}


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
    cells = commits(*rows)
    found = of_some(cells, size, Random(seed), by_rows=by_rows)
    assert found == of_some(cells, size, Random(seed), by_rows=by_rows)
    assert sum(found.values()) == (0 if by_rows and not sum(rows) else size)
    assert all(cells[each].rows for each in found) or not by_rows


def test_rows_are_spread_evenly_over_rows_or_over_cells() -> None:
    cells = commits(90, 10, 0)
    first, second, _ = cells
    assert of_some(cells, 100, Random(1), by_rows=True) == {first: 90, second: 10}
    assert of_some(cells, 99, Random(1), by_rows=False) == dict.fromkeys(cells, 33)
    found = instants(NOON, NOON + HOUR, 60, Random(1))
    assert [instant.minute for instant in found] == list(range(60))


class NearlyOne(Random):
    """Chance that rounds up to the very end."""

    def random(self) -> float:
        return 1 - 2**-53


def test_no_row_is_drawn_where_there_is_none_and_none_beyond_the_last() -> None:
    assert of_some({}, 5, Random(1), by_rows=True) == {}
    assert of_some({}, 5, Random(1), by_rows=False) == {}
    assert of_some(commits(0, 0), 5, Random(1), by_rows=True) == {}
    cells = commits(5, 5)
    assert sum(of_some(cells, 10, NearlyOne(), by_rows=True).values()) == 10


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
    of_parts = {part: commit(5, part + 7, NOON + part * HOUR) for part in range(2)}
    found = commits_of(
        CellRecord(
            cell=CellKey.of_window(NOON, NOON + HOUR, part), state=state, commit=each, marks=marks
        )
        for part, each in of_parts.items()
    )
    expected = {Cell(Window(NOON, NOON + HOUR), part): each for part, each in of_parts.items()}
    assert found == (expected if kept else {})


def test_times_are_read_together_as_long_as_their_rows_fit_into_memory() -> None:
    times = [NOON + n * HOUR for n in range(5)]
    half = MOST_SAMPLED_ROWS // 2
    counts = dict(zip(times, (half, 0, half, 1, 3 * half), strict=True))
    assert list(read_together(counts)) == [[times[0], times[2]], [times[3]], [times[4]]]
    many = {NOON + n * timedelta(seconds=1): 1 for n in range(1_001)}
    assert [len(some) for some in read_together(many)] == [1_000, 1]

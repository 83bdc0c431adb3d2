"""How much may go at once: more than a thousand rows and more than half is too much."""

from datetime import timedelta

import pytest

from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.guard import Loss, refusals
from bq_harper_assets.sync.windows import Window
from bq_harper_assets_tests.stores.small_tables import utc

START = utc(2026, 1, 5)
HOUR = timedelta(hours=1)
CELLS = [Cell(Window(START + n * HOUR, START + (n + 1) * HOUR), 0) for n in range(5)]


@pytest.mark.parametrize(
    ("deletes", "held", "refused"),
    [
        (1_000, 1_000, False),
        (1_001, 1_001, True),
        (1_001, 2_002, False),
        (1_001, 2_001, True),
        (0, 0, False),
        (50_000, 100_001, False),
    ],
)
def test_a_cell_is_refused_beyond_both_bounds(deletes: int, held: int, refused: bool) -> None:
    assert bool(refusals("t", {CELLS[0]: Loss(deletes, held)})) is refused


def test_small_losses_that_are_a_great_one_together_are_refused_together() -> None:
    losses = {cell: Loss(300, 300) for cell in CELLS[:4]} | {CELLS[4]: Loss(0, 100)}
    refused = refusals("orders", losses)
    assert set(refused) == set(CELLS[:4])
    assert "the run would lose 1,200 of the 1,300 rows" in refused[CELLS[0]]
    assert refused[CELLS[0]].endswith(
        "bqh sync orders --from 2026-01-05T00:00 --to 2026-01-05T01:00 --allow-deletes"
    )


def test_a_cell_that_loses_much_does_not_stop_one_that_loses_little() -> None:
    losses = {CELLS[0]: Loss(2_000, 2_000), CELLS[1]: Loss(5, 9_000)}
    assert set(refusals("orders", losses)) == {CELLS[0]}

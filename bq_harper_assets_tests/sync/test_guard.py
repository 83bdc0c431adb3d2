"""How much may go at once: more than a thousand rows and more than half is too much."""

from datetime import timedelta

import pytest

from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.guard import Earlier, Loss, refusals
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


SINCE = START + 30 * HOUR
EARLIER = Earlier({cell: Loss(240, 240) for cell in CELLS[:4]}, SINCE)


def test_what_earlier_runs_took_out_counts_as_if_it_were_this_run() -> None:
    assert refusals("orders", {CELLS[4]: Loss(40, 40)}, EARLIER) == {}
    refused = refusals("orders", {CELLS[4]: Loss(41, 60)}, EARLIER)
    assert refused == {
        CELLS[4]: "the run would lose 41 of the 60 rows that Harper holds of its 1 cells; with the "
        "960 rows that earlier runs took out since 2026-01-06 06:00:00 UTC it would be 1,001 of "
        "1,020. Nothing of it was written. If these rows are really gone from BigQuery: "
        "bqh sync orders --from 2026-01-05T04:00 --to 2026-01-05T05:00 --allow-deletes"
    }


def test_a_run_that_loses_less_than_half_of_all_is_not_held_up_by_earlier_ones() -> None:
    assert refusals("orders", {CELLS[4]: Loss(100, 1_200)}, EARLIER) == {}


def test_only_cells_that_lose_rows_now_are_refused_for_what_was_lost_before() -> None:
    losses = {CELLS[3]: Loss(0, 10), CELLS[4]: Loss(300, 300)}
    assert set(refusals("orders", losses, EARLIER)) == {CELLS[4]}


def test_a_cell_that_is_emptied_bit_by_bit_is_refused_whatever_its_neighbours_hold() -> None:
    earlier = Earlier({CELLS[0]: Loss(700, 1_500)}, SINCE)
    losses = {CELLS[0]: Loss(600, 800), CELLS[1]: Loss(5, 90_000)}
    refused = refusals("orders", losses, earlier)
    assert set(refused) == {CELLS[0]}
    assert (
        "would lose 600 of the 800 rows that Harper holds of it; with the 700 rows"
        in (refused[CELLS[0]])
    )
    assert "it would be 1,300 of 1,500" in refused[CELLS[0]]


def test_a_great_loss_is_one_also_where_earlier_cells_held_much() -> None:
    earlier = Earlier({CELLS[0]: Loss(5, 90_000)}, SINCE)
    refused = refusals("orders", {cell: Loss(300, 300) for cell in CELLS[1:]}, earlier)
    assert set(refused) == set(CELLS[1:])
    assert "the run would lose 1,200 of the 1,200 rows" in refused[CELLS[1]]
    assert "earlier" not in refused[CELLS[1]]

"""How much may go at once: more than a thousand rows and more than half is too much."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bq_harper_assets.ledger.questions.losses import CellLoss
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.key_range import KeyCut, KeyOrder
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.plan.delete_guard import (
    REMEMBERED,
    Loss,
    Refused,
    command_that_allows,
    refusals,
)
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
    assert "the run would lose 1,200 of the 1,300 rows" in refused[CELLS[0]].why
    for each in refused.values():  # one command for all of them, not one for each
        assert each.why.endswith(
            "bqh sync orders --from 2026-01-05T00:00 --to 2026-01-05T04:00 --allow-deletes"
        )


def test_a_cell_that_loses_much_does_not_stop_one_that_loses_little() -> None:
    losses = {CELLS[0]: Loss(2_000, 2_000), CELLS[1]: Loss(5, 9_000)}
    assert set(refusals("orders", losses)) == {CELLS[0]}


def test_a_cell_that_is_refused_for_itself_is_no_reason_to_refuse_others() -> None:
    losses = {CELLS[0]: Loss(2_000, 2_000), CELLS[1]: Loss(1, 100)}
    assert set(refusals("orders", losses)) == {CELLS[0]}
    losses = {CELLS[0]: Loss(2_000, 2_000)} | {cell: Loss(400, 400) for cell in CELLS[1:4]}
    refused = refusals("orders", losses)
    assert set(refused) == set(CELLS[:4])
    assert "the run would lose 1,200 of the 1,200 rows" in refused[CELLS[1]].why
    assert "of its 3 cells" in refused[CELLS[1]].why


def test_the_command_for_an_open_window_names_no_end_because_that_would_leave_it_out() -> None:
    losses = {cell: Loss(2_000, 2_000) for cell in CELLS[:2]}
    last = CELLS[1].window.end
    for open_after, ends in ((last, f" --to {last:%FT%H:%M}"), (last - HOUR / 2, "")):
        for each in refusals("orders", losses, open_after=open_after).values():
            command = f"bqh sync orders --from 2026-01-05T00:00{ends} --allow-deletes"
            assert each.why.endswith(command)


SINCE = START + 30 * HOUR


def lost(cell: Cell, rows: int, held: int, *, is_committed: bool = True) -> CellLoss:
    """As the ledger has it of a cell that got no other rows."""
    until = SINCE + HOUR
    return CellLoss(
        cell=cell_key(cell),
        lost=rows,
        held=held,
        rows=held - rows,
        since=SINCE,
        until=until,
        is_committed=is_committed,
    )


EARLIER = [lost(cell, 240, 240) for cell in CELLS[:4]]


def test_what_earlier_runs_took_out_counts_as_if_it_were_this_run() -> None:
    assert refusals("orders", {CELLS[4]: Loss(40, 40)}, EARLIER) == {}
    refused = refusals("orders", {CELLS[4]: Loss(41, 60)}, EARLIER)
    forgotten = SINCE + HOUR + REMEMBERED
    assert refused == {
        CELLS[4]: Refused(
            "the run would lose 41 of the 60 rows that the target holds of its 1 cells; with the "
            "960 rows that earlier runs took out since 2026-01-06 06:00:00 UTC it would be 1,001 of"
            " 1,020. Nothing of it was written. Those are forgotten at 2026-01-07 07:00:00 UTC, and"
            " revisit_orders asks for it again then. If these rows are really gone from the source:"
            " bqh sync orders --from 2026-01-05T04:00 --to 2026-01-05T05:00 --allow-deletes",
            forgotten,
        )
    }


@pytest.mark.parametrize(
    ("losses", "is_forgotten"),
    [
        ({CELLS[4]: Loss(41, 60)}, True),
        ({CELLS[4]: Loss(1_001, 1_001)}, False),
        ({CELLS[3]: Loss(600, 600), CELLS[4]: Loss(600, 600)}, False),
    ],
)
def test_only_a_refusal_for_what_others_took_out_ends_when_that_is_forgotten(
    losses: dict[Cell, Loss], is_forgotten: bool
) -> None:
    found = refusals("orders", losses, [lost(cell, 480, 480) for cell in CELLS[:2]])
    found |= refusals("orders", losses, EARLIER[:3])
    assert set(found) == set(losses)
    assert {each.until is not None for each in found.values()} == {is_forgotten}


def test_what_a_cell_gains_is_no_loss() -> None:
    """A keyless row that is updated goes under one id and comes under another."""
    assert refusals("orders", {CELLS[0]: Loss(1_200, 1_200, gained=1_200)}) == {}
    assert refusals("orders", {CELLS[0]: Loss(2_200, 2_200, gained=1_200)}) == {}
    [refused] = refusals("orders", {CELLS[0]: Loss(2_201, 2_001, gained=1_200)}).values()
    assert "would lose 1,001 of the 2,001 rows" in refused.why


def test_what_a_cell_gains_makes_good_no_loss_of_another() -> None:
    losses = {CELLS[0]: Loss(1_200, 1_200), CELLS[1]: Loss(0, 0, gained=5_000)}
    assert set(refusals("orders", losses)) == {CELLS[0]}


def test_a_run_that_loses_less_than_half_of_all_is_not_held_up_by_earlier_ones() -> None:
    assert refusals("orders", {CELLS[4]: Loss(100, 1_200)}, EARLIER) == {}


def test_only_cells_that_lose_rows_now_are_refused_for_what_was_lost_before() -> None:
    losses = {CELLS[3]: Loss(0, 10), CELLS[4]: Loss(300, 300)}
    assert set(refusals("orders", losses, EARLIER)) == {CELLS[4]}


def test_a_cell_that_is_emptied_bit_by_bit_is_refused_whatever_its_neighbours_hold() -> None:
    earlier = [lost(CELLS[0], 700, 1_500)]
    losses = {CELLS[0]: Loss(600, 800), CELLS[1]: Loss(5, 90_000)}
    refused = refusals("orders", losses, earlier)
    assert set(refused) == {CELLS[0]}
    assert "would lose 600 of the 800 rows that the target holds of it; with the 700 rows" in (
        refused[CELLS[0]].why
    )
    assert "it would be 1,300 of 1,500" in refused[CELLS[0]].why


def test_a_great_loss_is_one_also_where_earlier_cells_held_much() -> None:
    earlier = [lost(CELLS[0], 5, 90_000)]
    refused = refusals("orders", {cell: Loss(300, 300) for cell in CELLS[1:]}, earlier)
    assert set(refused) == set(CELLS[1:])
    assert "the run would lose 1,200 of the 1,200 rows" in refused[CELLS[1]].why
    assert "earlier" not in refused[CELLS[1]].why


def test_what_failed_runs_were_about_to_take_out_counts_and_is_told_as_such() -> None:
    others = [lost(cell, 240, 240, is_committed=False) for cell in CELLS[:4]]
    [refused] = refusals("orders", {CELLS[4]: Loss(41, 60)}, others).values()
    assert (
        "; with the 960 rows that other runs took out, or were about to take out, since 2026-01-06 "
        "06:00:00 UTC it would be 1,001 of 1,020. Nothing of it was written." in refused.why
    )


@pytest.mark.parametrize("gone", [0, 700, 1_500])
def test_a_retry_counts_each_row_once_wherever_the_first_try_failed(gone: int) -> None:
    first = [lost(CELLS[0], 1_500, 4_000, is_committed=False)]
    retry = {CELLS[0]: Loss(1_500 - gone, 4_000 - gone)}
    assert refusals("orders", retry, first) == {}
    half = [lost(CELLS[0], 1_500, 2_999, is_committed=False)]
    retry = {CELLS[0]: Loss(1_500 - gone, 2_999 - gone)}
    assert bool(refusals("orders", retry, half)) is (gone < 1_500)  # which is all that is left


def test_a_cell_that_a_failed_run_has_half_emptied_does_not_lose_the_rest() -> None:
    others = [lost(CELLS[0], 900, 1_800, is_committed=False)]
    assert refusals("orders", {CELLS[0]: Loss(101, 1_800)}, others) == {}  # they are back
    [refused] = refusals("orders", {CELLS[0]: Loss(101, 900)}, others).values()
    assert (
        "would lose 101 of the 900 rows that the target holds of it; with the 900 rows"
        in refused.why
    )
    assert "it would be 1,001 of 1,800" in refused.why


def test_rows_that_others_took_the_place_of_are_not_missed() -> None:
    same = CellLoss(
        cell=cell_key(CELLS[0]),
        lost=2_700,
        held=900,
        rows=900,
        since=SINCE,
        until=SINCE,
        is_committed=True,
    )
    assert refusals("orders", {CELLS[1]: Loss(900, 900)}, [same]) == {}
    fewer = CellLoss(
        cell=cell_key(CELLS[0]),
        lost=2_700,
        held=900,
        rows=799,
        since=SINCE,
        until=SINCE,
        is_committed=True,
    )
    [refused] = refusals("orders", {CELLS[1]: Loss(900, 900)}, [fewer]).values()
    assert "with the 101 rows that earlier runs took out" in refused.why


def test_a_cell_loses_what_it_does_not_gain_and_never_less_than_nothing() -> None:
    assert [Loss(5, 9, gained=gained).lost for gained in (0, 4, 5, 6)] == [5, 1, 0, 0]
    assert Loss(5, 9).lost == 5


def test_the_command_spans_all_cells_in_whatever_order_they_come() -> None:
    command = "bqh sync t --from 2026-01-05T00:00 --to 2026-01-05T03:00 --allow-deletes"
    for cells in (CELLS[:3], CELLS[2::-1], [CELLS[1], CELLS[2], CELLS[0]]):
        assert command_that_allows("t", cells) == command


def test_cells_that_are_cut_by_key_are_guarded_and_allowed_all_at_once() -> None:
    cells = [Cell(each, 0) for each in KeyCut(("100", "200"), KeyOrder.NUMBERS).ranges]
    losses = {cells[0]: Loss(600, 600), cells[1]: Loss(100, 100)}
    assert refusals("orders", losses) == {}
    refused = refusals("orders", losses, [lost(cells[0], 600, 1_200), lost(cells[2], 401, 401)])
    assert set(refused) == {cells[0], cells[1]}
    for each in refused.values():
        assert each.why.endswith("really gone from the source: bqh sync orders --allow-deletes")


def test_a_single_row_that_an_earlier_run_took_out_counts() -> None:
    losses = {CELLS[0]: Loss(1_000, 1_000)}
    assert refusals("orders", losses) == {}
    assert set(refusals("orders", losses, [lost(CELLS[1], 1, 1)])) == {CELLS[0]}


def test_a_cell_whose_lost_rows_are_all_back_counts_for_nothing() -> None:
    """If its many rows counted, the others' loss would be a small share of all."""
    back = replace(lost(CELLS[0], 700, 90_000), rows=90_000, since=START)
    others = [back, lost(CELLS[2], 101, 101)]
    [refused] = refusals("orders", {CELLS[1]: Loss(900, 900)}, others).values()
    assert "since 2026-01-06 06:00:00 UTC it would be 1,001 of 1,001" in refused.why


def test_losses_of_several_runs_are_told_from_the_first_and_forgotten_after_the_last() -> None:
    first = lost(CELLS[0], 500, 500)
    last = replace(
        lost(CELLS[1], 500, 500, is_committed=False), since=SINCE + HOUR, until=SINCE + 5 * HOUR
    )
    for others in ([first, last], [last, first]):
        [refused] = refusals("orders", {CELLS[4]: Loss(41, 60)}, others).values()
        assert refused.until == SINCE + 5 * HOUR + timedelta(hours=24)
        told = "other runs took out, or were about to take out, since 2026-01-06 06:00:00 UTC"
        assert told in refused.why

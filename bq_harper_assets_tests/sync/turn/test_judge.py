"""When a cell is done, and when its vanished rows must stay: both by counts alone."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from bq_harper_assets.ledger.records import Batch, LedgerRoute, Mode, Rejection, RouteFacts
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.grid import Grid
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.sync.identity.digest import Digest
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.sync.plan.cell_work import CellWork, Vanished
from bq_harper_assets.sync.plan.delete_guard import Loss
from bq_harper_assets.sync.protocols import DeletePolicy
from bq_harper_assets.sync.spark.receipts import Failure, Receipt, RejectedRow, Tally
from bq_harper_assets.sync.turn.judge import (
    CellOutcome,
    Removed,
    judge_cells,
    spared_from_deletes,
    with_moved_rows_together,
)
from bq_harper_assets.sync.write.write_job import WriteResult
from bq_harper_assets_tests.stores.small_tables import utc

HOUR = timedelta(hours=1)
START = utc(2026, 1, 5)
WINDOW, NEXT = Window(START, START + HOUR), Window(START + HOUR, START + 2 * HOUR)
LAST = Window(START + 2 * HOUR, START + 3 * HOUR)
AWAY = Failure("Harper is away", True)
ONE_ID = np.array([7], np.uint64)


def work(
    slice_: int = 0,
    *,
    rows: int = 0,
    window: Window = WINDOW,
    slices: int = 1,
    since: timedelta | None = None,
    mode: Mode = Mode.COPY,
    **more: Any,
) -> CellWork:
    facts = RouteFacts(
        name="t",
        table="t",
        source="s",
        target="T",
        timestamp_column="ts",
        key=(),
        window=HOUR,
        slices=slices,
    )
    cell = Cell(window, slice_)
    batch = Batch(
        route=LedgerRoute(1, 1, facts),
        seq=slice_ + 1,
        cell=cell_key(cell),
        mode=mode,
        t=window.end,
        rank=1,
        schema_version=1,
        epoch=1,
        upto=window.end,
        since=window.start + since if since else None,
    )
    return CellWork(cell=cell, batch=batch, rows=rows, **more)


def receipt(
    tallies: Mapping[int, Tally], failure: Failure | None = None, rejected: tuple[int, ...] = ()
) -> Receipt:
    refusals = tuple(RejectedRow(place, f"r{place}", "too large", "{}") for place in rejected)
    return Receipt(
        tallies=dict(tallies),
        refusals=refusals,
        requests=1,
        retries=0,
        unanswered_at=None,
        failure=failure,
    )


def moved(*receipts: Receipt, **counts: Mapping[int, int]) -> WriteResult:
    return WriteResult(receipts, **counts)


def judged(
    works: list[CellWork],
    write: WriteResult,
    elsewhere: tuple[WriteResult, ...] = (),
    policy: DeletePolicy = "mirror",
    failed: Mapping[Cell, str] | None = None,
) -> list[CellOutcome]:
    grid = Grid.of({each.cell: each.part for each in works}, works[0].batch.route.facts.slices)
    removed = Removed(policy, failed or {}, is_transient=False, all_answered=True)
    return judge_cells(works, grid, write, elsewhere, removed, 2.5)


def problems(works: list[CellWork], write: WriteResult, **more: Any) -> list[str | None]:
    return [each.problem for each in judged(works, write, **more)]


def test_a_copied_cell_is_done_if_all_its_rows_are_written_or_rejected() -> None:
    digest = Digest(2, 5, 6)
    write = moved(
        receipt({0: Tally(2, 2, 90, digest)}), receipt({0: Tally(2, 1, 10)}, rejected=(0,))
    )
    [outcome] = judged([work(rows=4)], write)
    assert outcome.problem is None
    result = outcome.result
    assert (result.read, result.written, result.unchanged, result.quarantined) == (4, 3, 0, 1)
    assert (result.bytes, result.seconds, result.digest) == (100, 2.5, str(digest))
    assert result.rejections == (Rejection("r0", "too large", "{}"),)
    assert (result.deleted, result.flagged, result.kept, result.moved, result.held) == (0,) * 5


@pytest.mark.parametrize(("rows", "arrived"), [(3, 2), (1, 2)])
def test_a_window_that_does_not_add_up_to_what_bigquery_counts_is_not_done(
    rows: int, arrived: int
) -> None:
    write = moved(receipt({0: Tally(arrived, arrived)}))
    told = f"the source counts {rows} rows in the range and {arrived} arrived"
    assert problems([work(rows=rows)], write) == [told]
    failed = moved(receipt({0: Tally(arrived, arrived)}, AWAY))
    assert problems([work(rows=rows)], failed) == ["Harper is away"]


def test_a_window_that_adds_up_is_done_although_a_task_failed() -> None:
    write = moved(receipt({0: Tally(2, 2)}), receipt({}, AWAY))
    assert problems([work(rows=2)], write) == [None]


def test_a_window_of_which_a_slice_is_missing_is_done_only_if_no_task_failed() -> None:
    write = {0: Tally(2, 2)}
    assert problems([work(rows=9, slices=2)], moved(receipt(write))) == [None]
    assert problems([work(rows=9, slices=2)], moved(receipt(write, AWAY))) == ["Harper is away"]


def test_a_cell_that_has_nothing_to_write_is_done_although_a_task_failed() -> None:
    there = work(rows=9, slices=2, diff=CellDiff(ids=4, distinct=4, equal=4, read=4))
    assert problems([there], moved(receipt({}, AWAY))) == [None]


def test_both_slices_of_a_window_add_up_together() -> None:
    works = [work(0, rows=5, slices=2), work(1, rows=5, slices=2)]
    assert problems(works, moved(receipt({0: Tally(2, 2), 1: Tally(3, 3)}))) == [None, None]
    told = "the source counts 5 rows in the range and 4 arrived"
    assert problems(works, moved(receipt({0: Tally(2, 2), 1: Tally(2, 2)}))) == [told, told]


def test_windows_add_up_each_by_itself() -> None:
    works = [work(rows=2), work(rows=3, window=NEXT)]
    write = moved(receipt({0: Tally(2, 2), 1: Tally(2, 2)}))
    told = "the source counts 3 rows in the range and 2 arrived"
    assert problems(works, write) == [None, told]


def test_slices_that_cover_different_times_are_not_added_up() -> None:
    works = [work(0, rows=5, slices=2), work(1, rows=1, slices=2, since=HOUR / 2)]
    assert problems(works, moved(receipt({0: Tally(2, 2), 1: Tally(1, 1)}))) == [None, None]


def test_slices_of_a_window_of_which_one_is_refused_are_not_added_up() -> None:
    works = [work(0, rows=5, slices=2, refusal="too many"), work(1, rows=5, slices=2)]
    assert problems(works, moved(receipt({1: Tally(3, 3)}))) == ["too many", None]


def test_rows_that_were_neither_written_nor_rejected_are_found() -> None:
    works = [work(0, rows=5, slices=2)]
    told = "3 rows read, 1 written, 0 there already and 1 refused"
    assert problems(works, moved(receipt({0: Tally(3, 1)}, rejected=(0,)))) == [told]


def test_rows_lost_by_a_failed_task_are_told_as_its_failure() -> None:
    there = CellDiff(ids=4, distinct=4, equal=4, read=5)  # the window adds up, the cell does not
    works = [work(0, rows=5, slices=2, diff=there), work(1, rows=5, slices=2)]
    write = moved(receipt({1: Tally(1, 1)}, AWAY))
    assert problems(works, write) == ["Harper is away", None]


def test_a_cell_whose_rejected_row_may_be_stored_in_an_old_version_is_not_done() -> None:
    """A task deletes old versions last; one that failed has not come so far."""
    works = [work(rows=1), work(rows=1, window=NEXT)]
    write = moved(receipt({0: Tally(1, 0), 1: Tally(1, 1)}, AWAY, rejected=(0,)))
    assert problems(works, write) == ["Harper is away", None]
    write = moved(receipt({0: Tally(1, 0), 1: Tally(1, 1)}, rejected=(0,)))
    assert problems(works, write) == [None, None]


@pytest.mark.parametrize(("sent", "distinct"), [(3, 2), (2, 3)])
def test_rows_with_the_same_id_are_not_done(sent: int, distinct: int) -> None:
    write = moved(receipt({0: Tally(3, 3)}), sent={0: sent}, distinct={0: distinct})
    told = f"{sent} rows have only {distinct} different ids: rows would be lost"
    assert problems([work(rows=3)], write) == [told]
    equal = moved(receipt({0: Tally(3, 3)}), sent={0: 3}, distinct={0: 3})
    assert problems([work(rows=3)], equal) == [None]


def test_rows_with_the_same_id_that_the_comparison_found_are_not_done() -> None:
    same = CellDiff(ids=3, distinct=2, equal=2, read=3, missing=ONE_ID)
    write = moved(receipt({0: Tally(1, 1)}), sent={0: 1}, distinct={0: 1})
    told = "3 rows have only 2 different ids: rows would be lost"
    assert problems([work(rows=3, diff=same)], write) == [told]


@pytest.mark.parametrize("policy", ["mirror", "flag", "keep"])
def test_a_reconciled_cell_counts_what_it_compared(policy: DeletePolicy) -> None:
    diff = CellDiff(
        ids=6, distinct=6, equal=4, held=8, read=6, missing=ONE_ID, digest=Digest(6, 1, 1)
    )
    reconciled = work(
        rows=6,
        diff=diff,
        vanished=Vanished(["a", "b", "c"]),
        destinations={"d": Cell(NEXT, 0)},
        digest_before=Digest(1, 1, 0),
    )
    [outcome] = judged([reconciled], moved(receipt({0: Tally(9, 2)})), policy=policy)
    result = outcome.result
    assert outcome.problem is None
    assert (result.read, result.written, result.unchanged, result.quarantined) == (6, 2, 4, 0)
    assert result.digest == str(Digest(7, 2, 1))
    gone = {"mirror": result.deleted, "flag": result.flagged, "keep": result.kept}
    assert gone == {name: 3 if name == policy else 0 for name in gone}
    assert (result.moved, result.held) == (1, 8)


def test_a_refused_cell_loses_and_moves_nothing() -> None:
    refused = work(
        rows=1,
        diff=CellDiff(missing=ONE_ID, read=1, ids=1, distinct=1),
        vanished=Vanished(["a"]),
        destinations={"d": Cell(NEXT, 0)},
        refusal="would lose all rows",
    )
    [outcome] = judged([refused], moved(receipt({0: Tally(1, 1)})))
    assert outcome.problem == "would lose all rows"
    assert (outcome.result.written, outcome.result.deleted, outcome.result.moved) == (0, 0, 0)


def test_a_cell_whose_deletes_or_moves_failed_is_not_done() -> None:
    moving = work(rows=1, destinations={"d": Cell(NEXT, 0)})
    staying = work(rows=1, window=NEXT)
    write = moved(receipt({0: Tally(1, 1), 1: Tally(1, 1)}))
    elsewhere = (moved(receipt({})), moved(receipt({}, AWAY)))
    assert problems([moving, staying], write, elsewhere=elsewhere) == ["Harper is away", None]
    failed = {moving.cell: "not all deleted"}
    assert problems([moving, staying], write, failed=failed) == ["not all deleted", None]
    assert problems([moving, staying], write, elsewhere=elsewhere[:1]) == [None, None]


def _reconciled(loss: Loss | None, gone: int = 2_000, **more: Any) -> CellWork:
    diff = more.pop("diff", CellDiff(missing=ONE_ID))
    return work(vanished=Vanished(list(range(gone))), diff=diff, loss=loss, **more)


def _spared(
    of: CellWork, write: WriteResult, *, allowed: bool = False, with_grid: bool = True
) -> dict[Cell, str]:
    grid = Grid.of({of.cell: of.part}, 1) if with_grid else None
    return spared_from_deletes([of], grid, write, allowed=allowed)


def test_vanished_rows_stay_if_new_rows_were_not_all_written() -> None:
    told = "its new rows were not all written, so none was deleted: Harper is away"
    losing = _reconciled(Loss(2, 9))
    assert _spared(losing, moved(receipt({}, AWAY))) == {losing.cell: told}
    assert _spared(losing, moved(receipt({}, AWAY)), allowed=True) == {losing.cell: told}
    assert _spared(losing, moved(receipt({}))) == {}


@pytest.mark.parametrize(
    "nothing",
    [
        _reconciled(Loss(2, 9), gone=0),
        _reconciled(Loss(2, 9), diff=CellDiff()),
        _reconciled(Loss(2, 9), refusal="no"),
    ],
)
def test_a_cell_without_deletes_or_without_new_rows_is_not_spared(nothing: CellWork) -> None:
    assert _spared(nothing, moved(receipt({}, AWAY))) == {}


def test_a_turn_that_writes_nothing_spares_nothing() -> None:
    assert _spared(_reconciled(Loss(2, 9)), moved(receipt({}, AWAY)), with_grid=False) == {}


def test_vanished_rows_stay_if_too_few_of_the_rows_that_replace_them_can_be_stored() -> None:
    losing = _reconciled(Loss(2_000, 2_000, gained=1_000))
    one_rejected = moved(receipt({}, rejected=(0,)))
    told = (
        "1 of its new rows cannot be stored, so none was deleted: it would lose 1,001 of the "
        "2,000 rows that the target holds of it"
    )
    assert _spared(losing, one_rejected) == {losing.cell: told}
    assert _spared(losing, one_rejected, allowed=True) == {}
    assert _spared(losing, moved(receipt({}))) == {}
    assert _spared(_reconciled(None), one_rejected) == {}


def test_more_rejected_rows_than_gained_ones_do_not_count_as_a_loss_of_their_own() -> None:
    losing = _reconciled(Loss(1_000, 1_000, gained=0))
    assert _spared(losing, moved(receipt({}, rejected=(0,)))) == {}


def test_every_cell_is_looked_at_also_after_one_that_needs_nothing() -> None:
    idle, losing = _reconciled(Loss(2, 9), gone=0), _reconciled(Loss(2, 9), window=NEXT)
    grid = Grid.of({each.cell: each.part for each in (idle, losing)}, 1)
    spared = spared_from_deletes([idle, losing], grid, moved(receipt({}, AWAY)), allowed=False)
    assert set(spared) == {losing.cell}


@pytest.mark.parametrize(
    ("diff", "refusal", "has_rows"),
    [
        (None, None, True),
        (None, "too many", False),
        (CellDiff(), None, False),
        (CellDiff(ids=1, read=1), None, False),
        (CellDiff(ids=1, read=2), None, True),  # a row that can have no id is rejected
        (CellDiff(missing=ONE_ID), None, True),
        (CellDiff(changed=ONE_ID), None, True),
        (CellDiff(changed=ONE_ID), "too many", False),
    ],
)
def test_which_cells_have_rows_to_write(
    diff: CellDiff | None, refusal: str | None, has_rows: bool
) -> None:
    assert work(diff=diff, refusal=refusal).has_rows_to_write is has_rows


def test_a_part_begins_where_a_top_up_does_and_else_with_the_window() -> None:
    assert work().part.begin == WINDOW.axis_start
    assert work(since=HOUR / 2).part.begin == WINDOW.axis_start + 1_800_000_000
    assert work().part.end == WINDOW.axis_end
    assert (work().is_reconcile, work(mode=Mode.RECONCILE).is_reconcile) == (False, True)
    assert (work().has_equal_rows, work().may_be_stale) == (False, False)


def test_a_cell_with_nothing_to_write_does_not_count_the_rows_of_another() -> None:
    there = work(rows=4, diff=CellDiff(ids=4, distinct=4, equal=4, read=4))
    works = [there, work(rows=2, window=NEXT)]
    assert problems(works, moved(receipt({1: Tally(2, 2)}))) == [None, None]


def test_a_rejected_row_of_a_cell_that_gains_none_does_not_make_its_loss_smaller() -> None:
    losing = _reconciled(Loss(1_001, 1_001, gained=0))
    assert set(_spared(losing, moved(receipt({}, rejected=(0,))))) == {losing.cell}


def moves(*destinations: Window, slice_: int = 0, **more: Any) -> CellWork:
    cells = {f"row {number}": Cell(window, 0) for number, window in enumerate(destinations)}
    return work(slice_, destinations=cells, slices=4, **more)


def together(*pairs: tuple[CellWork, str | None]) -> list[str | None]:
    works = [each for each, _ in pairs]
    outcomes = [replace(judged([each], moved())[0], problem=problem) for each, problem in pairs]
    return [outcome.problem for outcome in with_moved_rows_together(works, outcomes)]


def test_cells_whose_rows_moved_into_one_cell_are_done_together() -> None:
    good, bad = moves(LAST), moves(LAST, window=NEXT)
    assert together((good, None), (bad, "Harper is away")) == [
        "its rows that moved are taken with those of 2026-01-05T01:00|s00, which failed",
        "Harper is away",
    ]
    assert together((good, None), (bad, None)) == [None, None]


def test_a_cell_names_the_first_of_those_that_it_waits_for() -> None:
    good = moves(WINDOW, NEXT)
    others = [
        (moves(window, window=LAST, slice_=n), "no") for n, window in ((2, WINDOW), (1, NEXT))
    ]
    first, *_ = together((good, None), *others)
    assert first is not None
    assert "those of 2026-01-05T02:00|s01" in first
    first, *_ = together((good, None), *reversed(others))
    assert "those of 2026-01-05T02:00|s01" in str(first)


def test_a_cell_waits_for_another_over_a_third() -> None:
    first, second, third = moves(WINDOW), moves(WINDOW, NEXT, slice_=1), moves(NEXT, slice_=2)
    problems = together((first, None), (second, None), (third, "no"))
    assert [bool(problem) for problem in problems] == [True, True, True]


def test_a_cell_does_not_wait_for_one_whose_rows_went_elsewhere_or_nowhere() -> None:
    good = moves(WINDOW)
    assert together((good, None), (moves(NEXT), "no")) == [None, "no"]
    assert together((good, None), (work(), "no")) == [None, "no"]
    refused = moves(WINDOW, refusal="too many")
    assert together((good, None), (refused, "too many")) == [None, "too many"]

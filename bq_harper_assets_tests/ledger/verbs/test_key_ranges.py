"""A route that is cut by key: its ranges are recorded once, and its cells are their numbers."""

from dataclasses import replace

import pytest

from bq_harper_assets.ledger.errors import LedgerConflict, PlanRefused, TableChanged
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import (
    CellKey,
    CellState,
    Intent,
    KeyRangeRecord,
    LedgerRoute,
    Mark,
    Mode,
)
from bq_harper_assets.ledger.verbs.proofs import Judged
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    START,
    TTL,
    T,
    cell,
    commit_cell,
    copy,
    result,
)

BY_KEY = replace(FACTS, name="calls", table="calls", target="Calls", window=None, slices=2)
BOUNDS = ("b", "\x00\\", "ß")


@pytest.fixture
def route(ledger: Ledger) -> LedgerRoute:
    """A route that is cut by key, with schema version 1 and no ranges yet."""
    registered = ledger.register_route(BY_KEY)
    ledger.record_schema(registered, {"columns": ["id"]}, 0)
    return registered


def test_ranges_lie_between_bounds_and_are_open_at_both_ends(
    ledger: Ledger, route: LedgerRoute
) -> None:
    assert ledger.key_ranges(route) == ()
    made = ledger.cut_by_key(route, BOUNDS)
    assert made == (
        KeyRangeRecord(0, None, "b"),
        KeyRangeRecord(1, "b", "\x00\\"),
        KeyRangeRecord(2, "\x00\\", "ß"),
        KeyRangeRecord(3, "ß", None),
    )
    assert ledger.key_ranges(route) == made
    assert ledger.register_route(BY_KEY) == route
    assert ledger.audit(route)[0].subject == "4 key ranges"


def test_without_a_bound_there_is_one_range(ledger: Ledger, route: LedgerRoute) -> None:
    assert ledger.cut_by_key(route, []) == (KeyRangeRecord(0, None, None),)


def test_ranges_stay_as_they_were_recorded(ledger: Ledger, route: LedgerRoute) -> None:
    made = ledger.cut_by_key(route, BOUNDS)
    assert ledger.cut_by_key(route, BOUNDS) == made
    for others in ([], BOUNDS[:2], [*BOUNDS, "z"]):
        with pytest.raises(TableChanged, match=r"calls was cut into 4 key ranges.*of its own"):
            ledger.cut_by_key(route, others)
    assert ledger.key_ranges(route) == made
    with pytest.raises(LedgerConflict, match="name a bound twice"):
        ledger.cut_by_key(route, ["b", "b"])


def test_a_route_that_is_cut_by_time_has_no_key_ranges(ledger: Ledger, table: LedgerRoute) -> None:
    with pytest.raises(LedgerConflict, match="is cut by time and has no key ranges"):
        ledger.cut_by_key(table, BOUNDS)


def test_ranges_are_cut_anew_only_if_the_route_is_declared_anew(
    ledger: Ledger, route: LedgerRoute
) -> None:
    ledger.cut_by_key(route, BOUNDS)
    anew = ledger.register_route(replace(BY_KEY, key=("number",)))
    assert ledger.key_ranges(anew) == ()
    assert ledger.cut_by_key(anew, ["5"]) == (
        KeyRangeRecord(0, None, "5"),
        KeyRangeRecord(1, "5", None),
    )


@pytest.mark.parametrize(
    "wrong", [CellKey.of_range(4, 0), CellKey.of_range(-1, 0), CellKey(0, 2, 0), cell()]
)
def test_only_recorded_ranges_are_cells(ledger: Ledger, route: LedgerRoute, wrong: CellKey) -> None:
    ledger.cut_by_key(route, BOUNDS)
    leases = ledger.acquire(route, [0, 1], "ann", TTL)
    with pytest.raises(PlanRefused, match="is not one of the 4 recorded key ranges"):
        ledger.plan(leases, T, 1, [copy(wrong)], "run")


def test_a_range_is_planned_committed_and_proved_like_a_window(
    ledger: Ledger, route: LedgerRoute
) -> None:
    ledger.cut_by_key(route, BOUNDS)
    leases = ledger.acquire(route, [0, 1], "ann", TTL)
    cells = [CellKey.of_range(number, slice) for number in range(4) for slice in (0, 1)]
    batches = ledger.plan(leases, T, 1, [copy(each) for each in cells], "ann")
    assert [batch.cell for batch in batches] == cells
    assert {batch.mode for batch in batches} == {Mode.COPY}
    [held] = ledger.left_over(route)
    assert held.cells == tuple(cells)
    ledger.commit_cells(leases, [(batch, result()) for batch in batches[1:]])
    ledger.fail_batch(batches[0], "killed")
    failed, *synced = ledger.cells(route, 0, 4)
    assert (failed.cell, failed.state) == (cells[0], CellState.FAILED)
    assert [each.cell for each in synced] == cells[1:]
    assert all(each.is_clean and each.commit and each.commit.is_closed for each in synced)
    assert [each.cell for each in ledger.cells(route, 1, 2)] == cells[2:4]
    assert {batch.cell for batch in ledger.history(route)} == set(cells)

    judged = Judged(
        cell=cells[3], batch=batches[3].seq, status="differs", deep=True, source_changed=False
    )
    ledger.record_proofs(route, [judged])
    assert ledger.cells_judged(route, ["differs"], 9) == (cells[3],)
    (again,) = ledger.plan(leases, T, 1, [copy(cells[3])], "run")
    ledger.intend_deletes(leases, [Intent(again, 2, 10)], allowed=False)
    [loss] = ledger.recent_losses(route, TTL)
    assert (loss.cell, again.mode) == (cells[3], Mode.RECONCILE)
    commit_cell(ledger, leases, again, result())


def test_a_range_is_moved_whole_and_never_marked(ledger: Ledger, route: LedgerRoute) -> None:
    ledger.cut_by_key(route, BOUNDS)
    leases = ledger.acquire(route, [0, 1], "ann", TTL)
    here = CellKey.of_range(1, 0)
    for upto in (START, here.window_start):
        with pytest.raises(PlanRefused, match=r"is not a point of cell range 1\|s00"):
            ledger.plan(leases, T, 1, [replace(copy(here), upto=upto)], "run")
    with pytest.raises(LedgerConflict, match="no row moves to or from range 1"):
        ledger.mark(leases, InstantPosition(T), [Mark(here, here.window_start, "moved")])


def test_more_slices_and_a_comparison_of_all_keep_the_ranges(
    ledger: Ledger, route: LedgerRoute
) -> None:
    made = ledger.cut_by_key(route, ["m"])
    leases = ledger.acquire(route, [0, 1], "ann", TTL)
    for batch in ledger.plan(leases, T, 1, [copy(CellKey.of_range(0, 0))], "run"):
        commit_cell(ledger, leases, batch, result())
    ledger.release(leases)
    route = ledger.change_slices(route, 3)
    assert ledger.key_ranges(route) == made
    touched = [each.cell for each in ledger.cells(route, 0, 2)]
    assert touched == [CellKey.of_range(0, slice) for slice in range(3)]

"""A mark says that a cell may not hold what it was committed with, until a commit makes it good."""

from datetime import timedelta

import pytest

from bq_harper_assets.ledger.errors import LeaseLost, LedgerConflict
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import (
    CellKey,
    CellState,
    Leases,
    LedgerRoute,
    Mark,
    Mode,
    Wanted,
)
from bq_harper_assets_tests.ledger.sample import (
    HOUR,
    START,
    TTL,
    LetTimePass,
    T,
    cell,
    commit_cell,
    copy,
    result,
)

MINUTE = timedelta(minutes=1)
HALF = START + HOUR / 2


@pytest.fixture
def leases(ledger: Ledger, table: LedgerRoute) -> Leases:
    return ledger.acquire(table, [0, 1], "ann", TTL)


def _mark(key: CellKey, minute: int = 0) -> Mark:
    return Mark(key, key.window_start + minute * MINUTE, "row 7 moved")


def _look(ledger: Ledger, leases: Leases, key: CellKey) -> CellRecord:
    (record,) = ledger.cells(leases.route, key.window_start, key.window_end, [key.slice])
    return record


def _sync(ledger: Ledger, leases: Leases, want: Wanted, at: int = 0) -> None:
    """Committed at T plus so many minutes."""
    (batch,) = ledger.plan(leases, T + at * MINUTE, 1, [want], "run")
    commit_cell(ledger, leases, batch, result())


def test_a_marked_cell_is_dirty_until_a_commit_at_the_same_or_a_later_snapshot(
    ledger: Ledger, leases: Leases
) -> None:
    _sync(ledger, leases, copy(cell()))
    assert _look(ledger, leases, cell()).is_clean
    assert ledger.mark(leases, InstantPosition(T + 2 * MINUTE), [_mark(cell())]) == (cell(),)
    record = _look(ledger, leases, cell())
    assert (record.state, record.marks, record.is_clean) == (CellState.SYNCED, 1, False)
    assert ledger.progress(leases.route, START).dirty == 1
    _sync(ledger, leases, copy(cell()), at=1)
    assert _look(ledger, leases, cell()).marks == 1
    _sync(ledger, leases, copy(cell()), at=2)
    assert _look(ledger, leases, cell()).is_clean
    assert ledger.progress(leases.route, START).dirty == 0


def test_a_mark_outlives_a_commit_that_did_not_reach_its_row(
    ledger: Ledger, leases: Leases
) -> None:
    ledger.mark(leases, InstantPosition(T), [_mark(cell(), minute=30)])
    _sync(ledger, leases, Wanted(cell=cell(), mode=Mode.COPY, fingerprint="fp", upto=HALF))
    assert _look(ledger, leases, cell()).marks == 1
    _sync(ledger, leases, Wanted(cell=cell(), mode=Mode.COPY, fingerprint="fp", upto=HALF + MINUTE))
    assert _look(ledger, leases, cell()).is_clean


def test_of_many_marks_of_a_cell_the_one_that_is_hardest_to_clear_counts(
    ledger: Ledger, leases: Leases
) -> None:
    ledger.mark(
        leases, InstantPosition(T), [_mark(cell(), 40), _mark(cell(), 50), _mark(cell(), 10)]
    )
    ledger.mark(leases, InstantPosition(T), [_mark(cell(), 20)])
    assert _look(ledger, leases, cell()).marks == 1
    for minute, marks in ((50, 1), (51, 0)):
        upto = START + minute * MINUTE
        _sync(ledger, leases, Wanted(cell=cell(), mode=Mode.COPY, fingerprint="fp", upto=upto))
        assert _look(ledger, leases, cell()).marks == marks
    ledger.mark(leases, InstantPosition(T), [_mark(cell(), 20)])
    ledger.mark(leases, InstantPosition(T), [_mark(cell(), 55)])
    ledger.mark(leases, InstantPosition(T + MINUTE), [_mark(cell(), 5)])
    assert _look(ledger, leases, cell()).marks == 2
    _sync(
        ledger,
        leases,
        Wanted(cell=cell(), mode=Mode.COPY, fingerprint="fp", upto=START + 52 * MINUTE),
        at=1,
    )
    assert _look(ledger, leases, cell()).marks == 1


def test_a_cell_that_only_a_mark_has_named_is_never_copied(ledger: Ledger, leases: Leases) -> None:
    ledger.mark(leases, InstantPosition(T), [_mark(cell())])
    record = _look(ledger, leases, cell())
    assert (record.state, record.commit, record.marks) == (CellState.TOUCHED, None, 1)
    touched, beside = ledger.plan(leases, T, 1, [copy(cell()), copy(cell(1))], "run")
    assert (touched.mode, beside.mode) == (Mode.RECONCILE, Mode.COPY)
    commit_cell(ledger, leases, touched, result())
    assert _look(ledger, leases, cell()).is_clean


def test_a_mark_leaves_the_marks_of_other_cells_alone(ledger: Ledger, leases: Leases) -> None:
    others = [cell(1), cell(0, slice=1)]
    ledger.mark(leases, InstantPosition(T), [_mark(key) for key in (cell(), *others)])
    _sync(ledger, leases, copy(cell()))
    assert _look(ledger, leases, cell()).is_clean
    assert [_look(ledger, leases, key).marks for key in others] == [1, 1]


def test_a_cell_that_was_committed_at_this_snapshot_holds_the_row_already(
    ledger: Ledger, leases: Leases
) -> None:
    _sync(ledger, leases, Wanted(cell=cell(), mode=Mode.COPY, fingerprint="fp", upto=HALF))

    def mark(minute: int, at: int = 0) -> tuple[CellKey, ...]:
        given = [_mark(cell(), minute), _mark(cell(), 1)]
        return ledger.mark(
            leases, InstantPosition(T + at * MINUTE), given, unless_committed_there=True
        )

    assert mark(29) == ()
    assert _look(ledger, leases, cell()).is_clean
    assert mark(30) == (cell(),)
    _sync(ledger, leases, copy(cell()))
    assert _look(ledger, leases, cell()).is_clean
    assert mark(59) == ()
    assert mark(0, at=1) == (cell(),)
    _sync(ledger, leases, copy(cell(1)))
    # A turn that took the row from elsewhere does not ask what the cell was committed at.
    assert ledger.mark(leases, InstantPosition(T), [_mark(cell(1), 1)]) == (cell(1),)


@pytest.mark.parametrize("ending", ["planned", "failed", "refused"])
def test_a_cell_that_is_not_synced_is_marked_whatever_it_was_committed_at(
    ledger: Ledger, leases: Leases, ending: str
) -> None:
    _sync(ledger, leases, copy(cell()))
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run")
    if ending == "failed":
        ledger.fail_batch(batch, "Harper went away")
    if ending == "refused":
        ledger.refuse_batch(batch, "would delete 2,000 of 2,100 rows")
    assert ledger.mark(
        leases, InstantPosition(T), [_mark(cell())], unless_committed_there=True
    ) == (cell(),)
    assert _look(ledger, leases, cell()).state.value == ending


def test_marking_needs_a_live_lease(
    ledger: Ledger, leases: Leases, let_time_pass: LetTimePass
) -> None:
    let_time_pass(TTL)
    with pytest.raises(LeaseLost, match="cannot mark cells for positions"):
        ledger.mark(leases, InstantPosition(T), [_mark(cell())])
    assert ledger.cells(leases.route, START, START + HOUR) == ()


UNFIT = [
    (_mark(cell(slice=3)), "lease of slice 3 was not taken"),
    (_mark(CellKey.of_window(START, START + HOUR / 2, 0)), "not a window of 1:00:00"),
    (Mark(cell(), START + HOUR, "late"), r"not in cell 2026-11-16T00:00\|s00"),
    (Mark(cell(), START - MINUTE, "early"), r"not in cell 2026-11-16T00:00\|s00"),
]


def test_a_mark_that_no_commit_could_clear_is_refused(ledger: Ledger, leases: Leases) -> None:
    for unfit, why in UNFIT:
        with pytest.raises(LedgerConflict, match=why):
            ledger.mark(leases, InstantPosition(T), [_mark(cell()), unfit])
    assert ledger.mark(leases, InstantPosition(T), []) == ()
    assert ledger.cells(leases.route, START, START + HOUR) == ()


def test_many_marks_are_one_step_with_one_entry_in_the_audit(
    ledger: Ledger, leases: Leases
) -> None:
    given = [
        _mark(cell(hour, slice), minute)
        for hour in range(24)
        for slice in (0, 1)
        for minute in range(60)
    ]
    assert len(ledger.mark(leases, InstantPosition(T), given)) == 48
    assert ledger.progress(leases.route, START).dirty == 48
    (entry,) = ledger.audit(leases.route, kind="mark")
    assert (entry.subject, len(entry.detail["cells"])) == ("48 cells", 20)


def test_marked_cells_are_told_in_their_order_whatever_that_of_the_rows(
    ledger: Ledger, leases: Leases
) -> None:
    keys = [cell(1), cell(0, slice=1), cell(0)]
    minute = timedelta(minutes=1)
    marks = [Mark(key, key.window_start + minute, "a row moved") for key in keys]
    late = Mark(cell(0), cell(0).window_start + 2 * minute, "a row moved")
    assert ledger.mark(leases, InstantPosition(T), [*marks, late]) == (
        cell(0),
        cell(0, slice=1),
        cell(1),
    )

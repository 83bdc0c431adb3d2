"""A window that is still open is committed up to a point, and topped up from there."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bq_harper_assets.ledger.errors import LedgerConflict, PlanRefused
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.questions.status import CellCommit
from bq_harper_assets.ledger.records import (
    Batch,
    CellResult,
    CellState,
    Leases,
    LedgerRoute,
    Mark,
    Mode,
    Rejection,
    Wanted,
)
from bq_harper_assets_tests.ledger.sample import (
    HOUR,
    START,
    TTL,
    T,
    cell,
    commit_cell,
    copy,
    result,
)

MINUTE = timedelta(minutes=1)
BAD = Rejection("7", "not a number", '{"speed": "NaN"}')
WORSE = Rejection(None, "the key is NULL", "{}")


@pytest.fixture
def leases(ledger: Ledger, table: LedgerRoute) -> Leases:
    return ledger.acquire(table, [0, 1, 2, 3], "ann", TTL)


def _minute(minute: int) -> datetime:
    return START + minute * MINUTE


def _plan(
    ledger: Ledger, leases: Leases, upto: int, since: int | None = None, fingerprint: str = "fp"
) -> Batch:
    """Copied if it has no `since`, else topped up from there."""
    wanted = Wanted(
        cell=cell(),
        mode=Mode.COPY if since is None else Mode.TOPUP,
        fingerprint=fingerprint,
        upto=_minute(upto),
        since=None if since is None else _minute(since),
    )
    (batch,) = ledger.plan(leases, T, 1, [wanted], "run")
    return batch


def _newest(ledger: Ledger, leases: Leases) -> CellCommit:
    (record,) = ledger.cells(leases.route, START, START + HOUR)
    assert record.commit is not None
    return record.commit


def test_a_clean_open_cell_is_topped_up_from_where_it_is_held(
    ledger: Ledger, leases: Leases
) -> None:
    first = _plan(ledger, leases, 10)
    assert (first.mode, first.upto, first.since) == (Mode.COPY, _minute(10), None)
    commit_cell(ledger, leases, first, result(10, digest="d1"))
    commit = _newest(ledger, leases)
    assert (commit.upto, commit.is_closed) == (_minute(10), False)
    batch = _plan(ledger, leases, 20, since=10, fingerprint="fp-20")
    assert (batch.mode, batch.upto, batch.since) == (Mode.TOPUP, _minute(20), _minute(10))
    commit_cell(ledger, leases, batch, result(5, digest="d1+d2"))
    commit = _newest(ledger, leases)
    assert (commit.rows, commit.digest, commit.fingerprint) == (15, "d1+d2", "fp-20")
    assert (commit.upto, commit.is_closed) == (_minute(20), False)
    assert [(done.upto, done.since) for done in ledger.history(leases.route)] == [
        (_minute(20), _minute(10)),
        (_minute(10), None),
    ]


def test_a_closed_cell_is_committed_up_to_its_windows_end(ledger: Ledger, leases: Leases) -> None:
    (batch,) = ledger.plan(leases, T, 1, [copy(cell())], "run")
    assert batch.upto == START + HOUR
    commit_cell(ledger, leases, batch, result())
    commit = _newest(ledger, leases)
    assert (commit.upto, commit.is_closed) == (START + HOUR, True)


def test_closing_a_cell_reconciles_it(ledger: Ledger, leases: Leases) -> None:
    commit_cell(ledger, leases, _plan(ledger, leases, 10), result(10))
    batch = _plan(ledger, leases, 60, since=10)
    assert (batch.mode, batch.since) == (Mode.RECONCILE, None)
    commit_cell(ledger, leases, batch, result(12))
    assert (_newest(ledger, leases).rows, _newest(ledger, leases).is_closed) == (12, True)
    assert _plan(ledger, leases, 60, since=60).mode is Mode.RECONCILE


@pytest.mark.parametrize("change", ["mark", "plan", "fail", "refuse", "other since", "nothing"])
def test_an_open_cell_that_may_hold_something_else_is_reconciled(
    ledger: Ledger, leases: Leases, change: str
) -> None:
    commit_cell(ledger, leases, _plan(ledger, leases, 10), result(10))
    if change == "mark":
        ledger.mark(leases, InstantPosition(T), [Mark(cell(), _minute(30), "row 7 moved")])
    if change in ("plan", "fail", "refuse"):
        batch = _plan(ledger, leases, 15, since=10)
        if change == "fail":
            ledger.fail_batch(batch, "Harper went away")
        if change == "refuse":
            ledger.refuse_batch(batch, "would delete 2,000 of 2,100 rows")
    wanted = _plan(ledger, leases, 20, since=9 if change == "other since" else 10)
    assert wanted.mode is (Mode.TOPUP if change == "nothing" else Mode.RECONCILE)


def test_a_top_up_of_a_cell_that_was_never_committed_is_a_reconcile(
    ledger: Ledger, leases: Leases
) -> None:
    assert _plan(ledger, leases, 20, since=10).mode is Mode.RECONCILE


def test_a_cell_is_never_committed_less_far_than_before(ledger: Ledger, leases: Leases) -> None:
    commit_cell(ledger, leases, _plan(ledger, leases, 20), result())
    for _ in range(2):
        with pytest.raises(PlanRefused, match=r"was committed up to 2026-11-16 00:20:00\+00:00"):
            _plan(ledger, leases, 19)
        _plan(ledger, leases, 20)
    for upto in (0, 61):
        with pytest.raises(PlanRefused, match="not a point of cell"):
            _plan(ledger, leases, upto)


def test_a_top_up_adds_to_the_quarantine_and_everything_else_replaces_it(
    ledger: Ledger, leases: Leases
) -> None:
    commit_cell(ledger, leases, _plan(ledger, leases, 10), result(10, BAD, BAD))
    commit_cell(ledger, leases, _plan(ledger, leases, 20, since=10), result(5, WORSE))
    commit_cell(ledger, leases, _plan(ledger, leases, 30, since=20), result(5))
    assert [row.rejection for row in ledger.quarantined(leases.route)] == [BAD, BAD, WORSE]
    assert [row.number for row in ledger.quarantined(leases.route)] == [0, 1, 2]
    commit_cell(ledger, leases, _plan(ledger, leases, 40), result(5, WORSE))
    assert [row.rejection for row in ledger.quarantined(leases.route)] == [WORSE]


def test_a_batch_that_says_more_than_was_planned_is_not_committed(
    ledger: Ledger, leases: Leases
) -> None:
    batch = _plan(ledger, leases, 10)
    for lie in (
        replace(batch, upto=START + HOUR),
        replace(batch, mode=Mode.TOPUP),
        replace(batch, t=T + HOUR),
        replace(batch, rank=batch.rank + 1),
    ):
        with pytest.raises(LedgerConflict, match="was not planned"):
            commit_cell(ledger, leases, lie, result())


def test_a_table_is_synced_into_its_open_window_as_far_as_its_last_slice(
    ledger: Ledger, leases: Leases
) -> None:
    def until() -> float:
        return (ledger.progress(leases.route, START).synced_until - START) / MINUTE

    def sync(hour: int, uptos: list[int]) -> None:
        wanted = [
            Wanted(cell=cell(hour, slice), mode=Mode.COPY, fingerprint="fp", upto=_minute(upto))
            for slice, upto in enumerate(uptos)
        ]
        batches = ledger.plan(leases, T, 1, wanted, "run")
        ledger.commit_cells(leases, [(batch, result()) for batch in batches])

    sync(0, [30, 20, 40])
    assert until() == 0
    sync(0, [30, 20, 40, 50])
    assert until() == 20
    sync(1, [70, 80, 90, 100])
    assert until() == 20
    sync(0, [60, 60, 60, 60])
    assert until() == 70
    sync(1, [120, 120, 120, 110])
    assert until() == 110


def test_a_refused_cell_is_reconciled_by_the_next_plan(ledger: Ledger, leases: Leases) -> None:
    batch = _plan(ledger, leases, 60)
    ledger.refuse_batch(batch, "would delete 2,000 of 2,100 rows")
    (record,) = ledger.cells(leases.route, START, START + HOUR)
    assert (record.state, record.is_clean) == (CellState.REFUSED, False)
    (done,) = ledger.history(leases.route)
    assert (done.state.value, done.error) == ("refused", "would delete 2,000 of 2,100 rows")
    entry = ledger.audit(leases.route)[0]
    assert (entry.kind, entry.subject, entry.outcome) == ("commit", str(cell()), "refused")
    assert ledger.progress(leases.route, START).cells == {CellState.REFUSED: 1}
    with pytest.raises(LedgerConflict, match="is refused already: would delete"):
        commit_cell(ledger, leases, batch, result())
    again = _plan(ledger, leases, 60)
    assert again.mode is Mode.RECONCILE
    commit_cell(ledger, leases, again, result())
    assert ledger.progress(leases.route, START).cells == {CellState.SYNCED: 1}


def test_what_became_of_vanished_rows_is_kept_with_the_batch(
    ledger: Ledger, leases: Leases
) -> None:
    gone = CellResult(
        read=5, written=1, unchanged=4, quarantined=0, digest="d", moved=2, flagged=3, kept=4
    )
    commit_cell(ledger, leases, _plan(ledger, leases, 60), gone)
    (done,) = ledger.history(leases.route)
    assert (done.rows_moved, done.rows_flagged, done.rows_kept) == (2, 3, 4)
    assert _newest(ledger, leases).rows == 5

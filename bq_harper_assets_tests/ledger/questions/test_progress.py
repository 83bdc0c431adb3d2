"""How far a table has come, as a whole and slice by slice."""

from dataclasses import replace
from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import CellState, LedgerRoute, Mark, Rejection
from bq_harper_assets_tests.ledger.questions.test_status import sync
from bq_harper_assets_tests.ledger.sample import (
    FACTS,
    HOUR,
    START,
    TTL,
    T,
    cell,
    commit_cell,
    copy,
    result,
)


def test_a_table_is_synced_up_to_the_first_window_that_lacks_a_slice(
    ledger: Ledger, table: LedgerRoute
) -> None:
    def until() -> float:
        return (ledger.progress(table, START).synced_until - START) / HOUR

    assert until() == 0
    sync(ledger, table, [1, 2, 4], [0, 1, 2, 3])
    assert until() == 0
    sync(ledger, table, [0], [0, 1, 2])
    assert until() == 0
    sync(ledger, table, [0], [3])
    assert until() == 3
    sync(ledger, table, [3], [0, 1, 2, 3])
    assert until() == 5


def test_progress_counts_cells_by_state_and_keeps_what_was_reached(
    ledger: Ledger, table: LedgerRoute
) -> None:
    assert ledger.progress(table, START).newest_t is None
    assert ledger.progress(table, START).newest_commit_at is None
    sync(ledger, table, [0, 1], [0, 1, 2, 3])
    leases = ledger.acquire(table, [0], "ann", TTL)
    later = T + timedelta(minutes=1)
    again, fails, new = ledger.plan(
        leases, later, 1, [copy(cell(0)), copy(cell(1)), copy(cell(2))], "run-2"
    )
    ledger.fail_batch(fails, "Harper went away")
    commit_cell(ledger, leases, new, result(4, Rejection("1", "bad", "{}")))
    progress = ledger.progress(table, START)
    assert progress.cells == {CellState.SYNCED: 7, CellState.PLANNED: 1, CellState.FAILED: 1}
    assert (progress.rows, progress.quarantined, progress.newest_t) == (83, 1, later)
    assert progress.newest_commit_at == ledger.history(table, cell(2))[0].ended_at
    assert progress.synced_until == START + 2 * HOUR
    assert ledger.progress(table, START + 2 * HOUR).cells == {CellState.SYNCED: 1}
    assert again.cell == cell(0)


def test_a_slice_has_come_as_far_as_its_cells_follow_each_other_and_holds_the_rows_of_all(
    ledger: Ledger, table: LedgerRoute
) -> None:
    def come() -> list[tuple[float, int]]:
        found = ledger.checkpoints(table, START)
        assert [point.slice for point in found] == [0, 1, 2, 3]
        return [((point.until - START) / HOUR, point.rows) for point in found]

    assert come() == [(0, 0)] * 4
    sync(ledger, table, [0, 1, 3], [0])
    sync(ledger, table, [0, 1, 2], [1])
    sync(ledger, table, [1], [2])
    assert come() == [(2, 30), (3, 30), (0, 10), (0, 0)]
    leases = ledger.acquire(table, [0, 1, 3], "ann", TTL)
    half = replace(copy(cell(0, 3)), upto=START + HOUR / 2)
    wanted = [copy(cell(2, 0)), copy(cell(1, 1)), half, copy(cell(1, 3))]
    planned, *done = ledger.plan(leases, T, 1, wanted, "run-2")
    ledger.fail_batch(planned, "Harper went away")
    assert come() == [(2, 30), (3, 30), (0, 10), (0, 0)]
    ledger.commit_cells(leases, [(batch, result(4)) for batch in done])
    assert come() == [(2, 30), (3, 24), (0, 10), (0.5, 8)]
    assert [point.rows for point in ledger.checkpoints(table, START + HOUR)] == [20, 14, 10, 4]


def test_marks_and_quarantine_count_from_the_start_on_and_for_one_table(
    ledger: Ledger, table: LedgerRoute
) -> None:
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    for each, cells in ((table, (0, 1, 2)), (other, (1,))):
        leases = ledger.acquire(each, [0], "ann", TTL)
        wanted = [copy(cell(hour)) for hour in cells]
        batches = ledger.plan(leases, T, 1, wanted, "run")
        assert ledger.progress(each, START).rows == 0
        bad = Rejection("1", "bad", "{}")
        ledger.commit_cells(leases, [(batch, result(4, bad)) for batch in batches])
        marks = [Mark(cell(hour), cell(hour).window_start, "a row moved") for hour in cells]
        ledger.mark(leases, InstantPosition(T + HOUR), marks)
        ledger.release(leases)
    for hour, count in ((0, 3), (1, 2), (3, 0)):
        found = ledger.progress(table, START + hour * HOUR)
        assert (found.dirty, found.quarantined) == (count, count)


def test_cells_of_one_window_are_dirty_one_by_one_however_many_marks_each_has(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0, 1], "ann", TTL)
    first, other = cell(0), cell(0, 1)
    times = [(first, START), (first, START + HOUR / 2), (other, START)]
    ledger.mark(leases, InstantPosition(T), [Mark(key, time, "a row moved") for key, time in times])
    assert ledger.progress(table, START).dirty == 2


def test_cells_are_counted_before_the_start_closed_and_open(
    ledger: Ledger, table: LedgerRoute
) -> None:
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    sync(ledger, other, [0], [0])
    sync(ledger, table, [0, 1, 2], [0, 1])
    leases = ledger.acquire(table, [0], "ann", TTL)
    half = replace(copy(cell(3)), upto=START + 3.5 * HOUR)
    (batch, _) = ledger.plan(leases, T, 1, [half, copy(cell(4))], "run")
    commit_cell(ledger, leases, batch, result())
    found = ledger.cell_counts(table, START + HOUR, START + 3 * HOUR)
    assert {(each.window, each.state, each.cells, each.synced_upto) for each in found} == {
        ("before", CellState.SYNCED, 2, START + HOUR),
        ("closed", CellState.SYNCED, 4, START + 2 * HOUR),
        ("open", CellState.SYNCED, 1, START + 3.5 * HOUR),
        ("open", CellState.PLANNED, 1, None),
    }

"""Where a table stands, asked of the ledger."""

from dataclasses import replace
from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.status import GuardRefusal
from bq_harper_assets.ledger.records import CellState, LogicalTable, Rejection
from bq_harper_assets.ledger.verbs.audit import Note
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


def _sync(ledger: Ledger, table: LogicalTable, hours: list[int], slices: list[int]) -> None:
    leases = ledger.acquire(table, slices, "ann", TTL)
    wanted = [copy(cell(hour, slice)) for hour in hours for slice in slices]
    batches = ledger.plan(leases, T, 1, wanted, "run-1")
    ledger.commit_cells(leases, [(batch, result()) for batch in batches])
    ledger.release(leases)


def test_a_table_is_synced_up_to_the_first_window_that_lacks_a_slice(
    ledger: Ledger, table: LogicalTable
) -> None:
    def until() -> float:
        return (ledger.progress(table, START).synced_until - START) / HOUR

    assert until() == 0
    _sync(ledger, table, [1, 2, 4], [0, 1, 2, 3])
    assert until() == 0
    _sync(ledger, table, [0], [0, 1, 2])
    assert until() == 0
    _sync(ledger, table, [0], [3])
    assert until() == 3
    _sync(ledger, table, [3], [0, 1, 2, 3])
    assert until() == 5


def test_progress_counts_cells_by_state_and_keeps_what_was_reached(
    ledger: Ledger, table: LogicalTable
) -> None:
    assert ledger.progress(table, START).newest_t is None
    assert ledger.progress(table, START).newest_commit_at is None
    _sync(ledger, table, [0, 1], [0, 1, 2, 3])
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
    ledger: Ledger, table: LogicalTable
) -> None:
    def come() -> list[tuple[float, int]]:
        found = ledger.checkpoints(table, START)
        assert [point.slice for point in found] == [0, 1, 2, 3]
        return [((point.until - START) / HOUR, point.rows) for point in found]

    assert come() == [(0, 0)] * 4
    _sync(ledger, table, [0, 1, 3], [0])
    _sync(ledger, table, [0, 1, 2], [1])
    _sync(ledger, table, [1], [2])
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


def test_cells_are_given_by_half_open_range_and_slice(ledger: Ledger, table: LogicalTable) -> None:
    _sync(ledger, table, [0, 1, 2], [0, 1])
    found = ledger.cells(table, START + HOUR, START + 2 * HOUR)
    assert [record.cell for record in found] == [cell(1, 0), cell(1, 1)]
    found = ledger.cells(table, START, START + 3 * HOUR, slices=[1])
    assert [record.cell for record in found] == [cell(0, 1), cell(1, 1), cell(2, 1)]


def test_a_refused_cell_says_what_the_source_was_when_it_was_refused_last(
    ledger: Ledger, table: LogicalTable
) -> None:
    def refusals() -> list[GuardRefusal | None]:
        return [each.refusal for each in ledger.cells(table, START, START + 2 * HOUR)]

    _sync(ledger, table, [0, 1], [0])
    assert refusals() == [None, None]
    later = [T + timedelta(minutes=number) for number in range(3)]
    for t, fingerprint in zip(later[:2], ("fewer", "none"), strict=True):
        leases = ledger.acquire(table, [0], "ann", TTL)
        (batch,) = ledger.plan(leases, t, 1, [copy(cell(0), fingerprint)], "run-2")
        ledger.refuse_batch(batch, "would delete 2,000 of 2,100 rows")
        ledger.release(leases)
        assert refusals() == [GuardRefusal(t, 1, fingerprint), None]
    leases = ledger.acquire(table, [0], "ann", TTL)
    (batch,) = ledger.plan(leases, later[2], 1, [copy(cell(0))], "run-3")
    assert refusals() == [None, None]
    commit_cell(ledger, leases, batch, result())
    assert refusals() == [None, None]


def test_slices_whose_commits_are_all_of_one_snapshot_are_told_from_the_others(
    ledger: Ledger, table: LogicalTable
) -> None:
    def others(minutes: int) -> set[int]:
        return set(ledger.slices_committed_at_other_times(table, T + timedelta(minutes=minutes)))

    assert others(0) == set()
    _sync(ledger, table, [0, 1], [0, 1])
    assert (others(0), others(1)) == (set(), {0, 1})
    leases = ledger.acquire(table, [1, 2], "ann", TTL)
    wanted = [copy(cell(0, 1)), copy(cell(0, 2))]
    moved, _ = ledger.plan(leases, T + timedelta(minutes=1), 1, wanted, "run-2")
    commit_cell(ledger, leases, moved, result())
    assert (others(0), others(1)) == ({1}, {0, 1})


def test_history_is_newest_first_by_table_or_by_cell(ledger: Ledger, table: LogicalTable) -> None:
    for _ in range(2):
        _sync(ledger, table, [0, 1], [0])
    assert [batch.seq for batch in ledger.history(table)] == [4, 3, 2, 1]
    assert [batch.seq for batch in ledger.history(table, limit=1)] == [4]
    assert [batch.seq for batch in ledger.history(table, cell(0))] == [3, 1]
    assert ledger.history(table, cell(5)) == ()


def test_tables_do_not_see_each_other(ledger: Ledger, table: LogicalTable) -> None:
    other = ledger.register_table(replace(FACTS, name="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    _sync(ledger, table, [0], [0])
    leases = ledger.acquire(other, [0], "bob", TTL)
    (batch,) = ledger.plan(leases, START, 1, [copy(cell(0))], "run-1")
    assert (batch.seq, batch.mode.value) == (1, "copy")
    assert ledger.history(other)[0].owner == "bob"
    assert [known.name for known in ledger.tables()] == ["calls", "positions"]
    assert ledger.progress(other, START).cells == {CellState.PLANNED: 1}


def test_what_happens_elsewhere_can_be_put_on_record(ledger: Ledger, table: LogicalTable) -> None:
    ledger.record_audit(table, Note("check", "smoke", "passed", {"rows": 5}))
    ledger.record_audit(None, Note("command", "stop", "ok", {}))
    assert [entry.kind for entry in ledger.audit(limit=2)] == ["command", "check"]
    newest = ledger.audit(table, limit=1)[0]
    assert (newest.subject, newest.outcome, newest.detail) == ("smoke", "passed", {"rows": 5})
    (check,) = ledger.audit(kind="check")
    assert check == newest
    assert ledger.audit(table, kind="command") == ()
    assert abs(newest.at - ledger.now()) < timedelta(seconds=5)

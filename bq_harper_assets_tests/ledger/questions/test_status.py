"""Where a table stands, asked of the ledger."""

from dataclasses import replace
from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.questions.status import GuardRefusal
from bq_harper_assets.ledger.records import CellState, LedgerRoute, Mark, Rejection
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


def sync(ledger: Ledger, table: LedgerRoute, hours: list[int], slices: list[int]) -> None:
    leases = ledger.acquire(table, slices, "ann", TTL)
    wanted = [copy(cell(hour, slice)) for hour in hours for slice in slices]
    batches = ledger.plan(leases, T, 1, wanted, "run-1")
    ledger.commit_cells(leases, [(batch, result()) for batch in batches])
    ledger.release(leases)


def test_cells_are_given_by_half_open_range_and_slice(ledger: Ledger, table: LedgerRoute) -> None:
    sync(ledger, table, [0, 1, 2], [0, 1])
    found = ledger.cells(table, START + HOUR, START + 2 * HOUR)
    assert [record.cell for record in found] == [cell(1, 0), cell(1, 1)]
    found = ledger.cells(table, START, START + 3 * HOUR, slices=[1])
    assert [record.cell for record in found] == [cell(0, 1), cell(1, 1), cell(2, 1)]


def test_a_refused_cell_says_what_the_source_was_when_it_was_refused_last(
    ledger: Ledger, table: LedgerRoute
) -> None:
    def refusals() -> list[GuardRefusal | None]:
        return [each.refusal for each in ledger.cells(table, START, START + 2 * HOUR)]

    sync(ledger, table, [0, 1], [0])
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


def test_slices_whose_commits_are_all_of_one_position_are_told_from_the_others(
    ledger: Ledger, table: LedgerRoute
) -> None:
    def others(minutes: int) -> set[int]:
        rank = InstantPosition(T + timedelta(minutes=minutes)).rank
        return set(ledger.slices_committed_at_other_positions(table, rank))

    assert others(0) == set()
    sync(ledger, table, [0, 1], [0, 1])
    assert (others(0), others(1)) == (set(), {0, 1})
    leases = ledger.acquire(table, [1, 2], "ann", TTL)
    wanted = [copy(cell(0, 1)), copy(cell(0, 2))]
    moved, _ = ledger.plan(leases, T + timedelta(minutes=1), 1, wanted, "run-2")
    commit_cell(ledger, leases, moved, result())
    assert (others(0), others(1)) == ({1}, {0, 1})


def test_tables_do_not_see_each_other(ledger: Ledger, table: LedgerRoute) -> None:
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    sync(ledger, table, [0], [0])
    leases = ledger.acquire(other, [0], "bob", TTL)
    (batch,) = ledger.plan(leases, START, 1, [copy(cell(0))], "run-1")
    assert (batch.seq, batch.mode.value) == (1, "copy")
    assert ledger.history(other)[0].owner == "bob"
    assert [known.name for known in ledger.routes()] == ["calls", "positions"]
    assert ledger.progress(other, START).cells == {CellState.PLANNED: 1}


def test_the_batches_and_the_quarantine_of_a_cell_are_its_own(
    ledger: Ledger, table: LedgerRoute
) -> None:
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    ledger.record_schema(table, {"columns": ["ts", "speed"]}, 1)
    bad = Rejection("1", "bad", "{}")
    cells = [cell(0, 0), cell(1, 0), cell(0, 1), cell(1, 1)]
    for each, version in ((table, 2), (other, 1)):
        leases = ledger.acquire(each, [0, 1], "ann", TTL)
        batches = ledger.plan(leases, T, version, [copy(key) for key in cells], "run")
        ledger.commit_cells(leases, [(batch, result(4, bad)) for batch in batches])
    for number, key in enumerate(cells, 1):
        [batch] = ledger.history(table, key)
        assert (batch.seq, batch.cell) == (number, key)
        assert [row.cell for row in ledger.quarantined(table, key)] == [key]
    assert len(ledger.history(table)) == len(ledger.quarantined(table)) == 4
    assert [each.seq for each in ledger.history(table, limit=2)] == [4, 3]
    assert ledger.schema_versions_of_batches(table, [1, 4, 9]) == {1: 2, 4: 2}
    assert ledger.schema_versions_of_batches(other, [1]) == {1: 1}


def test_a_cell_is_clean_only_while_it_is_synced_and_has_no_mark(
    ledger: Ledger, table: LedgerRoute
) -> None:
    def is_clean() -> bool:
        [record] = ledger.cells(table, START, START + HOUR)
        return record.is_clean

    sync(ledger, table, [0], [0])
    assert is_clean()
    leases = ledger.acquire(table, [0], "ann", TTL)
    ledger.mark(leases, InstantPosition(T + HOUR), [Mark(cell(0), START, "a row moved")])
    assert not is_clean()


def test_a_refusal_ends_by_itself_only_if_it_says_when() -> None:
    refusal = GuardRefusal(T, 1, "fp")
    assert not refusal.is_forgotten(T + 99 * HOUR)
    ends = replace(refusal, until=T + HOUR)
    moments = (T, T + HOUR, T + 2 * HOUR)
    assert [ends.is_forgotten(moment) for moment in moments] == [False, True, True]


def test_long_lists_are_cut_where_nobody_says_how_long_they_may_be(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    first, *_ = ledger.plan(leases, T, 1, [copy(cell(hour)) for hour in range(101)], "run")
    commit_cell(ledger, leases, first, result(1_001, *[Rejection("1", "bad", "{}")] * 1_001))
    assert (len(ledger.history(table)), len(ledger.quarantined(table))) == (100, 1_000)
    assert len(ledger.history(table, limit=101)) == 101
    assert len(ledger.quarantined(table, limit=1_001)) == 1_001

"""What proofs found is remembered by cell, for as long as the cell stays as it was looked at."""

from dataclasses import replace
from datetime import timedelta

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.position import InstantPosition
from bq_harper_assets.ledger.records import LedgerRoute, Mark
from bq_harper_assets.ledger.verbs.proofs import Judged, ProvedCells
from bq_harper_assets_tests.ledger.sample import TTL, T, cell, commit_cell, copy, result

LATER = T + timedelta(minutes=1)


def _known(ledger: Ledger, table: LedgerRoute) -> set[tuple[int, str | None, bool]]:
    return {(each.cells, each.status, each.deep) for each in ledger.proved_cells(table)}


def test_a_proof_counts_until_its_cell_is_synced_again_or_marked(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    cells = [cell(hour) for hour in range(3)]
    batches = ledger.plan(leases, T, 1, [copy(each) for each in cells], "run-1")
    ledger.commit_cells(leases, [(batch, result()) for batch in batches])
    assert ledger.proved_cells(table) == (
        ProvedCells(
            cells=3,
            is_clean=True,
            is_closed=True,
            status=None,
            deep=False,
            source_changed=False,
            oldest=T,
            newest=T,
        ),
    )
    proved = [
        Judged(cell=b.cell, batch=b.seq, status="proved", deep=False, source_changed=False)
        for b in batches
    ]
    ledger.record_proofs(table, proved)
    assert _known(ledger, table) == {(3, "proved", False)}

    [again] = ledger.plan(leases, LATER, 1, [copy(cells[0])], "run-2")
    commit_cell(ledger, leases, again, result())
    assert _known(ledger, table) == {(2, "proved", False), (1, None, False)}
    ledger.record_proofs(
        table,
        [Judged(cell=cells[0], batch=again.seq, status="differs", deep=False, source_changed=True)],
    )
    assert ledger.cells_judged(table, ["differs"], 5) == (cells[0],)
    assert {(each.oldest, each.newest) for each in ledger.proved_cells(table)} == {
        (T, T),
        (LATER, LATER),
    }

    ledger.mark(
        leases, InstantPosition(LATER), [Mark(cells[1], cells[1].window_start, "a row moved")]
    )
    assert {(each.cells, each.is_clean) for each in ledger.proved_cells(table)} == {
        (1, True),
        (1, False),
    }


def test_a_quick_proof_that_agrees_with_a_deep_one_does_not_make_it_forgotten(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    [batch] = ledger.plan(leases, T, 1, [copy(cell())], "run-1")
    commit_cell(ledger, leases, batch, result())
    for status, deep, known in (
        ("proved", False, False),
        ("proved", True, True),
        ("proved", False, True),
        ("differs", False, False),
        ("proved", False, False),
    ):
        ledger.record_proofs(
            table,
            [Judged(cell=cell(), batch=batch.seq, status=status, deep=deep, source_changed=False)],
        )
        assert _known(ledger, table) == {(1, status, known)}


def test_a_deep_proof_is_not_forgotten_by_a_quick_one_of_many_cells(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    cells = [cell(hour) for hour in range(3)]
    batches = ledger.plan(leases, T, 1, [copy(each) for each in cells], "run")
    ledger.commit_cells(leases, [(batch, result()) for batch in batches])
    for deep in (True, False):
        ledger.record_proofs(
            table,
            [
                Judged(cell=b.cell, batch=b.seq, status="proved", deep=deep, source_changed=False)
                for b in batches
            ],
        )
    assert _known(ledger, table) == {(3, "proved", True)}


def test_an_open_cell_is_not_counted_among_the_closed_ones(
    ledger: Ledger, table: LedgerRoute
) -> None:
    leases = ledger.acquire(table, [0], "ann", TTL)
    half = replace(copy(cell(1)), upto=cell(1).window_start + TTL)
    batches = ledger.plan(leases, T, 1, [copy(cell(0)), half], "run")
    ledger.commit_cells(leases, [(batch, result()) for batch in batches])
    assert {(each.cells, each.is_closed) for each in ledger.proved_cells(table)} == {
        (1, True),
        (1, False),
    }

"""Proofs of many cells in one verdict."""

from dataclasses import replace

from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.proof_records import verdict_of
from bq_harper_assets.validation.proof.table_proof import count_cells, table_verdict
from bq_harper_assets.validation.verdict import ProofStatus
from bq_harper_assets_tests.validation.proof.test_table_proof import CELL, NOON, PROVED


def test_an_open_window_is_equal_so_far_and_never_a_failure() -> None:
    still_open = CellProof(
        cell=CELL, status=ProofStatus.OPEN, message="equal so far", t=NOON, batch=1
    )
    assert (still_open.verdict.passed, still_open.words) == (True, "open")
    assert verdict_of([still_open]).passed
    proved = replace(still_open, status=ProofStatus.PROVED)
    of_both = verdict_of([still_open, proved])
    assert (of_both.status, of_both.passed) == (ProofStatus.PROVED, True)
    assert of_both.message == "2 cells: 1 open, 1 proved by stored hash"
    cells = count_cells([replace(PROVED, is_closed=False, status="open"), PROVED])
    assert table_verdict(cells, [], [still_open]).passed
    polled = count_cells([replace(PROVED, is_closed=False, is_clean=False, status=None), PROVED])
    assert polled == cells  # a poll may be at work on it at any moment
    assert table_verdict(cells, [], []).status is ProofStatus.PROVED


def test_a_table_of_which_nothing_is_synced_has_nothing_to_prove() -> None:
    verdict = table_verdict(count_cells([]), [], [])
    assert (verdict.status, verdict.passed) == (ProofStatus.NOT_SYNCED, False)
    assert verdict_of([]).status is ProofStatus.NOT_SYNCED

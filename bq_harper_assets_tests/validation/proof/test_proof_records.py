"""Proofs of many cells in one verdict."""

from dataclasses import replace

from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.proof_records import verdict_of
from bq_harper_assets.validation.proof.table_proof import count_cells, table_verdict
from bq_harper_assets.validation.verdict import Difference, DifferenceKind, ProofStatus, Severity
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


def test_proofs_are_summed_up_by_their_words_in_order_and_by_the_worst() -> None:
    proved = CellProof(cell=CELL, status=ProofStatus.PROVED, message="equal", rows=5, deep=True)
    quick = replace(proved, deep=False)
    row = Difference(DifferenceKind.MISSING, "a")
    differs = replace(
        proved, status=ProofStatus.DIFFERS, message="is wrong", missing=1, differences=(row,) * 15
    )
    moving = replace(quick, status=ProofStatus.MOVING, message="moves")
    every = verdict_of([quick, proved, moving, differs, differs])
    assert every.message == (
        "5 cells: 2 differs, 1 moving, 1 proved, 1 proved by stored hash; the first is"
        f" {differs.verdict.message}"
    )
    assert (every.status, every.passed, every.severity) == (
        *(ProofStatus.DIFFERS, False),
        Severity.ERROR,
    )
    assert every.metadata["cells"] == {"proved": 2, "moving": 1, "differs": 2}
    assert (every.metadata["rows"], every.metadata["missing"]) == (25, 2)
    assert (every.metadata["form"], len(every.rows)) == ("deep", 20)
    waits = verdict_of([quick, moving])
    assert (waits.status, waits.passed, waits.severity) == (
        *(ProofStatus.MOVING, False),
        Severity.WARN,
    )
    assert waits.metadata["form"] == "quick"
    assert verdict_of([proved, quick]).metadata["form"] == "deep"
    assert (verdict_of([]).passed, verdict_of([]).severity) == (False, Severity.WARN)

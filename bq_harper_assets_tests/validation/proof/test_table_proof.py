"""What all proofs of a table say of it together."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bq_harper_assets.ledger.verbs.proofs import ProvedCells
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.proof.table_proof import STATUS_OF_RUN, count_cells, table_verdict
from bq_harper_assets.validation.verdict import ProofStatus, Severity
from bq_harper_assets_tests.stores.small_tables import utc

NOON = utc(2026, 1, 5, 12)
HOUR = timedelta(hours=1)
CELL = Cell(Window(NOON, NOON + HOUR), 0)
PROVED = ProvedCells(
    cells=8,
    is_clean=True,
    is_closed=True,
    status="proved",
    deep=False,
    source_changed=False,
    oldest=NOON,
    newest=NOON + HOUR,
)


def test_a_table_says_how_many_cells_are_proved_in_which_way_as_of_when_and_what_is_not() -> None:
    cells = count_cells(
        [
            PROVED,
            replace(PROVED, cells=2, deep=True, oldest=NOON - HOUR, newest=NOON - HOUR),
            replace(PROVED, cells=3, source_changed=True),
            replace(PROVED, cells=4, is_closed=False, status="open"),
            replace(PROVED, cells=5, status=None),
            replace(PROVED, cells=6, is_clean=False),
        ]
    )
    verdict = table_verdict(cells, [], [])
    assert (verdict.status, verdict.passed) == (ProofStatus.PARTLY_PROVED, True)
    assert verdict.message == (
        "13 of 24 closed cells are proved (11 by stored hash, 2 by all values), as of"
        " 2026-01-05 11:00:00 to 2026-01-05 13:00:00 UTC; 4 were open at their sync; 3 have changed"
        " in BigQuery since; 5 were not proved since their sync; 6 are being synced or wait for it"
    )
    shown = verdict.metadata
    assert shown["cells"] == 28
    assert shown["cells_proved"] == 13
    assert shown["cells_proved_by_stored_hash"] + shown["cells_proved_by_all_values"] == 13
    assert shown["cells_changed_since"] == 3


def test_a_cell_that_differs_fails_its_table_until_it_is_mended_whoever_found_it() -> None:
    cells = count_cells([PROVED, replace(PROVED, cells=7, status="differs")])
    named = [cell_key(Cell(CELL.window, number)) for number in range(5)]
    of_another_run = table_verdict(cells, named, [])
    assert (of_another_run.status, of_another_run.passed) == (ProofStatus.DIFFERS, False)
    assert of_another_run.severity is Severity.ERROR
    assert "7 differ: 2026-01-05T12:00|s00, " in of_another_run.message
    assert of_another_run.message.endswith("|s04, ...")


@pytest.mark.parametrize(
    ("status", "severity"),
    [
        (ProofStatus.CHECK_FAILED, Severity.ERROR),
        (ProofStatus.MOVING, Severity.WARN),
        (ProofStatus.NOT_SYNCED, Severity.WARN),
    ],
)
def test_what_a_run_could_not_look_at_is_told_though_the_others_are_proved(
    status: ProofStatus, severity: Severity
) -> None:
    verdict = table_verdict(
        count_cells([PROVED]), [], [CellProof(cell=CELL, status=status, message="of no answer")]
    )
    assert (verdict.status, verdict.passed, verdict.severity) == (status, False, severity)
    assert "of no answer" in verdict.message
    assert verdict.metadata[STATUS_OF_RUN] == status.value


def test_rows_that_no_window_finds_fail_the_table_whatever_its_cells_say() -> None:
    told = table_verdict(count_cells([PROVED]), [], [], lost="Harper holds 3 rows; 1 is lost")
    assert (told.status, told.passed, told.severity) == (ProofStatus.DIFFERS, False, Severity.ERROR)
    assert told.message.endswith(" UTC. Harper holds 3 rows; 1 is lost")


@pytest.mark.parametrize(
    ("change", "status", "passed"),
    [
        ({"status": "source_changed", "source_changed": True}, ProofStatus.SOURCE_CHANGED, False),
        ({"status": None}, ProofStatus.PARTLY_PROVED, True),
        ({"is_clean": False}, ProofStatus.PARTLY_PROVED, True),
        ({"is_closed": False, "status": "open"}, ProofStatus.PROVED, True),
    ],
)
def test_one_kind_of_other_cells_beside_the_proved_ones_decides(
    change: dict[str, object], status: ProofStatus, passed: bool
) -> None:
    cells = count_cells([PROVED, replace(PROVED, cells=3, **change)])  # type: ignore[arg-type]
    verdict = table_verdict(cells, [], [])
    assert (verdict.status, verdict.passed, cells.cells) == (status, passed, 11)
    assert cells.source_changed == (3 if status is ProofStatus.SOURCE_CHANGED else 0)


def test_a_table_of_open_cells_alone_is_open() -> None:
    cells = count_cells([replace(PROVED, is_closed=False, status="open")])
    assert cells.status is ProofStatus.OPEN
    assert str(cells) == "0 of 0 closed cells are proved; 8 were open at their sync"


def test_all_differing_cells_are_named_if_there_are_not_many() -> None:
    cells = count_cells([PROVED, replace(PROVED, cells=1, status="differs")])
    assert table_verdict(cells, [cell_key(CELL)], []).message.endswith(
        "1 differ: 2026-01-05T12:00|s00"
    )

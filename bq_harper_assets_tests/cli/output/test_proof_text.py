"""Proofs as lines: one for each window, and below it the rows that differ, as in a diff."""

from datetime import timedelta
from typing import Any

from bq_harper_assets.cli.output.proof_text import PROOF_HEADER, equality_json, window_lines
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.validation.proof.cell_proof import CellProof
from bq_harper_assets.validation.verdict import Difference, DifferenceKind, ProofStatus
from bq_harper_assets_tests.cli.output.test_equality import equality
from bq_harper_assets_tests.stores.small_tables import utc
from bq_harper_assets_tests.temporary_project import HOUR

NOON = utc(2026, 1, 5, 12)


def _proof(hour: int, part: int, status: ProofStatus, **known: Any) -> CellProof:
    window = Window(NOON + hour * HOUR, NOON + (hour + 1) * HOUR)
    return CellProof(cell=Cell(window, part), status=status, message="", **known)


DIFFERS = _proof(
    1,
    0,
    ProofStatus.DIFFERS,
    t=NOON + 2 * HOUR,
    rows=1000,
    missing=1,
    changed=3,
    phantom=1,
    differences=(
        Difference(DifferenceKind.MISSING, "a"),
        Difference(DifferenceKind.CHANGED, 7, {"speed": (1, None), "name": ("x", "y")}),
        Difference(DifferenceKind.PHANTOM, "b"),
    ),
)
PROOFS = (
    _proof(0, 0, ProofStatus.PROVED, t=NOON + HOUR, rows=600),
    _proof(0, 1, ProofStatus.PROVED, t=NOON + HOUR - timedelta(seconds=1), rows=634, deep=True),
    DIFFERS,
    _proof(2, 0, ProofStatus.MOVING),
)


def test_the_cells_of_a_window_are_summed_and_the_rows_that_differ_stand_below_their_cell() -> None:
    lines = list(window_lines(PROOFS))
    figures = [line.split() for line in (PROOF_HEADER, lines[0], lines[1], lines[-1])]
    assert figures[0][:7] == [
        *("window", "rows", "missing", "changed", "phantom", "quarantined", "kept"),
    ]
    assert figures[1] == [
        *("2026-01-05T12:00", "1,234", "0", "0", "0", "0", "0"),
        *("2026-01-05", "12:59:59", "proved,", "proved", "by", "stored", "hash"),
    ]
    assert figures[2][:7] == ["2026-01-05T13:00", "1,000", "1", "3", "1", "0", "0"]
    assert figures[3] == ["2026-01-05T14:00", *"000000", "-", "moving"]
    assert lines[2:-1] == [
        "  2026-01-05T13:00|s00",
        "  - missing a",
        "  ~ changed 7 speed: 1 -> None, name: 'x' -> 'y'",
        "  + phantom b",
        "  ... and 2 more",
    ]


def test_a_window_some_of_whose_cells_differ_is_not_called_proved_as_well() -> None:
    [line, *_] = window_lines([DIFFERS, _proof(1, 1, ProofStatus.PROVED, t=NOON + 2 * HOUR)])
    assert line.endswith(" 2026-01-05 14:00:00 differs in 1 of 2 cells")
    [alone, *_] = window_lines([DIFFERS])
    assert alone.endswith(" 2026-01-05 14:00:00 differs")


def test_programs_read_the_sums_and_each_cell() -> None:
    told = equality_json(equality(*PROOFS))
    assert (told["table"], told["rows"], told["changed"]) == ("ships", 2234, 3)
    cells = told["cells"]
    assert list(cells) == [proof.cell.key for proof in PROOFS]
    differs = cells[DIFFERS.cell.key]
    assert (differs["status"], differs["snapshot"]) == ("differs", "2026-01-05T14:00:00+00:00")
    assert differs["differences"][1] == {
        "kind": "changed",
        "id": 7,
        "columns": {"speed": [1, None], "name": ["x", "y"]},
    }
    assert cells[PROOFS[3].cell.key]["snapshot"] is None

"""One check of a table, and the same of some of its cells: each is told by what it holds itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.validation import cell_progress, progress, smoke, spot, spot_verdict
from bq_harper_assets.validation.subject import Subject
from bq_harper_assets.validation.verdict import Verdict

CHECKS = (progress.CHECK, smoke.CHECK, spot_verdict.CHECK)


@dataclass(frozen=True)
class Checked:
    """The table's verdict, and one for each cell that was asked for."""

    of_table: Verdict
    of_cells: Mapping[Cell, Verdict] = field(default_factory=dict)


def check_table(
    name: str, subject: Subject, cells: Sequence[Cell], now: datetime | None = None
) -> Checked:
    """The check of this name; without cells it looks at the whole table."""
    if name == progress.CHECK:
        of_cells = cell_progress.check_cells(subject, cells, now) if cells else {}
        return Checked(progress.check_progress(subject, now), of_cells)
    if name == smoke.CHECK:
        return _smoke(subject, cells, now or smoke.now_of(subject))
    found = spot.check_spot(subject, cells or None)
    return Checked(found.verdict, {cell: found.of_cell(cell) for cell in cells})


def _smoke(subject: Subject, cells: Sequence[Cell], now: datetime) -> Checked:
    if not cells:
        return Checked(smoke.check_smoke(subject, now))
    newest = max(cell.window for cell in cells)
    # Old windows that are synced again say nothing of the last five minutes.
    next_closes = newest.end + subject.contract.window + subject.contract.safety_lag
    old = [cell.window for cell in cells if cell.window.end <= now - smoke.RECENT]
    by_window = smoke.check_windows(subject, old, now)
    of_table = by_window[newest] if next_closes <= now else smoke.check_smoke(subject, now)
    return Checked(of_table, {cell: by_window.get(cell.window, of_table) for cell in cells})

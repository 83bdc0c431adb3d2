"""BigQuery's fingerprints as they are now, and the ledger, say which cells of a table are due."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from bq_harper_assets.cli.output.windows_text import some_windows
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.ledger.ledger import Ledger
    from bq_harper_assets.sync.cells.cell import Cell

OPEN = "open"
WORDS = {
    "source_changed": "changed in BigQuery since their sync",
    "missing": "never synced",
    "failed": "failed in their last run",
    "planned_left": "left by a run that ended without a word",
    "refused": "refused by the delete guard",
    "forgotten": "refused only for what other runs deleted, which no longer counts",
    "dirty": "marked, because a row moved between windows",
    "closed_since": "synced while their window was open, which has closed",
    OPEN: "of the open window, where rows came or changed",
}


@dataclass(frozen=True, kw_only=True)
class DueCells:
    """A sync would change these cells, for these reasons."""

    table: str
    looked_at: int  # cells
    at: datetime
    by_reason: "Mapping[str, Sequence[Cell]]"
    at_work: int = 0  # cells that a run is writing now, which are not judged

    @property
    def cells(self) -> "list[Cell]":
        """Lists the cells in the order of time."""
        return sorted(cell for cells in self.by_reason.values() for cell in cells)

    def __str__(self) -> str:
        working = f"{self.at_work:,} cells that a run is writing now are not judged"
        if not self.cells:
            equal = self.looked_at - self.at_work
            told = (
                f"nothing of {self.table} is due: {equal:,} of its {self.looked_at:,} cells are as "
                f"BigQuery has them at {self.at:%F %T} UTC"
            )
            return f"{told}; {working}" if self.at_work else told
        lines = [f"{len(self.cells):,} of {self.looked_at:,} cells of {self.table} are due:"]
        for reason, cells in self.by_reason.items():
            windows = some_windows(cell.window for cell in cells)
            lines.append(f"  {len(cells):,} {WORDS[reason]}: {windows}")
        if self.at_work:
            lines.append(f"  {working}")
        return "\n".join(lines)


def find_due(
    project: Project, contract: TableContract, start: datetime, cells: "Sequence[Cell]"
) -> DueCells:
    """Finds which of these cells are due; all windows are compared with BigQuery, however old."""
    from bq_harper_assets.ledger.ledger import open_ledger
    from bq_harper_assets.stores.bigquery.source import bigquery_source
    from bq_harper_assets.stores.harper.schema import harper_plan
    from bq_harper_assets.sync.ledger_facts import table_facts
    from bq_harper_assets.sync.revisit.changed_open_window import open_cells_due
    from bq_harper_assets.sync.revisit.changed_windows import look
    from bq_harper_assets.sync.revisit.due_cells import closed_until
    from bq_harper_assets.sync.revisit.horizon import standing

    labels = {"bqh": "changed", "bqh_table": contract.id}
    wanted = set(cells)
    with (
        open_ledger(project.ledger.url) as ledger,
        bigquery_source(project.bigquery, labels, harper_plan) as source,
    ):
        if ledger.find_route(contract.id):
            ledger.register_route(table_facts(contract, project.bigquery.project))
        now = ledger.now()
        until = closed_until(contract, now)
        closed = [cell for cell in cells if cell.window.end <= until]
        changed = {}
        if closed:
            first, last = min(closed).window.start, max(closed).window.end
            changed = dict(look(ledger, source, contract, [(first, last)]).changed)
        by_reason: dict[str, list[Cell]] = {}
        for due in standing(ledger, contract, start, now, changed).due:
            if due.cell in wanted:
                by_reason.setdefault(due.reason.value, []).append(due.cell)
        at_work = _at_work(ledger, contract, cells) - {
            cell for cells_due in by_reason.values() for cell in cells_due
        }
        still_open = [cell for cell in cells if cell.window.end > until]
        if still_open and (due_there := open_cells_due(ledger, source, contract, still_open)):
            by_reason[OPEN] = due_there
    return DueCells(
        table=contract.id, looked_at=len(cells), at=now, by_reason=by_reason, at_work=len(at_work)
    )


def _at_work(ledger: "Ledger", contract: TableContract, cells: "Sequence[Cell]") -> "set[Cell]":
    """Finds the cells that some run has planned and not committed."""
    from bq_harper_assets.ledger.records import CellState
    from bq_harper_assets.sync.ledger_facts import cell_key

    table = ledger.find_route(contract.id)
    if table is None or not cells:
        return set()
    first, last = min(cells).window.start, max(cells).window.end
    planned = {
        record.cell
        for record in ledger.cells(table, first, last)
        if record.state is CellState.PLANNED
    }
    return {cell for cell in cells if cell_key(cell) in planned}

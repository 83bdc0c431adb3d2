"""BigQuery's fingerprints as they are now, and the ledger, say which cells of a table are due."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.windows_text import some_windows
from bq_harper_assets.cli.runs.ended_runs import ended_runs
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.revisit.horizon import TableStanding

OPEN = "open"
WORDS = {
    "source_changed": "changed in BigQuery since their sync",
    "missing": "never synced",
    "failed": "failed in their last run",
    "planned_left": "left undone by a run that has ended",
    "refused": "refused by the delete guard",
    "forgotten": "refused only for what other runs deleted, which no longer counts",
    "dirty": "marked, because a row moved between windows",
    "closed_since": "synced while their window was open, which has closed",
    OPEN: "of the open window, where rows came or changed",
}


SHOWN_OF_ID = 8  # of a run's, as Dagster shows it


@dataclass(frozen=True, kw_only=True)
class DueCells:
    """A sync would change these cells, for these reasons."""

    table: str
    looked_at: int  # cells
    at: datetime
    by_reason: "Mapping[str, Sequence[Cell]]"
    # Cells that a run is writing now, by its id: they are not judged.
    at_work: "Mapping[str, Sequence[Cell]]" = field(default_factory=dict)

    @property
    def cells(self) -> "list[Cell]":
        """Lists the cells in the order of time."""
        return sorted(cell for cells in self.by_reason.values() for cell in cells)

    def __str__(self) -> str:
        working = f"{self.not_judged:,} that a run is writing now are not judged"
        if not self.cells:
            equal = self.looked_at - self.not_judged
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

    @property
    def not_judged(self) -> int:
        """Counts the cells that a run is writing now."""
        return sum(len(cells) for cells in self.at_work.values())

    def told_at_the_end(self) -> str | None:
        """Says which cells were not judged, who writes them, and what to type; None if all were."""
        told = [
            f"{len(cells):,} that run {run_id[:SHOWN_OF_ID]} is writing now"
            f" ({some_windows(cell.window for cell in cells)})"
            for run_id, cells in self.at_work.items()
        ]
        if not told:
            return None
        return (
            f"cells of {self.table} are not judged: {'; '.join(told)}. Once that has ended, type:"
            f" bqh sync {self.table} --changed"
        )

    def exit_code(self, of_runs: ExitCode) -> ExitCode:
        """Gives the code of the runs, or the one that says that not all cells were judged."""
        if not self.at_work or of_runs in (ExitCode.ERROR, ExitCode.DIFFERS):
            return of_runs
        return ExitCode.PARTLY if self.not_judged < self.looked_at else ExitCode.ERROR


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
        ended = ended_runs(project, ledger, [contract])
        stands = standing(ledger, contract, start, now, changed, ended)
        for due in stands.due:
            if due.cell in wanted:
                by_reason.setdefault(due.reason.value, []).append(due.cell)
        at_work = _at_work(stands, cells)
        written = {cell for of_run in at_work.values() for cell in of_run}
        still_open = [c for c in cells if c.window.end > until and c not in written]
        if still_open and (due_there := open_cells_due(ledger, source, contract, still_open)):
            by_reason[OPEN] = due_there
    return DueCells(
        table=contract.id, looked_at=len(cells), at=now, by_reason=by_reason, at_work=at_work
    )


def _at_work(stands: "TableStanding", cells: "Sequence[Cell]") -> "dict[str, list[Cell]]":
    """Lists by run which of these cells it is writing, and that are due for no other reason."""
    from bq_harper_assets.sync.ledger_facts import cell_key

    due = {each.cell for each in stands.due}
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        run_id = stands.at_work.get(cell_key(cell))
        if run_id is not None and cell not in due:
            found.setdefault(run_id, []).append(cell)
    return found

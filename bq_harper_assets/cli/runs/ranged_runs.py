"""Runs any set of cells as the fewest ranged Dagster runs, and merges their results."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bq_harper_assets.cli.output.progress_bar import working
from bq_harper_assets.cli.output.run_results import RunResults
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.runs.readiness import require_ready
from bq_harper_assets.contract.project import Project
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.cells.window import Window


def run_cells(
    what: str,
    project: Project,
    contract: TableContract,
    cells: "Sequence[Cell]",
    output: str,
    *,
    allow_deletes: bool = False,
    deep: bool = False,
) -> RunResults:
    """Runs exactly these cells; a run that fails does not stop the others."""
    if not cells:
        return RunResults((), 0, 0.0)
    require_servers(project)
    require_ready(project, contract)
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.defs.build import build_definitions
    from bq_harper_assets.defs.runs.launch import launch, project_instance
    from bq_harper_assets.defs.tables.first_window import find_start
    from bq_harper_assets.ledger.ledger import open_ledger

    with open_ledger(project.ledger.url) as ledger:
        find_start(project.bigquery, contract, ledger)  # where the partitions begin, put on record
        definitions = build_definitions(project.root, ledger, profile=project.profile_name)
    began = time.monotonic()
    with working(what, output, len(cells)), project_instance(project.root) as instance:
        runs = tuple(
            launch(definitions, instance, contract, part, allow_deletes=allow_deletes, deep=deep)
            for part in rectangles(cells)
        )
    return RunResults(runs, len(cells), time.monotonic() - began)


def rectangles(cells: "Iterable[Cell]") -> "list[list[Cell]]":
    """Cuts cells into windows in a row times slices in a row, which a ranged run can do.

    Each cell is in one rectangle, and no other cell is in any.
    """
    from bq_harper_assets.sync.cells.cell import Cell

    slices_of: dict[Window, set[int]] = {}
    for cell in cells:
        slices_of.setdefault(cell.window, set()).add(cell.slice)
    done: list[list[Cell]] = []
    growing: dict[range, list[Cell]] = {}
    before: Window | None = None
    for window in sorted(slices_of):
        goes_on = before is not None and before.end == window.start
        spans = list(_in_a_row(sorted(slices_of[window])))
        kept = {span: growing[span] for span in spans if goes_on and span in growing}
        done += [part for span, part in growing.items() if span not in kept]
        growing = {span: kept.get(span, []) for span in spans}
        for span in spans:
            growing[span] += [Cell(window, number) for number in span]
        before = window
    return sorted(done + list(growing.values()))


def _in_a_row(numbers: list[int]) -> Iterator[range]:
    first = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield range(numbers[first], numbers[at - 1] + 1)
            first = at

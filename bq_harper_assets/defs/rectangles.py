"""Any set of cells is cut into rectangles: a ranged run does adjoining windows times slices."""

from collections.abc import Iterable, Iterator

from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.cells.window import Window


def rectangles(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cuts the cells into rectangles: each cell is in one of them, and no other cell in any."""
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

"""A sync is summed up in columns that fit a terminal of 80 characters; names are never cut."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bq_harper_assets.cli.output.run_results import RunResults

WIDTH = 80
FIGURES = ("read", "written", "unchanged", "deleted", "quarantined")
_HEADER = ("cells", *FIGURES, "seconds")
# Told in a sentence where there are any, for few tables have them.
SELDOM = {
    "flagged": "rows that are gone from BigQuery were marked in _deletedAt",
    "kept": "rows that are gone from BigQuery were kept",
    "moved": "rows live on in another window",
}


def summary(runs: Sequence[tuple[str, RunResults]]) -> Iterator[str]:
    """Writes a line per table, below its name where both do not fit in one."""
    names = [name for name, _ in runs]
    rows = [_figures(ran) for _, ran in runs]
    widths = [max(len(row[at]) for row in (_HEADER, *rows)) for at in range(len(_HEADER))]
    room = max(len(name) for name in ("table", *names))
    beside = room + sum(widths) + 2 * len(widths) <= WIDTH
    yield _line("table".ljust(room) if beside else "", _HEADER, widths)
    for name, row in zip(names, rows, strict=True):
        if not beside:
            yield name
        yield _line(name.ljust(room) if beside else "", row, widths)


def remarks(ran: RunResults) -> Iterator[str]:
    """Writes what the figures alone do not tell."""
    if read := total(ran.done, "read"):
        yield f"{read / ran.seconds:,.0f} rows read per second"
    for what, sentence in SELDOM.items():
        if count := total(ran.done, what):
            yield f"{count:,} {sentence}"


def total(done: Mapping[str, Mapping[str, Any]], what: str) -> int:
    """Adds up one figure of all cells that are done."""
    return sum(int(metadata.get(f"rows_{what}", 0)) for metadata in done.values())


def _figures(ran: RunResults) -> tuple[str, ...]:
    count = len(ran.done)
    cells = f"{count:,}" if count == ran.cells else f"{count:,} of {ran.cells:,}"
    figures = (f"{total(ran.done, what):,}" for what in FIGURES)
    return cells, *figures, f"{ran.seconds:,.1f}"


def _line(name: str, row: Sequence[str], widths: Sequence[int]) -> str:
    figures = "  ".join(each.rjust(width) for each, width in zip(row, widths, strict=True))
    return f"{name}  {figures}"

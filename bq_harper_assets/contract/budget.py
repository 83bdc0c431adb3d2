"""The partition budget says how many cells (windows x slices) one table may have.

Dagster keeps every partition key of an asset in memory and in its pages; past this it turns slow.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bq_harper_assets.contract.fields.quantities import WINDOW_MINUTES, window_text
from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.instants import count_windows, floor_to_day, floor_to_window

MOST_CELLS = 100_000
WARN_FROM = 80_000
JUDGED_SPAN = timedelta(days=365)  # where the start is not known before the source is read


@dataclass(frozen=True)
class BudgetVerdict:
    """A table's number of cells is refused, or warned of, or neither."""

    cells: int
    refused: str | None = None
    warning: str | None = None


def judge_budget(contract: TableContract, now: datetime) -> BudgetVerdict:
    """Judges a table's cells up to now by the budget."""
    start = contract.sync.start_timestamp
    if start is not None and start > now:
        return BudgetVerdict(0, warning=_future(start))
    begin = start or now - JUDGED_SPAN
    cells = count_windows(begin, now, contract.window) * contract.slices
    span = f"from {_day(begin)} to now" if start else "in one year (no startTimestamp is given)"
    sizes = f"{window_text(contract.window)} windows x {contract.slices} slices"
    made = f"{sizes} make {cells:,} cells {span}"
    if cells > MOST_CELLS:
        ways = ", or ".join(_ways_out(contract, begin, now))
        return BudgetVerdict(cells, refused=f"{made}; the limit is {MOST_CELLS:,}. Set {ways}")
    if cells < WARN_FROM:
        return BudgetVerdict(cells)
    room = MOST_CELLS // contract.slices * contract.window
    if start:
        reached = f"is reached on {_day(floor_to_window(begin, contract.window) + room)}"
    else:
        reached = f"holds {room.days} days"
    return BudgetVerdict(
        cells,
        warning=f"{made}; the limit of {MOST_CELLS:,} {reached}. A larger window gives more room",
    )


def _ways_out(contract: TableContract, begin: datetime, now: datetime) -> list[str]:
    # Each leaves room below the warning, or the advice would hold for a few days only.
    ways: list[str] = []
    larger = [
        timedelta(minutes=m) for m in WINDOW_MINUTES if timedelta(minutes=m) > contract.window
    ]
    for window in larger:
        slices = min(contract.slices, WARN_FROM // count_windows(begin, now, window))
        if slices == contract.slices or (slices and window == larger[-1]):
            fewer = "" if slices == contract.slices else f" and slices: {slices}"
            ways.append(f"window: {window_text(window)}{fewer}")
            break
    if slices := WARN_FROM // count_windows(begin, now, contract.window):
        ways.append(f"slices: {slices}")
    # So many windows always last longer than a day: the start that is named lies before now.
    latest = now - (WARN_FROM // contract.slices - 1) * contract.window
    ways.append(f"sync.startTimestamp: {_day(floor_to_day(latest) + timedelta(days=1))}")
    return ways


def _future(start: datetime) -> str:
    return f"sync.startTimestamp lies in the future: nothing is synced before {_day(start)}"


def _day(instant: datetime) -> str:
    return instant.date().isoformat()

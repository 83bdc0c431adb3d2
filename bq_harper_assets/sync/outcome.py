"""Whether a cell is done: counts that must agree, from BigQuery, the tasks, Spark and Harper."""

from dataclasses import dataclass

from bq_harper_assets.ledger.records import CellResult, Rejection
from bq_harper_assets.sync.cells import Cell
from bq_harper_assets.sync.grid import Grid
from bq_harper_assets.sync.mover import Moved
from bq_harper_assets.sync.receipts import Tally, merged


@dataclass(frozen=True)
class CellOutcome:
    """One cell after the move: its result, or why it is not done."""

    cell: Cell
    result: CellResult
    problem: str | None = None


def judge(moved: Moved, grid: Grid, rows_at_t: dict[int, int], seconds: float) -> list[CellOutcome]:
    """Every cell of the run; `rows_at_t` is BigQuery's own count, by window start.

    A window all of whose slices are in the run is done when its cells add up to that count, even
    if a task failed; cells of any other window are done only if no task did.
    """
    tallies = merged(moved.receipts)
    failed = next((r.failure.error for r in moved.receipts if r.failure), None)
    refused: dict[int, list[Rejection]] = {}
    stale: dict[int, str] = {}  # an old version of a refused row may still be there
    for receipt in moved.receipts:
        for refusal in receipt.refusals:
            if receipt.failure:
                stale[refusal.place] = receipt.failure.error
            rejection = Rejection(refusal.row_id, refusal.reason, refusal.payload)
            refused.setdefault(refusal.place, []).append(rejection)
    outcomes = []
    for place in grid.occupied():
        window = grid.first + place // grid.slices * grid.length
        first = place - place % grid.slices
        whole = all(grid.batches[first : first + grid.slices])
        settled = sum(
            tallies.get(p, Tally()).written + len(refused.get(p, []))
            for p in range(first, first + grid.slices)
        )
        tally = tallies.get(place, Tally())
        rejections = tuple(refused.get(place, []))
        result = CellResult(
            read=tally.read,
            written=tally.written,
            unchanged=0,
            quarantined=tally.read - tally.written,
            digest=str(tally.digest),
            bytes=tally.bytes,
            seconds=seconds,
            rejections=rejections,
        )
        problem = None
        if whole and settled != rows_at_t[window]:
            problem = failed or (
                f"BigQuery counts {rows_at_t[window]} rows in the window and {settled} arrived"
            )
        elif not whole and failed:
            problem = failed
        elif place in stale:
            problem = stale[place]
        elif result.quarantined != len(rejections):
            problem = failed or (
                f"{tally.read} rows read, {tally.written} written and {len(rejections)} refused"
            )
        elif moved.sent.get(place, 0) != moved.distinct.get(place, 0):
            sent, distinct = moved.sent.get(place, 0), moved.distinct.get(place, 0)
            problem = f"{sent} rows have only {distinct} different ids: rows would be lost"
        outcomes.append(CellOutcome(grid.cell_at(place), result, problem))
    return outcomes

"""Rows that the source deletes by age, as the contract declares, are not losses to the guard."""

from collections.abc import Sequence
from typing import Any

from bq_harper_assets.sync.cells.window import Window
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.turn_context import TurnContext


def younger_than_retention(turn: TurnContext, work: CellWork) -> Sequence[Any]:
    """Returns the gone rows of a cell without those that are older than the contract's retention.

    The rows' own times are read from the target, unless a window shows that all are on one side.
    """
    contract, gone = turn.source.contract, work.vanished.gone
    if contract.deletes_older_than is None or not gone:
        return gone
    boundary = turn.t - contract.deletes_older_than
    if isinstance(window := work.cell.range, Window):
        if window.end <= boundary:
            return ()
        if window.start >= boundary:
            return gone
    older = turn.source.target.older_than(turn.source.pin.plan, gone, boundary)
    return [row_id for row_id in gone if row_id not in older]

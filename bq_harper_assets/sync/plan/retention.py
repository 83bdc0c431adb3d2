"""Rows that the source deletes by age, as the contract declares, are not losses to the guard."""

from collections.abc import Sequence
from typing import Any

from bq_harper_assets.stores.harper.answers import require_ids
from bq_harper_assets.stores.harper.client import IDS_PER_REQUEST
from bq_harper_assets.sync.diff.target_rows import text_of
from bq_harper_assets.sync.plan.cell_work import CellWork
from bq_harper_assets.sync.turn_context import TurnContext


def younger_than_retention(turn: TurnContext, work: CellWork) -> Sequence[Any]:
    """Returns the gone rows of a cell without those that are older than the contract's retention.

    The rows' own times are read from Harper only if the retention ends within the window.
    """
    contract, gone = turn.source.contract, work.vanished.gone
    if contract.deletes_older_than is None or not gone:
        return gone
    boundary = turn.t - contract.deletes_older_than
    if work.cell.window.end <= boundary:
        return ()
    if work.cell.window.start >= boundary:
        return gone
    plan = turn.source.pin.plan
    first = text_of(plan.selection.timestamp.kind, boundary)
    names = (plan.primary_key, contract.timestamp_column)
    older = set()
    for at in range(0, len(gone), IDS_PER_REQUEST):
        some = gone[at : at + IDS_PER_REQUEST]
        rows = turn.source.harper.search_by_id(contract.target_table, some, names)
        ids = require_ids(rows, plan.primary_key, "search_by_id", contract.target_table)
        older |= {
            row_id
            for row_id, row in zip(ids, rows, strict=True)
            if str(row.get(contract.timestamp_column)) < first
        }
    return [row_id for row_id in gone if row_id not in older]

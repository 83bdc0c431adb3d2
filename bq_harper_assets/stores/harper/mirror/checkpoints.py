"""The checkpoint of each slice is copied to Harper for its readers; the ledger stays the truth.

SyncCheckpoint
  id               <table>|s02
  nodeId           <table>-s02: the worker slice is what others call a node
  lastTimestamp    every row of the slice before this was synced
  lastSyncTime     when the sync last polled, also if there was nothing to move
  recordsIngested  rows that the slice's cells have: a row that was written twice counts once
  derivedFrom      the ledger that it was copied from
"""

from datetime import datetime, timedelta
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.instants import floor_to_window
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.questions.progress import Checkpoint
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.mirror.tables import CHECKPOINTS
from bq_harper_assets.sync.cells.cell import slice_key
from bq_harper_assets.sync.phases import phase_of, rows_per_request


def checkpoint_id(table: str, slice_number: int) -> str:
    """Returns the id of the row that shows one slice's checkpoint."""
    return f"{table}|{slice_key(slice_number)}"


def node_id(table: str, slice_number: int | None = None) -> str:
    """Returns the node id of a slice, or of the whole table."""
    return table if slice_number is None else f"{table}-{slice_key(slice_number)}"


def mirror_checkpoints(
    ledger: Ledger, harper: HarperClient, contract: TableContract, *, now: datetime | None = None
) -> str | None:
    """Copies the checkpoints to Harper, after every run and poll.

    Returns a warning if Harper did not take them, which does no harm.
    """
    table = ledger.find_route(contract.id)
    start = contract.sync.start_timestamp or ledger.start_of(contract.id)
    if table is None or start is None:
        return None
    now = now or ledger.now()
    first = floor_to_window(start, contract.window)
    origin = f"ledger {ledger.identity()}"
    rows = [
        _row(contract, checkpoint, now) | {"derivedFrom": origin}
        for checkpoint in ledger.checkpoints(table, first)
    ]
    try:
        CHECKPOINTS.upsert(harper, rows)
    except BqhError as error:
        return (
            f"the checkpoints of {contract.id} could not be copied to Harper's table "
            f"{CHECKPOINTS.name}: {error}. The ledger has them, and the next run copies them"
        )
    return None


def _row(contract: TableContract, checkpoint: Checkpoint, now: datetime) -> dict[str, Any]:
    lag = max(now - checkpoint.until, timedelta(0))
    phase = phase_of(lag, contract.sync)
    return {
        "id": checkpoint_id(contract.id, checkpoint.slice),
        "tableId": contract.id,
        "nodeId": node_id(contract.id, checkpoint.slice),
        "lastTimestamp": stored_text(checkpoint.until),
        "phase": phase.value,
        "recordsIngested": checkpoint.rows,
        "lastSyncTime": stored_text(now),
        "batchSize": rows_per_request(phase, contract.sync),
        "lagSeconds": lag.total_seconds(),
    }

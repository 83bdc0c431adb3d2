"""Records what batches are about to delete in the target, before the first delete is sent.

If a turn fails half way, only this record says what it may have deleted.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from bq_harper_assets.ledger.records import Intent, Leases
from bq_harper_assets.ledger.verbs import audit, slice_leases
from bq_harper_assets.ledger.verbs.transitions import change_batch


def intend(
    connection: Connection, leases: Leases, intents: Sequence[Intent], *, allowed: bool
) -> None:
    """Records what all these batches will delete or flag, before their first write is sent.

    Leases must be live and batches still planned, or nothing is recorded. Later turns count these
    rows until the batch is committed or refused, unless someone allowed them.
    """
    if not intents:
        return
    route = leases.route
    slices = {intent.batch.cell.slice for intent in intents}
    _, now = slice_leases.lock_live(connection, leases, slices, "record what is to be deleted")
    for intent in intents:
        change_batch(
            connection,
            route,
            intent.batch.seq,
            deletes_intended=intent.rows,
            rows_held=intent.held,
            deletes_allowed=allowed,
        )
    rows = sum(intent.rows for intent in intents)
    subject = f"{rows} rows of {len(intents)} cells"
    note = audit.Note(
        "delete", subject, "allowed" if allowed else "intended", {"owner": leases.owner}
    )
    audit.record(connection, route, now, note)

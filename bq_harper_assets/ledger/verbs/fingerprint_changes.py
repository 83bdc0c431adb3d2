"""Records fingerprints computed again, without the columns that a newer schema version lacks."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, update

from bq_harper_assets.ledger.errors import LedgerConflict
from bq_harper_assets.ledger.records import CellKey, LedgerRoute
from bq_harper_assets.ledger.store.tables import CELLS
from bq_harper_assets.ledger.verbs import audit, schema_versions, slice_leases

# Only the commit whose rows were counted is changed, and never back to an older schema.
_REBASE = update(CELLS).where(
    CELLS.c.route_id == bindparam("of_route"),
    CELLS.c.slice == bindparam("of_slice"),
    CELLS.c.range_start == bindparam("of_start"),
    CELLS.c.batch == bindparam("of_batch"),
    func.coalesce(CELLS.c.fingerprint_version, CELLS.c.schema_version) <= bindparam("of_version"),
)


def rebase(
    connection: Connection,
    route: LedgerRoute,
    version: int,
    prints: Sequence[tuple[CellKey, int, str]],
) -> int:
    """Gives cells their fingerprint under `version`, each named with its batch; says how many.

    A cell that was committed again since that batch keeps its own fingerprint.
    """
    if not prints:
        return 0
    if schema_versions.find(connection, route, version) is None:
        raise LedgerConflict(
            f"{route.name} has no schema version {version} to tell fingerprints under. Nothing was"
            f" changed. See where the table stands with: bqh status {route.name}"
        )
    # The locks are taken in the order of a commit, so that neither waits for the other.
    _, now = slice_leases.lock(connection, route, {cell.slice for cell, _, _ in prints})
    rows = [
        {
            "of_route": route.id,
            "of_slice": cell.slice,
            "of_start": cell.start,
            "of_batch": batch,
            "of_version": version,
            "fingerprint": fingerprint,
            "fingerprint_version": version,
        }
        for cell, batch, fingerprint in prints
    ]
    changed = connection.execute(_REBASE, rows).rowcount
    note = audit.Note("schema", f"version {version}", "rebased", {"cells": changed})
    audit.record(connection, route, now, note)
    return changed

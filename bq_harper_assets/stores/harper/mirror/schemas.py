"""Schema versions and the schema claim are copied to Harper; the ledger stays the truth.

SchemaMetadata
  id           <table>-<version>
  columns      all of the version's columns, with their names and types in both stores
  changes      what the version changed against the one before, as it was recorded

SchemaLock
  lockId       always schema_check
  nodeId       <host>-<pid> of the one that checks schemas now; without a row nobody does
  expiresAt    after this the claim is free, whatever the row says
"""

from collections.abc import Iterator
from typing import Any

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.verbs.claims import Claim
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.mirror.tables import LOCKS, SCHEMAS, MirrorTable
from bq_harper_assets.sync.schema_sync.version_history import version_steps


def mirror_schemas(ledger: Ledger, harper: HarperClient, contract: TableContract) -> str | None:
    """Copies all versions of the table; returns a warning, which does no harm, if it cannot."""
    try:
        SCHEMAS.upsert(harper, list(_rows(ledger, contract)))
    except BqhError as error:
        return _not_copied(f"the schema versions of {contract.id}", SCHEMAS, error)
    return None


def mirror_claim(harper: HarperClient, claim: Claim) -> str | None:
    """Copies a claim that was taken; returns a warning if Harper did not take the copy."""
    row = {
        "lockId": claim.name,
        "nodeId": claim.owner,
        "acquiredAt": stored_text(claim.acquired_at),
        "expiresAt": stored_text(claim.expires_at),
    }
    try:
        LOCKS.upsert(harper, [row])
    except BqhError as error:
        return _not_copied(f"the claim {claim.name}", LOCKS, error)
    return None


def unmirror_claim(harper: HarperClient, claim: Claim) -> str | None:
    """Deletes the copy of a released claim; returns a warning if Harper keeps it for now."""
    try:
        harper.delete(LOCKS.name, [claim.name])
    except BqhError as error:
        return _not_copied(f"the end of the claim {claim.name}", LOCKS, error)
    return None


def _rows(ledger: Ledger, contract: TableContract) -> Iterator[dict[str, Any]]:
    for step in version_steps(ledger, contract):
        recorded = step.recorded
        yield {
            "id": f"{contract.id}-{recorded.version}",
            "tableId": contract.id,
            "version": recorded.version,
            "recordedAt": stored_text(recorded.recorded_at),
            "recordedBy": recorded.by,
            "cause": recorded.cause,
            "columns": [column.body() for column in step.version.columns],
            "changes": [change.body() for change in step.changes],
            "sourceFingerprint": recorded.source_fingerprint,
        }


def _not_copied(what: str, to: MirrorTable, error: BqhError) -> str:
    return (
        f"{what} could not be copied to Harper's table {to.name}: {error}. The ledger has it, and"
        " it is copied with the next change"
    )

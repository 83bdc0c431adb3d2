"""Records each validation in the ledger, and in Harper's table SyncAudit where users see it.

SyncAudit has a row for the validation as a whole, whose status is healthy, issues_detected or
error, and one for each check that did not pass, whose status is failed.
"""

import json
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.audit import Note
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.stores.harper.encoding.text_forms import stored_text
from bq_harper_assets.stores.harper.mirror.checkpoints import node_id
from bq_harper_assets.stores.harper.mirror.tables import AUDITS
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.validation.verdict import Verdict, overall

_KIND = "validation"
FAILED = "failed"


def record_validation(
    ledger: Ledger,
    harper: HarperClient,
    table: LedgerRoute,
    verdicts: Sequence[Verdict],
    *,
    cell: Cell | None = None,
) -> str | None:
    """Records the verdicts on the whole table or on one cell.

    Returns a warning if Harper did not take them; the ledger has them even then.
    """
    results = {verdict.check: verdict.as_json() for verdict in verdicts}
    subject = cell.key if cell else table.name
    word = overall(verdicts).value
    ledger.record_audit(table, Note(_KIND, subject, word, {"checks": results}))
    try:
        AUDITS.upsert(harper, audit_rows(table.name, verdicts, ledger.now(), cell))
    except BqhError as error:
        return (
            f"the validation of {subject} could not be copied to Harper's table {AUDITS.name}: "
            f"{error}. The ledger has it"
        )
    return None


def audit_rows(
    table: str, verdicts: Sequence[Verdict], at: datetime, cell: Cell | None = None
) -> list[dict[str, Any]]:
    """Makes the rows that SyncAudit keeps of one validation."""
    number = uuid.uuid4().hex[:12]

    def row(check: str, status: str, message: str, shown: Sequence[Verdict]) -> dict[str, Any]:
        results = {table: {verdict.check: verdict.as_json() for verdict in shown}}
        return {
            "id": f"{table}|{stored_text(at)}|{number}|{check}",
            "timestamp": stored_text(at),
            "nodeId": node_id(table, cell.slice if cell else None),
            "tableId": table,
            "partition": cell.key if cell else None,
            "check": check,
            "status": status,
            "message": message,
            "checkResults": json.dumps(results, sort_keys=True),
        }

    failed = [verdict for verdict in verdicts if not verdict.passed]
    summary = "; ".join(f"{verdict.check}: {verdict.status}" for verdict in verdicts)
    return [
        row("all", overall(verdicts).value, summary, verdicts),
        *(row(verdict.check, FAILED, verdict.message, [verdict]) for verdict in failed),
    ]

"""The proofs of many cells: told as one verdict, and kept on record with the other checks."""

from collections import Counter
from collections.abc import Sequence

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LogicalTable
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.validation.audit import record_validation
from bq_harper_assets.validation.cell_proof import CHECK, SHOWN, CellProof
from bq_harper_assets.validation.verdict import ProofStatus, Severity, Verdict

# The first of them that some cell has is the word for all of them.
_WORST_FIRST = (
    ProofStatus.CHECK_FAILED,
    ProofStatus.DIFFERS,
    ProofStatus.SOURCE_CHANGED,
    ProofStatus.NOT_SYNCED,
    ProofStatus.MOVING,
)


def verdicts_of(of_table: Sequence[Verdict], proofs: Sequence[CellProof]) -> tuple[Verdict, ...]:
    """One per check; a window that is equal and still open is neither proved nor at fault."""
    judged = [proof for proof in proofs if proof.status is not ProofStatus.OPEN]
    still_open = len(proofs) - len(judged)
    return (*of_table, _all_proofs(judged, still_open)) if judged else tuple(of_table)


def record_checks(
    ledger: Ledger,
    harper: HarperClient,
    table: LogicalTable,
    of_table: Sequence[Verdict],
    proofs: Sequence[CellProof],
) -> set[str]:
    """The validation, and each cell that differs, to be found by its partition; the warnings."""
    verdicts = verdicts_of(of_table, proofs)
    if not verdicts:
        return set()
    only = proofs[0].cell if len(proofs) == 1 else None
    told = {record_validation(ledger, harper, table, verdicts, cell=only)}
    differing = [proof for proof in proofs if proof.status is ProofStatus.DIFFERS]
    for each in differing if only is None else ():
        told.add(record_validation(ledger, harper, table, [each.verdict], cell=each.cell))
    return {warning for warning in told if warning}


def _all_proofs(proofs: Sequence[CellProof], still_open: int) -> Verdict:
    """Proved only if each is."""
    counted = Counter(each.status for each in proofs)
    status = next((word for word in _WORST_FIRST if counted[word]), ProofStatus.PROVED)
    failed = [each for each in proofs if each.status is status is not ProofStatus.PROVED]
    parts = ", ".join(f"{number} {word.value}" for word, number in sorted(counted.items()))
    message = f"{len(proofs)} cells: {parts}"
    if still_open:
        message += f"; {still_open} more are equal so far and still open"
    if failed:
        message += f"; the first is {failed[0].verdict.message}"
    is_wrong = status in (ProofStatus.DIFFERS, ProofStatus.CHECK_FAILED)
    return Verdict(
        CHECK,
        status,
        status is ProofStatus.PROVED,
        Severity.ERROR if is_wrong else Severity.WARN,
        message,
        {
            "cells": {word.value: number for word, number in counted.items()},
            "rows": sum(each.rows for each in proofs),
            "missing": sum(each.missing for each in proofs),
            "changed": sum(each.changed for each in proofs),
            "phantom": sum(each.phantom for each in proofs),
            "form": "deep" if any(each.deep for each in proofs) else "quick",
        },
        tuple(row for each in proofs for row in each.differences)[:SHOWN],
    )

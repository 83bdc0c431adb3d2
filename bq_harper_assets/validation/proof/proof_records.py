"""Sums up the proofs of many cells in one verdict, and records them with the other checks."""

from collections import Counter
from collections.abc import Sequence

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets.ledger.verbs.proofs import Judged
from bq_harper_assets.stores.harper.client import HarperClient
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.validation.audit import record_validation
from bq_harper_assets.validation.proof.cell_proof import DIFFERENCES_SHOWN, PROOF_CHECK, CellProof
from bq_harper_assets.validation.verdict import ProofStatus, Severity, Verdict

# The first of these statuses that some cell has is the status of all cells together.
WORST_FIRST = (
    ProofStatus.CHECK_FAILED,
    ProofStatus.DIFFERS,
    ProofStatus.SOURCE_CHANGED,
    ProofStatus.NOT_SYNCED,
    ProofStatus.MOVING,
)
WRONG = (ProofStatus.DIFFERS, ProofStatus.CHECK_FAILED)
# These are findings about a cell; every other status says that the cell could not be compared.
_JUDGED = (
    ProofStatus.PROVED,
    ProofStatus.OPEN,
    ProofStatus.DIFFERS,
    ProofStatus.SOURCE_CHANGED,
)


def record_checks(
    ledger: Ledger,
    harper: HarperClient,
    table: LedgerRoute,
    of_table: Sequence[Verdict],
    proofs: Sequence[CellProof],
) -> set[str]:
    """Records the validation, what each proof found and each differing cell; returns warnings."""
    judged = [
        Judged(
            cell=cell_key(each.cell),
            batch=each.batch,
            status=each.status.value,
            deep=each.deep,
            source_changed=each.source_changed,
        )
        for each in proofs
        if each.batch is not None and each.status in _JUDGED
    ]
    ledger.record_proofs(table, judged)
    verdicts = (*of_table, verdict_of(proofs)) if proofs else tuple(of_table)
    if not verdicts:
        return set()
    only = proofs[0].cell if len(proofs) == 1 else None
    told = {record_validation(ledger, harper, table, verdicts, cell=only)}
    differing = [proof for proof in proofs if proof.status is ProofStatus.DIFFERS]
    for each in differing if only is None else ():
        told.add(record_validation(ledger, harper, table, [each.verdict], cell=each.cell))
    return {warning for warning in told if warning}


def verdict_of(proofs: Sequence[CellProof]) -> Verdict:
    """Passes only if each cell is proved, or is open and equal so far; without cells it fails."""
    if not proofs:
        text = "nothing is synced there, so that there is nothing to prove"
        return Verdict(
            check=PROOF_CHECK,
            status=ProofStatus.NOT_SYNCED,
            passed=False,
            severity=Severity.WARN,
            message=text,
        )
    counted = Counter(each.status for each in proofs)
    best = ProofStatus.PROVED if counted[ProofStatus.PROVED] else ProofStatus.OPEN
    status = next((word for word in WORST_FIRST if counted[word]), best)
    failed = [each for each in proofs if each.status is status and status in WORST_FIRST]
    words = Counter(each.words for each in proofs)
    parts = ", ".join(f"{number:,} {word}" for word, number in sorted(words.items()))
    message = f"{len(proofs):,} cells: {parts}"
    if failed:
        message += f"; the first is {failed[0].verdict.message}"
    return Verdict(
        check=PROOF_CHECK,
        status=status,
        passed=not failed,
        severity=Severity.ERROR if status in WRONG else Severity.WARN,
        message=message,
        metadata={
            "cells": {word.value: number for word, number in counted.items()},
            "rows": sum(each.rows for each in proofs),
            "missing": sum(each.missing for each in proofs),
            "changed": sum(each.changed for each in proofs),
            "phantom": sum(each.phantom for each in proofs),
            "form": "deep" if any(each.deep for each in proofs) else "quick",
        },
        rows=tuple(row for each in proofs for row in each.differences)[:DIFFERENCES_SHOWN],
    )

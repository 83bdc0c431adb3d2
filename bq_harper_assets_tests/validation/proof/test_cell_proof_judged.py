"""What the counts of one cell make of it, without a store."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.questions.status import CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.sync.ledger_facts import cell_key
from bq_harper_assets.validation.proof.cell_differences import Explained
from bq_harper_assets.validation.proof.cell_proof import (
    CellProof,
    SourceLook,
    failed_proof,
    judged,
    not_provable,
    told_without,
)
from bq_harper_assets.validation.verdict import Difference, DifferenceKind, ProofStatus, Severity
from bq_harper_assets_tests.schema.samples import contract
from bq_harper_assets_tests.sync.plan.test_shared_columns import COMMIT
from bq_harper_assets_tests.validation.proof.test_table_proof import CELL, HOUR, NOON

LOOK = SourceLook(t=NOON, is_query=False, has_changed=False, deep=False)
LATE = replace(LOOK, t=NOON + timedelta(minutes=1), has_changed=True)
CLOSED = replace(COMMIT, upto=NOON + HOUR)
SYNC = "bqh sync orders --from 2026-01-05T12:00 --to 2026-01-05T13:00"


def some(count: int) -> Any:
    return np.arange(count, dtype=np.uint64)


def proof_of(
    diff: CellDiff, look: SourceLook = LOOK, explained: Explained | None = None, **declared: Any
) -> CellProof:
    told = explained or Explained()
    return judged(CELL, CLOSED, contract(**declared), look, diff, told)


EQUAL = CellDiff(ids=9, read=9)


@pytest.mark.parametrize(
    ("look", "status", "message"),
    [
        (
            LOOK,
            ProofStatus.PROVED,
            "proved by stored hash, 9 rows; the deep form (--deep) compares all values",
        ),
        (
            replace(LOOK, deep=True),
            ProofStatus.PROVED,
            "proved, 9 rows are equal in all values",
        ),
        (LATE, ProofStatus.PROVED, "proved by stored hash, 9 rows; the deep form"),
    ],
)
def test_a_cell_without_a_difference_is_proved_in_its_form(
    look: SourceLook, status: ProofStatus, message: str
) -> None:
    proof = proof_of(EQUAL, look)
    assert (proof.status, proof.deep, proof.batch, proof.rows) == (status, look.deep, 1, 9)
    assert proof.message.startswith(message)
    assert (proof.source_changed, proof.t) == (look.has_changed, look.t)
    assert (proof.verdict.passed, proof.verdict.severity) == (True, Severity.WARN)


@pytest.mark.parametrize(
    ("diff", "counts"),
    [
        (replace(EQUAL, missing=some(2)), (2, 0, 0)),
        (replace(EQUAL, changed=some(1)), (0, 1, 0)),
        (replace(EQUAL, vanished=["a"]), (0, 0, 1)),
        (replace(EQUAL, read=10), (1, 0, 0)),  # a row that can have no id
    ],
)
def test_each_difference_alone_is_one(diff: CellDiff, counts: tuple[int, int, int]) -> None:
    proof = proof_of(diff)
    assert (proof.missing, proof.changed, proof.phantom) == counts
    missing, changed, phantom = counts
    assert proof.message == f"{missing} missing, {changed} changed, {phantom} phantom"
    assert proof.status is ProofStatus.DIFFERS
    assert (proof.verdict.passed, proof.verdict.severity) == (False, Severity.ERROR)
    assert proof.verdict.message == f"{CELL.key}: {proof.message}"


def test_rows_in_quarantine_are_not_missing() -> None:
    named = (Difference(DifferenceKind.MISSING, "a"),)
    explained = Explained(quarantined=2, nameless=3, differences=named)
    all_told = proof_of(replace(EQUAL, missing=some(2), read=12), explained=explained)
    assert (all_told.status, all_told.missing, all_told.quarantined) == (ProofStatus.PROVED, 0, 5)
    fewer = proof_of(replace(EQUAL, missing=some(3), read=13), explained=explained)
    assert (fewer.missing, fewer.quarantined, fewer.differences) == (2, 5, named)
    # Of four rows without an id that are in quarantine only two are still in the source.
    gone = proof_of(replace(EQUAL, read=11), explained=Explained(nameless=4))
    assert (gone.status, gone.missing, gone.quarantined) == (ProofStatus.PROVED, 0, 2)


def test_rows_that_the_contract_keeps_are_no_phantoms() -> None:
    diff = replace(EQUAL, vanished=["a", "b"])
    kept = proof_of(diff, deletes="keep")
    assert (kept.status, kept.kept, kept.phantom) == (ProofStatus.PROVED, 2, 0)
    mirrored = proof_of(diff)
    assert (mirrored.status, mirrored.kept, mirrored.phantom) == (ProofStatus.DIFFERS, 0, 2)


def test_rows_that_should_have_been_flagged_and_are_not_are_phantoms() -> None:
    proof = proof_of(replace(EQUAL, vanished=["a", "b"]), deletes="flag")
    assert (proof.status, proof.kept, proof.phantom) == (ProofStatus.DIFFERS, 0, 2)


@pytest.mark.parametrize(
    ("is_query", "past"),
    [
        (True, "what is read by a query has no past"),
        (False, "BigQuery no longer keeps that instant"),
    ],
)
def test_a_source_without_a_past_that_has_changed_is_no_difference(
    is_query: bool, past: str
) -> None:
    proof = proof_of(replace(EQUAL, changed=some(1)), replace(LATE, is_query=is_query))
    assert (proof.status, proof.t) == (ProofStatus.SOURCE_CHANGED, LATE.t)
    assert proof.message == (
        f"changed in BigQuery since its sync at 2026-01-05 12:00:00, and {past}; sync it: {SYNC}."
        " By what it is now: 0 missing, 1 changed, 0 phantom"
    )
    assert (proof.verdict.passed, proof.verdict.severity) == (False, Severity.WARN)
    # Read as of its commit, or unchanged since, it differs.
    for look in (replace(LATE, t=NOON), replace(LATE, has_changed=False)):
        differs = proof_of(replace(EQUAL, changed=some(1)), look)
        assert (differs.status, differs.t) == (ProofStatus.DIFFERS, NOON)


def test_an_open_cell_is_equal_so_far() -> None:
    commit = replace(CLOSED, upto=NOON + HOUR / 2, is_closed=False)
    proof = judged(CELL, commit, contract(), LOOK, EQUAL, Explained())
    assert proof.status is ProofStatus.OPEN
    assert proof.message == "equal so far, up to 2026-01-05 12:30:00; still open"
    assert proof.words == "open"


def test_columns_that_were_not_compared_are_told() -> None:
    proof = proof_of(EQUAL)
    assert told_without(proof, ()) == proof
    told = told_without(proof, ("load", "name"))
    assert told.message == f"{proof.message}; compared without load, name, newer than its sync"
    assert told.left_out == ("load", "name")
    assert told.verdict.metadata["compared_without"] == ["load", "name"]


def test_what_was_not_looked_at_counts_no_rows() -> None:
    proof = failed_proof(CELL, BqhError("Harper is away"))
    assert (proof.status, proof.message) == (ProofStatus.CHECK_FAILED, "Harper is away")
    assert (proof.verdict.passed, proof.verdict.severity) == (False, Severity.ERROR)
    assert proof.verdict.metadata == {
        **dict.fromkeys(("rows", "missing", "changed", "phantom", "quarantined", "kept"), 0),
        "snapshot": None,
        "form": "quick",
        "source_changed_since": False,
        "compared_without": [],
    }
    of_deep = replace(proof, status=ProofStatus.PROVED, deep=True, t=NOON)
    assert (of_deep.words, of_deep.verdict.metadata["form"]) == ("proved", "deep")
    assert replace(of_deep, deep=False).words == "proved by stored hash"
    assert of_deep.verdict.metadata["snapshot"] == NOON.isoformat()


SYNCED = CellRecord(cell=cell_key(CELL), state=CellState.SYNCED, commit=CLOSED, marks=0)
NEXT = f"nothing can be said of it until then. Next: {SYNC}"
HALF = "waits to be synced again, because its last sync failed{} and may have written some of its"


@pytest.mark.parametrize(
    ("record", "why", "status", "message"),
    [
        (None, "", ProofStatus.NOT_SYNCED, "was never synced"),
        (replace(SYNCED, commit=None), "", ProofStatus.NOT_SYNCED, "was never synced"),
        (
            replace(SYNCED, state=CellState.PLANNED),
            *("", ProofStatus.MOVING, "is being synced, so nothing can be said of it now"),
        ),
        (
            replace(SYNCED, state=CellState.FAILED),
            *("", ProofStatus.MOVING, f"{HALF.format('')} rows; {NEXT}"),
        ),
        (
            replace(SYNCED, state=CellState.FAILED),
            *("away", ProofStatus.MOVING, f"{HALF.format(' (away)')} rows; {NEXT}"),
        ),
        (
            replace(SYNCED, marks=1),
            "",
            ProofStatus.MOVING,
            f"waits to be synced again, because a row of it has moved to another window; {NEXT}",
        ),
    ],
)
def test_a_cell_that_cannot_be_compared_is_told_with_why(
    record: CellRecord | None, why: str, status: ProofStatus, message: str
) -> None:
    def why_failed(key: CellKey) -> str:
        assert key == cell_key(CELL)
        return why

    proof = not_provable(CELL, record, "orders", why_failed)
    assert proof == CellProof(cell=CELL, status=status, message=message)


def test_a_synced_cell_can_be_compared() -> None:
    assert not_provable(CELL, SYNCED, "orders") is None

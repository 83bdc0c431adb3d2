"""A cell proof says what comparing the rows of one cell found, or why they were not compared."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from bq_harper_assets.contract.table import TableContract
from bq_harper_assets.errors import BqhError
from bq_harper_assets.ledger.questions.status import CellCommit, CellRecord
from bq_harper_assets.ledger.records import CellKey, CellState
from bq_harper_assets.sync.cells.cell import Cell
from bq_harper_assets.sync.diff.diff_job import CellDiff
from bq_harper_assets.validation.proof.cell_differences import Explained
from bq_harper_assets.validation.verdict import Difference, ProofStatus, Severity, Verdict

PROOF_CHECK = "proof"
DIFFERENCES_SHOWN = 20  # rows named for each cell
BY_STORED_HASH = "proved by stored hash"


@dataclass(frozen=True, kw_only=True)
class CellProof:
    """A cell proof is what is known of one cell."""

    cell: Cell
    status: ProofStatus
    message: str
    t: datetime | None = None
    rows: int = 0
    missing: int = 0
    changed: int = 0
    phantom: int = 0
    quarantined: int = 0  # rows that Harper cannot hold, as the ledger says
    kept: int = 0  # gone from the source, and kept in Harper as the contract says
    source_changed: bool = False  # since T; the next revisit updates the cell
    deep: bool = False
    differences: tuple[Difference, ...] = ()
    left_out: tuple[str, ...] = ()  # columns that came after the cell was synced
    batch: int | None = None  # the batch of the commit that was compared

    @property
    def words(self) -> str:
        """Gives the status in the words for users: a quick proof relies on the stored hashes."""
        if self.status is ProofStatus.PROVED and not self.deep:
            return BY_STORED_HASH
        return self.status.value

    @property
    def verdict(self) -> Verdict:
        """Gives the proof as a verdict; an open cell passes so far, but is not called proved."""
        failed = self.status in (ProofStatus.DIFFERS, ProofStatus.CHECK_FAILED)
        return Verdict(
            check=PROOF_CHECK,
            status=self.status,
            passed=self.status in (ProofStatus.PROVED, ProofStatus.OPEN),
            severity=Severity.ERROR if failed else Severity.WARN,
            message=f"{self.cell.key}: {self.message}",
            metadata={
                "rows": self.rows,
                "missing": self.missing,
                "changed": self.changed,
                "phantom": self.phantom,
                "quarantined": self.quarantined,
                "kept": self.kept,
                "snapshot": self.t.isoformat() if self.t else None,
                "form": "deep" if self.deep else "quick",
                "source_changed_since": self.source_changed,
                "compared_without": list(self.left_out),
            },
            rows=self.differences,
        )


@dataclass(frozen=True, kw_only=True)
class SourceLook:
    """A look at the source says as of when its rows of a cell were read, and how."""

    t: datetime
    is_query: bool  # what is read by a query has no past
    has_changed: bool  # the cell's rows, since its commit
    deep: bool  # all values are compared, not only the stored hashes


def judged(
    cell: Cell,
    commit: CellCommit,
    contract: TableContract,
    look: SourceLook,
    diff: CellDiff,
    explained: Explained,
) -> CellProof:
    """Judges a cell by its rows."""
    keeps = contract.deletes == "keep"
    nameless = diff.read - diff.ids
    missing = len(diff.missing) - explained.quarantined + max(0, nameless - explained.nameless)
    phantom = 0 if keeps else len(diff.vanished)
    quarantined = explained.quarantined + min(nameless, explained.nameless)
    # It was compared with the source as it is now, because BigQuery has no past of it.
    is_late = look.has_changed and look.t != commit.t
    if missing or len(diff.changed) or phantom:
        status = ProofStatus.SOURCE_CHANGED if is_late else ProofStatus.DIFFERS
        message = f"{missing} missing, {len(diff.changed)} changed, {phantom} phantom"
        if is_late:
            since = _changed_since(cell, commit, contract.id, look)
            message = f"{since}. By what it is now: {message}"
    elif not commit.is_closed:
        status, message = ProofStatus.OPEN, f"equal so far, up to {commit.upto:%F %T}; still open"
    elif look.deep:
        status, message = ProofStatus.PROVED, f"proved, {diff.read} rows are equal in all values"
    else:
        status = ProofStatus.PROVED
        message = f"{BY_STORED_HASH}, {diff.read} rows; the deep form (--deep) compares all values"
    return CellProof(
        cell=cell,
        status=status,
        message=message,
        t=look.t if is_late else commit.t,
        rows=diff.read,
        missing=missing,
        changed=len(diff.changed),
        phantom=phantom,
        quarantined=quarantined,
        kept=len(diff.vanished) if keeps else 0,
        source_changed=look.has_changed,
        deep=look.deep,
        differences=explained.differences,
        batch=commit.batch,
    )


def _changed_since(cell: Cell, commit: CellCommit, table: str, look: SourceLook) -> str:
    past = (
        "what is read by a query has no past"
        if look.is_query
        else "BigQuery no longer keeps that instant"
    )
    return (
        f"changed in BigQuery since its sync at {commit.t:%F %T}, and {past}; "
        f"sync it: {_sync(cell, table)}"
    )


def told_without(proof: CellProof, left_out: tuple[str, ...]) -> CellProof:
    """Adds to a proof which columns were not compared."""
    if not left_out:
        return proof
    without = f"{proof.message}; compared without {', '.join(left_out)}, newer than its sync"
    return replace(proof, message=without, left_out=left_out)


def not_provable(
    cell: Cell,
    record: CellRecord | None,
    table: str,
    why_failed: Callable[[CellKey], str] = lambda cell: "",
) -> CellProof | None:
    """Says why a cell cannot be compared; None if it can."""
    if record is None or record.commit is None:
        return CellProof(cell=cell, status=ProofStatus.NOT_SYNCED, message="was never synced")
    if record.state is CellState.PLANNED:
        return moving(cell)
    if record.state is CellState.FAILED:
        return half_written(cell, table, why_failed(record.cell))
    if record.marks:
        return marked(cell, table)
    return None


def moving(cell: Cell) -> CellProof:
    """Makes the proof of a cell that a run is writing."""
    return CellProof(
        cell=cell,
        status=ProofStatus.MOVING,
        message="is being synced, so nothing can be said of it now",
    )


def marked(cell: Cell, table: str) -> CellProof:
    """Makes the proof of a cell that needs a sync, because another window's sync wrote its row."""
    return CellProof(
        cell=cell,
        status=ProofStatus.MOVING,
        message="waits to be synced again, because a row of it has moved to another window;"
        f" nothing can be said of it until then. Next: {_sync(cell, table)}",
    )


def half_written(cell: Cell, table: str, why: str) -> CellProof:
    """Makes the proof of a cell whose newest sync failed: some rows may be newer than a commit."""
    because = f" ({why})" if why else ""
    return CellProof(
        cell=cell,
        status=ProofStatus.MOVING,
        message=f"waits to be synced again, because its last sync failed{because} and may have"
        " written some of its rows; nothing can be said of it until then."
        f" Next: {_sync(cell, table)}",
    )


def _sync(cell: Cell, table: str) -> str:
    """Gives the command that syncs the cell's range."""
    return f"bqh sync {table} {cell.range.options}".rstrip()


def failed_proof(cell: Cell, error: BqhError) -> CellProof:
    """Makes the proof of a cell for which a store did not answer."""
    return CellProof(cell=cell, status=ProofStatus.CHECK_FAILED, message=str(error))

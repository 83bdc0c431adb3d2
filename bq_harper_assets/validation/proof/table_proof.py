"""Says whether a table is the same in both stores, by the newest proofs of all its cells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import CellKey, LedgerRoute
from bq_harper_assets.ledger.verbs.proofs import ProvedCells
from bq_harper_assets.validation.proof.cell_proof import PROOF_CHECK, CellProof
from bq_harper_assets.validation.proof.presence import newest_loss
from bq_harper_assets.validation.proof.proof_records import WORST_FIRST, WRONG, verdict_of
from bq_harper_assets.validation.verdict import (
    Difference,
    ProofStatus,
    Severity,
    Status,
    Verdict,
)

# These names in the metadata are for what the run that recorded the verdict has found itself.
THIS_RUN, STATUS_OF_RUN = "this_run", "status_of_this_run"
_NAMED = 5  # cells that differ, as listed in a message


@dataclass(frozen=True, kw_only=True)
class TableCells:
    """The cells of a table are counted by whether they are proved, and why not."""

    cells: int = 0
    by_hash: int = 0  # proved, by the hashes that are stored with the rows
    by_values: int = 0  # proved, by all values
    oldest: datetime | None = None  # the oldest snapshot as of which a cell is proved
    newest: datetime | None = None
    open: int = 0
    changed_since: int = 0  # cells that changed in BigQuery since, whatever else is known of them
    source_changed: int = 0  # of these, compared with BigQuery's newest rows only, and different
    not_proved: int = 0  # cells that were not proved since their sync
    waiting: int = 0  # cells that wait for a sync, or for the end of one
    differing: int = 0

    @property
    def proved(self) -> int:
        """Counts the cells that are proved, by hash or by values."""
        return self.by_hash + self.by_values

    @property
    def status(self) -> ProofStatus:
        """Sums up all cells in one status."""
        if not self.cells:
            return ProofStatus.NOT_SYNCED
        if self.differing:
            return ProofStatus.DIFFERS
        if self.source_changed:
            return ProofStatus.SOURCE_CHANGED
        if self.not_proved or self.waiting:
            return ProofStatus.PARTLY_PROVED
        return ProofStatus.PROVED if self.proved else ProofStatus.OPEN

    def __str__(self) -> str:
        if not self.cells:
            return "nothing is synced yet"
        text = f"{self.proved:,} of {self.cells - self.open:,} closed cells are proved"
        if self.oldest and self.newest:
            forms = ((self.by_hash, "by stored hash"), (self.by_values, "by all values"))
            how = ", ".join(f"{number:,} {form}" for number, form in forms if number)
            first, last = f"{self.oldest:%F %T}", f"{self.newest:%F %T}"
            text += f" ({how}), as of {first if first == last else f'{first} to {last}'} UTC"
        others = (
            (self.open, "were open at their sync"),
            (self.changed_since, "have changed in BigQuery since"),
            (self.not_proved, "were not proved since their sync"),
            (self.waiting, "are being synced or wait for it"),
            (self.differing, "differ"),
        )
        return "; ".join([text, *(f"{number:,} {what}" for number, what in others if number)])

    def figures(self) -> dict[str, Any]:
        """Returns the counts for metadata."""
        return {
            "cells": self.cells,
            "cells_proved": self.proved,
            "cells_proved_by_stored_hash": self.by_hash,
            "cells_proved_by_all_values": self.by_values,
            "cells_open": self.open,
            "cells_changed_since": self.changed_since,
            "cells_not_proved": self.not_proved,
            "cells_waiting": self.waiting,
            "cells_differing": self.differing,
            "proved_as_of": self.oldest.isoformat() if self.oldest else None,
        }


def count_cells(known: Sequence[ProvedCells]) -> TableCells:
    """Counts each cell once; one whose source has changed since may be proved as of its sync."""
    found = TableCells()
    for each in known:
        found = replace(found, cells=found.cells + each.cells)
        if not each.is_clean:
            # A turn may be writing an open cell at any time, so that it counts as open only.
            if each.is_closed:
                found = replace(found, waiting=found.waiting + each.cells)
            else:
                found = replace(found, open=found.open + each.cells)
            continue
        if each.source_changed:
            found = replace(found, changed_since=found.changed_since + each.cells)
        if not each.is_closed:
            found = replace(found, open=found.open + each.cells)
        if each.status == ProofStatus.DIFFERS:
            found = replace(found, differing=found.differing + each.cells)
        elif not each.is_closed:
            pass  # whatever was found of it, it may change at any time
        elif each.status == ProofStatus.PROVED:
            found = replace(
                found,
                by_hash=found.by_hash + (0 if each.deep else each.cells),
                by_values=found.by_values + (each.cells if each.deep else 0),
                oldest=min(found.oldest or each.oldest, each.oldest),
                newest=max(found.newest or each.newest, each.newest),
            )
        elif each.status == ProofStatus.SOURCE_CHANGED:
            found = replace(found, source_changed=found.source_changed + each.cells)
        else:
            found = replace(found, not_proved=found.not_proved + each.cells)
    return found


def check_table(ledger: Ledger, table: LedgerRoute | None, proofs: Sequence[CellProof]) -> Verdict:
    """Judges the table by the proofs on record; `proofs` are those of this run, also recorded."""
    cells = count_cells(ledger.proved_cells(table) if table else ())
    named = ledger.cells_judged(table, [ProofStatus.DIFFERS], _NAMED) if table else ()
    return table_verdict(cells, named, proofs, newest_loss(ledger, table) if table else None)


def table_verdict(
    cells: TableCells,
    differing: Sequence[CellKey],
    proofs: Sequence[CellProof],
    lost: str | None = None,
) -> Verdict:
    """Fails the table while a cell differs, whichever run has found it.

    Cells that nobody has compared since their sync are counted, and are no failure. `lost`
    describes rows that no window finds: they fail the table until a later check finds none.
    """
    status: Status = cells.status
    message, metadata = str(cells), cells.figures()
    if differing:
        more = ", ..." if cells.differing > len(differing) else ""
        message += f": {', '.join(map(str, differing))}{more}"
    if lost:
        status = ProofStatus.DIFFERS
        message += f". {lost}"
    rows: tuple[Difference, ...] = ()
    if proofs:
        of_run = verdict_of(proofs)
        status = min(status, of_run.status, key=_rank) if not of_run.passed else status
        metadata |= {THIS_RUN: of_run.message, STATUS_OF_RUN: of_run.status.value}
        rows = of_run.rows
        if not of_run.passed:
            message += f". Of this run, {of_run.message}"
    return Verdict(
        check=PROOF_CHECK,
        status=status,
        passed=status not in WORST_FIRST,
        severity=Severity.ERROR if status in WRONG else Severity.WARN,
        message=message,
        metadata=metadata,
        rows=rows,
    )


def _rank(status: Status) -> int:
    return next((at for at, word in enumerate(WORST_FIRST) if word is status), len(WORST_FIRST))

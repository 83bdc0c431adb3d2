"""Proofs of cells are printed as lines for a person, and as JSON for programs."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from bq_harper_assets.cli.output.equality import Equality

if TYPE_CHECKING:
    from bq_harper_assets.validation.proof.cell_proof import CellProof
    from bq_harper_assets.validation.verdict import Difference

_COUNTS = ("rows", "missing", "changed", "phantom", "quarantined", "kept")
SIGNS = {"missing": "-", "phantom": "+", "changed": "~", "lost": "?"}
_WIDTH = 12
PROOF_HEADER = " ".join(("window".ljust(16), *(count.rjust(_WIDTH) for count in _COUNTS), "as of"))


def window_lines(proofs: "Iterable[CellProof]") -> Iterator[str]:
    """Writes a line for each window, and below it the rows that differ."""
    for window, group in groupby(proofs, lambda proof: proof.cell.window):
        of_window = list(group)
        counts = (f"{sum(getattr(p, count) for p in of_window):,}" for count in _COUNTS)
        instants = [proof.t for proof in of_window if proof.t]
        t = f"{min(instants):%F %T}" if instants else "-"
        words = _words(of_window)
        yield " ".join((window.key, *(c.rjust(_WIDTH) for c in counts), t, words))
        for proof in of_window:
            yield from _row_lines(proof)


def _words(of_window: "Sequence[CellProof]") -> str:
    """Says how the window's cells were judged; where some differ, how many do."""
    differing = sum(proof.status.value == "differs" for proof in of_window)
    if differing and len(of_window) > 1:
        return f"differs in {differing:,} of {len(of_window):,} cells"
    return ", ".join(sorted({proof.words for proof in of_window}))


def _row_lines(proof: "CellProof") -> Iterator[str]:
    if not proof.differences:
        return
    yield f"  {proof.cell.key}"
    yield from (f"  {diff_line(difference)}" for difference in proof.differences)
    if more := proof.missing + proof.changed + proof.phantom - len(proof.differences):
        yield f"  ... and {more:,} more"


def diff_line(difference: "Difference") -> str:
    """Writes a row that differs like a line of a diff: what the source has comes first."""
    columns = (f" {name}: {a!r} -> {b!r}" for name, (a, b) in difference.columns.items())
    return f"{SIGNS[difference.kind]} {difference.kind} {difference.id}{','.join(columns)}"


def equality_json(found: Equality) -> dict[str, Any]:
    """Returns what a proof found as programs read it."""
    return {
        "table": found.contract.id,
        "target": found.contract.target.table,
        **found.as_json(),
        **{count: sum(getattr(proof, count) for proof in found.proofs) for count in _COUNTS},
        "cells": {
            proof.cell.key: {
                "status": proof.status.value,
                **{count: getattr(proof, count) for count in _COUNTS},
                "snapshot": proof.t.isoformat() if proof.t else None,
                "source_changed_since": proof.source_changed,
                "message": proof.message,
                "differences": [difference.as_json() for difference in proof.differences],
            }
            for proof in found.proofs
        },
    }

"""Proofs say whether a table is equal now: in how many cells, as of when, what changed since."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.windows_text import some_windows
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells.cell import Cell
    from bq_harper_assets.sync.cells.window import Window
    from bq_harper_assets.validation.proof.cell_proof import CellProof
    from bq_harper_assets.validation.verdict import Verdict

_WORDS = {
    ExitCode.DONE: "equal",
    ExitCode.ERROR: "error",
    ExitCode.DIFFERS: "differs",
    ExitCode.PARTLY: "partly",
    ExitCode.CHANGED_SINCE: "changed_since",
}


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """These cells were not looked at, for four reasons."""

    never_synced: "tuple[Cell, ...]" = ()  # of closed windows in the range
    closed_since: "tuple[Cell, ...]" = ()  # synced while open: what came after is not in Harper
    outside: int = 0  # cells that are synced, and not in the range
    given_up: int = 0  # cells, after a store did not answer

    def __bool__(self) -> bool:
        return bool(self.never_synced or self.closed_since or self.outside or self.given_up)

    def __str__(self) -> str:
        said = []
        if self.never_synced:
            windows = some_windows(cell.window for cell in self.never_synced)
            said.append(f"{len(self.never_synced):,} cells that were never synced ({windows})")
        if self.closed_since:
            windows = some_windows(cell.window for cell in self.closed_since)
            said.append(
                f"the rest of {_cells(self.closed_since)}, whose window has closed since the last"
                f" sync ({windows})"
            )
        if self.outside:
            said.append(f"{self.outside:,} synced cells outside the range")
        if self.given_up:
            said.append(f"{self.given_up:,} cells, because a store did not answer")
        return "; ".join(said)


@dataclass(frozen=True, kw_only=True)
class Equality:
    """This sums up what proofs of a table's cells say of it at one moment."""

    contract: TableContract
    at: datetime  # when BigQuery was looked at
    proofs: "Sequence[CellProof]"
    unseen: Unseen
    deep: bool = False
    presence: "Verdict | None" = None  # of the whole table, if that was looked at
    out_of_step: str | None = None  # how ledger and Harper contradict each other

    @property
    def exit_code(self) -> ExitCode:
        """Gives the code of the worst: a difference, else a failed look, else a change."""
        from bq_harper_assets.validation.verdict import ProofStatus

        looks = [proof.verdict for proof in self.proofs]
        looks += [self.presence] if self.presence else []
        statuses = {verdict.status for verdict in looks}
        if ProofStatus.DIFFERS in statuses:
            return ExitCode.DIFFERS
        if any(verdict.could_not_look for verdict in looks):
            return ExitCode.ERROR
        judged = {ProofStatus.PROVED, ProofStatus.OPEN, ProofStatus.SOURCE_CHANGED}
        if statuses - judged:
            return ExitCode.PARTLY
        if self.out_of_step:  # of what the ledger does not know, nothing was compared
            return ExitCode.PARTLY
        if self.changed:
            return ExitCode.CHANGED_SINCE
        is_due = self.unseen.never_synced or self.unseen.closed_since
        return ExitCode.PARTLY if is_due else ExitCode.DONE

    @property
    def word(self) -> str:
        """Gives the exit code as a word, for programs."""
        return _WORDS[self.exit_code]

    @property
    def equal(self) -> "list[CellProof]":
        """Lists the cells that are equal now: proved as of their sync, and unchanged since."""
        return [proof for proof in self._with("proved") if not proof.source_changed]

    @property
    def changed(self) -> "list[Window]":
        """Lists the windows that BigQuery has changed since their sync."""
        return sorted({proof.cell.window for proof in self.proofs if _has_changed(proof)})

    def lines(self, *, repairs: bool = False) -> Iterator[str]:
        """Writes the answer and what to type; with `repairs` it does not advise a repair."""
        name = self.contract.id
        as_of = f"as of {self.at:%F %T} UTC"
        wrong = [p for p in self.proofs if p.status.value == "differs" or _has_changed(p)]
        if wrong:
            count = len(self.equal)
            how = f"{'1 is' if count == 1 else f'{count:,} are'} equal ({self._how()})"
            cells = f"{len(wrong):,} of {_cells(self.proofs)}"
            rest = how if self.equal else "none is known to be equal"
            yield f"{name} is not equal to BigQuery {as_of} in {cells}; {rest}"
        elif self.equal:
            yield f"{name} is equal to BigQuery {as_of} in {_cells(self.equal)} ({self._how()})"
        else:
            yield f"no cell of {name} is known to be equal to BigQuery {as_of}"
        for what, proofs in (
            ("equal so far, in a window that is still open", self._open()),
            ("not looked at, because a store did not answer", self._with("check_failed")),
        ):
            if proofs:
                yield f"  {what}: {_cells(proofs)}"
        if self.moving:
            yield f"  {self.not_judged}"
        if differing := self._with("differs"):
            windows = some_windows(proof.cell.window for proof in differing)
            # What only the deep form sees, only the deep repair mends.
            deep = " --deep" if self.deep else ""
            then = "" if repairs else self._advice(f"repair {name}{deep}")
            yield f"  rows differ in {_cells(differing)} ({windows}){then}"
        if rows := sum(proof.quarantined for proof in self.proofs):
            told = "1 row" if rows == 1 else f"{rows:,} rows"
            yield f"  cannot be stored, in quarantine: {told}; see: bqh quarantine list {name}"
        if self.changed:
            then = self._advice(f"sync {name} --changed")
            yield f"  changed in BigQuery since: {some_windows(self.changed)}{then}"
        if self.unseen:
            is_due = self.unseen.never_synced or self.unseen.closed_since
            then = self._advice(f"sync {name} --changed") if is_due else ""
            yield f"  not looked at: {self.unseen}{then}"

    def _advice(self, command: str) -> str:
        """Names what to type; nothing while every sync is refused."""
        return "" if self.out_of_step else f"; type: bqh {command}"

    @property
    def moving(self) -> bool:
        """Says whether some cells cannot be judged before their next commit."""
        return bool(self._with("moving"))

    @property
    def not_judged(self) -> str:
        """Says how many cells were not judged, why, and what to type if nobody moves them."""
        cells = _cells(self._with("moving"))
        advice = f"; if no run is at work, type: bqh sync {self.contract.id} --changed"
        return (
            f"not judged, because a run is writing them or has to: {cells}"
            f"{'' if self.out_of_step else advice}"
        )

    def as_json(self) -> dict[str, Any]:
        """Returns the answer as programs read it."""
        return {
            "verdict": self.word,
            "looked_at": self.at.isoformat(),
            "out_of_step": self.out_of_step,
            "equal_cells": len(self.equal),
            "changed_since": [window.key for window in self.changed],
            "not_looked_at": {
                "never_synced": [cell.key for cell in self.unseen.never_synced],
                "closed_since": [cell.key for cell in self.unseen.closed_since],
                "outside_the_range": self.unseen.outside,
                "given_up": self.unseen.given_up,
            },
            "presence": self.presence.as_json() if self.presence else None,
        }

    def _with(self, status: str) -> "list[CellProof]":
        return [proof for proof in self.proofs if proof.status.value == status]

    def _open(self) -> "list[CellProof]":
        told = set(self.unseen.closed_since)
        return [p for p in self._with("open") if not p.source_changed and p.cell not in told]

    def _how(self) -> str:
        """Says how cells were proved: only --deep notices a wrong value under a right hash."""
        by_values = sum(proof.deep for proof in self.equal)
        by_hash = len(self.equal) - by_values
        said = [f"{by_values:,} by all values"] if by_values else []
        if by_hash:
            said.insert(0, f"{by_hash:,} proved by stored hash")
            if not by_values:
                said.append("--deep compares all values")
        else:
            said = [f"{by_values:,} proved by all values"]
        return ", ".join(said)


def _has_changed(proof: "CellProof") -> bool:
    """Says whether BigQuery has changed the cell since its sync."""
    return proof.source_changed or proof.status.value == "source_changed"


def _cells(cells: "Sequence[object]") -> str:
    return f"{len(cells):,} cell{'' if len(cells) == 1 else 's'}"

"""The results of several runs are merged and printed, for users and for programs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from bq_harper_assets.defs.runs.launch import Launched


@dataclass(frozen=True)
class ProofOfRuns:
    """This is the worst that the proofs found which the runs made of their own cells."""

    status: str | None  # None: no proof was made
    message: str

    @property
    def exit_code(self) -> ExitCode:
        """Gives 0 if nothing is wrong, though a window may still be open."""
        codes = {
            "proved": ExitCode.DONE,
            "open": ExitCode.DONE,
            "source_changed": ExitCode.CHANGED_SINCE,
            "differs": ExitCode.DIFFERS,
        }
        return codes.get(self.status or "", ExitCode.NOT_PROVED)

    def told(self, table: str) -> str | None:
        """Says what is wrong and what to type; None if nothing is wrong."""
        if self.exit_code is ExitCode.DONE:
            return None
        if self.exit_code is ExitCode.DIFFERS:
            return (
                f"all cells are done, and their proof found rows that differ: {self.message}. "
                f"Next: bqh verify {table} --show"
            )
        if self.exit_code is ExitCode.CHANGED_SINCE:
            return (
                f"all cells are done, and BigQuery has changed since: {self.message}. "
                f"Next: bqh sync {table} --changed"
            )
        return (
            f"all cells are done, and the proof after them could not be made: {self.message}. "
            f"Next: bqh verify {table}"
        )


# What could not be looked at is milder than what differs, and a change since is the mildest.
_WORST_LAST = (ExitCode.DONE, ExitCode.CHANGED_SINCE, ExitCode.NOT_PROVED, ExitCode.DIFFERS)


@dataclass(frozen=True)
class RunResults:
    """What became of all runs of a command is told as if they were one."""

    runs: "tuple[Launched, ...]"
    cells: int
    seconds: float

    @property
    def done(self) -> dict[str, dict[str, Any]]:
        """Returns the metadata of each cell that is done, by partition key."""
        return {key: metadata for run in self.runs for key, metadata in run.done.items()}

    @property
    def error(self) -> str | None:
        """Returns the first reason why cells are not done; None if all are."""
        return next((run.error for run in self.runs if run.error), None)

    @property
    def not_synced(self) -> str | None:
        """Says which columns of the source the runs left out, and why; None if they took all."""
        return next((run.not_synced for run in self.runs if run.not_synced), None)

    @property
    def proof(self) -> ProofOfRuns | None:
        """Merges the runs' proofs into one, as bad as the worst; None if no run got that far."""
        found = [ProofOfRuns(run.proof.status, run.proof.message) for run in self.runs if run.proof]
        if not found:
            return None
        worst = max(found, key=lambda each: _WORST_LAST.index(each.exit_code))
        alike = [each.message for each in found if each.exit_code is worst.exit_code]
        return ProofOfRuns(worst.status, "; ".join(alike))

    @property
    def quarantined(self) -> int:
        """Counts the rows of these cells that Harper could not store."""
        return sum(int(metadata.get("rows_quarantined", 0)) for metadata in self.done.values())

    @property
    def exit_code(self) -> ExitCode:
        """Gives the code by what is done, what its proof says, and whether rows are left out."""
        if self.error is not None:
            return ExitCode.PARTLY if self.done else ExitCode.ERROR
        proved = self.proof.exit_code if self.proof else ExitCode.DONE
        stored = ExitCode.DIFFERS if self.quarantined else ExitCode.DONE
        return max(proved, stored, key=_WORST_LAST.index)

    def tell_outcome(self, table: str) -> None:
        """Prints what the proof of the runs has found; an error if they or the proof failed.

        Rows that could not be stored come last, with the command that shows them.
        """
        wrong = self.error or (self.proof.told(table) if self.proof else None)
        if wrong:
            click.echo(f"error: {wrong}", err=True)
        elif self.proof:
            click.echo(f"proof: {self.proof.message}")
        if left_out := self.told_of_quarantine(table):
            click.echo(f"error: {left_out}", err=True)

    def told_of_quarantine(self, table: str) -> str | None:
        """Says how many rows are in quarantine, and what shows them; None if there are none."""
        if not self.quarantined:
            return None
        rows = "1 row" if self.quarantined == 1 else f"{self.quarantined:,} rows"
        return (
            f"{rows} of {table} cannot be stored in Harper and wait in quarantine, with the"
            f" reasons. Next: bqh quarantine list {table}"
        )

    def as_json(self) -> dict[str, Any]:
        """Returns the results as programs read them."""
        return {
            "run_ids": [run.run_id for run in self.runs],
            "cells": self.cells,
            "done": len(self.done),
            "quarantined": self.quarantined,
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "proof": self.proof.message if self.proof else None,
            "partitions": self.done,
        }

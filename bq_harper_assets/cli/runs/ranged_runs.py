"""Runs of cells that need not lie together: as many as there are rectangles, told as one."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bq_harper_assets.cli.exit_codes import ExitCode
from bq_harper_assets.cli.output.progress_bar import Asked, working
from bq_harper_assets.cli.runs.reachability import require_servers
from bq_harper_assets.cli.runs.readiness import require_ready
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.defs.runs.launch import Launched
    from bq_harper_assets.sync.cells.cell import Cell


def open_project(profile: str | None) -> Project:
    """The project of this folder; the profile holds for all that this process starts."""
    if profile:
        os.environ["BQH_PROFILE"] = profile
    return load_project(find_project_root(os.environ, Path.cwd()))


@dataclass(frozen=True)
class ProofOfRuns:
    """What the proofs found that the runs made of their own cells; the worst of them."""

    status: str | None  # None: no proof was made
    message: str

    @property
    def exit_code(self) -> ExitCode:
        """0 if nothing is wrong, though a window may still be open."""
        codes = {
            "proved": ExitCode.DONE,
            "open": ExitCode.DONE,
            "source_changed": ExitCode.CHANGED_SINCE,
            "differs": ExitCode.DIFFERS,
        }
        return codes.get(self.status or "", ExitCode.NOT_PROVED)

    def told(self, table: str) -> str | None:
        """What is wrong and what to type; None if nothing is."""
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
class Ran:
    """What became of all runs."""

    runs: "tuple[Launched, ...]"
    cells: int
    seconds: float

    @property
    def done(self) -> dict[str, dict[str, Any]]:
        """The metadata of each cell that is done, by partition key."""
        return {key: metadata for run in self.runs for key, metadata in run.done.items()}

    @property
    def error(self) -> str | None:
        """Why cells are not done; the first reason there is."""
        return next((run.error for run in self.runs if run.error), None)

    @property
    def not_synced(self) -> str | None:
        """Columns of the source that the runs have left out, and why; None if they took all."""
        return next((run.not_synced for run in self.runs if run.not_synced), None)

    @property
    def proof(self) -> ProofOfRuns | None:
        """The runs' own, as bad as the worst of them; None if none of them came so far."""
        found = [ProofOfRuns(run.proof.status, run.proof.message) for run in self.runs if run.proof]
        if not found:
            return None
        worst = max(found, key=lambda each: _WORST_LAST.index(each.exit_code))
        alike = [each.message for each in found if each.exit_code is worst.exit_code]
        return ProofOfRuns(worst.status, "; ".join(alike))

    @property
    def exit_code(self) -> ExitCode:
        """By how many cells are done, and by what their proof says."""
        if self.error is None:
            return self.proof.exit_code if self.proof else ExitCode.DONE
        return ExitCode.PARTLY if self.done else ExitCode.ERROR

    def tell_outcome(self, table: str) -> None:
        """Prints what the proof of the runs has found; an error if they or the proof failed."""
        wrong = self.error or (self.proof.told(table) if self.proof else None)
        if wrong:
            click.echo(f"error: {wrong}", err=True)
        elif self.proof:
            click.echo(f"proof: {self.proof.message}")

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "run_ids": [run.run_id for run in self.runs],
            "cells": self.cells,
            "done": len(self.done),
            "seconds": round(self.seconds, 3),
            "error": self.error,
            "proof": self.proof.message if self.proof else None,
            "partitions": self.done,
        }


def run_cells(
    what: str,
    project: Project,
    contract: TableContract,
    cells: "Sequence[Cell]",
    output: str,
    *,
    allow_deletes: bool = False,
    deep: bool = False,
) -> Ran:
    """Exactly these; a run that fails does not stop the others."""
    if not cells:
        return Ran((), 0, 0.0)
    require_servers(project)
    require_ready(project, contract)
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.defs.build import build_definitions
    from bq_harper_assets.defs.rectangles import rectangles
    from bq_harper_assets.defs.runs.launch import launch, project_instance
    from bq_harper_assets.ledger.ledger import open_ledger

    with open_ledger(project.ledger.url) as ledger:
        asked_at = ledger.now()
        definitions = build_definitions(project.root, ledger)
    asked = Asked(
        contract=contract, cells=cells, since=asked_at, ledger=project.ledger, harper=project.harper
    )
    began = time.monotonic()
    with working(what, output, asked), project_instance(project.root) as instance:
        runs = tuple(
            launch(definitions, instance, contract, part, allow_deletes=allow_deletes, deep=deep)
            for part in rectangles(cells)
        )
    return Ran(runs, len(cells), time.monotonic() - began)

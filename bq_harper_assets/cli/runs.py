"""Runs of cells that need not lie together: as many as there are rectangles, told as one."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bq_harper_assets.cli.progress import Asked, working
from bq_harper_assets.contract.project import Project, load_project
from bq_harper_assets.contract.root import find_project_root
from bq_harper_assets.contract.table import TableContract

if TYPE_CHECKING:
    from bq_harper_assets.defs.launch import Launched
    from bq_harper_assets.sync.cells import Cell

EXIT_ERROR, EXIT_DIFFERENCES, EXIT_PARTIAL = 1, 3, 4


def open_project(profile: str | None) -> Project:
    """The project of this folder; the profile holds for all that this process starts."""
    if profile:
        os.environ["BQH_PROFILE"] = profile
    return load_project(find_project_root(os.environ, Path.cwd()))


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
    def exit_code(self) -> int:
        """As `bqh sync` has it."""
        if self.error is None:
            return 0
        return EXIT_PARTIAL if self.done else EXIT_ERROR

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "run_ids": [run.run_id for run in self.runs],
            "cells": self.cells,
            "done": len(self.done),
            "seconds": round(self.seconds, 3),
            "error": self.error,
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
    # Here and not above: dagster and google's libraries take seconds to import.
    from bq_harper_assets.defs.build import build_definitions
    from bq_harper_assets.defs.launch import launch, project_instance
    from bq_harper_assets.defs.rectangles import rectangles
    from bq_harper_assets.ledger.ledger import open_ledger

    with open_ledger(project.ledger.url) as ledger:
        asked_at = ledger.now()
    asked = Asked(contract, cells, asked_at, project.ledger, project.harper)
    definitions = build_definitions(project.root)
    began = time.monotonic()
    with working(what, output, asked), project_instance(project.root) as instance:
        runs = tuple(
            launch(definitions, instance, contract, part, allow_deletes=allow_deletes, deep=deep)
            for part in rectangles(cells)
        )
    return Ran(runs, len(cells), time.monotonic() - began)
